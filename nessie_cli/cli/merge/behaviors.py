"""Conversion of the options of merge and transplant to those of the repository."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from nessie_cli.cli.app.input import read_bytes
from nessie_cli.cli.merge.commits import changes_of_commits
from nessie_cli.cli.staging.commit_meta import message_of_paragraphs
from nessie_cli.errors import InvalidInput
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    Content,
    ContentKey,
    KeyBehavior,
    KeyRange,
    MergeBehavior,
)
from nessie_cli.render.text import short_hash, visible
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.revisions import Revision
from nessie_cli.wire.decode import decode_content

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.cli.merge.options import DecisionOptions, MergingOptions
    from nessie_cli.repository.base import Repository

_OF_OPTION = {"--ours": MergeBehavior.DROP, "--theirs": MergeBehavior.FORCE}


def merge_options(
    app: Invocation, branch: str, options: MergingOptions, meta: CommitMeta | None
) -> MergeOptions:
    """Returns the options that merge and transplant have in common.

    Reads the files of `--resolve`. Raises `InvalidInput` that names the option.
    """
    expected = options.expected_hash
    return MergeOptions(
        meta=meta,
        behaviors=list(_behaviors(app, branch, options)),
        default_behavior=MergeBehavior(options.behavior.name),
        expected_hash=app.repository().resolve(app.revision(expected)).hash if expected else None,
    )


def is_empty(repository: Repository, branch: str) -> bool:
    """Returns whether a branch has no commits. A merge into it needs no common history."""
    return repository.reference(branch).hash == NO_ANCESTOR


# -- commit metadata -------------------------------------------------------------------------------


def meta_of_merge(
    app: Invocation, paragraphs: Sequence[str] | None, source: str, branch: str
) -> CommitMeta:
    """Returns the metadata of a merge commit.

    The default message is in the style of git: `Merge branch 'nightly' into main`.
    """
    author = app.author()
    authors = (author,) if author else ()
    if paragraphs:
        return CommitMeta(message_of_paragraphs(paragraphs), authors=authors)
    spec = app.revision(source)
    found = app.repository().resolve(spec)
    if spec.name and spec.name == found.name and not spec.steps and not spec.hash:
        return CommitMeta(
            f"Merge {found.type.lower()} '{found.name}' into {visible(branch)}", authors=authors
        )
    return CommitMeta(
        f"Merge commit '{short_hash(found.hash)}' into {visible(branch)}", authors=authors
    )


def meta_of_transplant(
    app: Invocation, paragraphs: Sequence[str] | None, commits: Sequence[str]
) -> CommitMeta | None:
    """Returns the metadata of a transplanted commit with another message.

    Without a message returns None: each commit keeps its metadata.
    """
    if not paragraphs:
        return None
    message = message_of_paragraphs(paragraphs)
    if len(commits) > 1:
        raise InvalidInput(
            f"-m: replaces the message of a single commit, and there are {len(commits)}. Hint:"
            " omit it"
        )
    meta = app.repository().commit_at(Revision(None, commits[0])).meta
    return CommitMeta(message, meta.authors, meta.signed_off_by, meta.author_time, meta.properties)


# -- decisions about keys --------------------------------------------------------------------------


ChangedKeys = Callable[[KeyRange], Iterable[ContentKey]]
"""Returns the keys of a range that the source changes."""


def changed_by_merge(repository: Repository, branch: str, source: Revision) -> ChangedKeys:
    """Returns the keys that a merge of the source would change."""

    def changed(keys: KeyRange) -> Iterator[ContentKey]:
        base = repository.merge_base(branch, source)
        return (entry.key for entry in repository.diff(base, source, keys))

    return changed


def changed_by_commits(repository: Repository, commits: Sequence[str]) -> ChangedKeys:
    """Returns the keys that transplanted commits change."""
    return lambda keys: (entry.key for entry in changes_of_commits(repository, commits, keys))


def refuse_unchanged(options: DecisionOptions, changed: ChangedKeys) -> None:
    """Raises `InvalidInput` for a decision about a key that the source does not change.

    The repository may ignore the key.
    """
    named = {ContentKey.parse(text): "--ours" for text in options.ours or ()}
    named |= {ContentKey.parse(text): "--theirs" for text in options.theirs or ()}
    named |= {key_and_file(text)[0]: "--resolve" for text in options.resolve or ()}
    if not named:
        return
    found = set(changed(KeyRange(keys=tuple(named))))
    for key, option in named.items():
        if key not in found:
            from nessie_cli.cli.errors.suggestions import did_you_mean

            near = did_you_mean(str(key), map(str, changed(KeyRange())))
            raise InvalidInput(f"{option} {key}: the source does not change this key{near}")


def _behaviors(app: Invocation, branch: str, options: DecisionOptions) -> Iterator[KeyBehavior]:
    seen: dict[ContentKey, str] = {}
    for option, texts in (
        ("--ours", options.ours),
        ("--theirs", options.theirs),
        ("--resolve", options.resolve),
    ):
        for text in texts or ():
            key, file = (
                key_and_file(text) if option == "--resolve" else (ContentKey.parse(text), "")
            )
            if key in seen:
                raise InvalidInput(f"{option} {key}: the key is already named by {seen[key]}")
            seen[key] = option
            yield (
                _resolved(app, branch, key, file) if file else KeyBehavior(key, _OF_OPTION[option])
            )


def _resolved(app: Invocation, branch: str, key: ContentKey, file: str) -> KeyBehavior:
    """Resolves a key by the content of a file, if the target still has its current content."""
    expected = app.repository().contents(branch, [key]).get(key)
    if expected is None:
        raise InvalidInput(
            f"--resolve {key}: '{branch}' has no content with this key. Hint: decide by --ours or"
            " --theirs"
        )
    content = with_id_of(_read_content(file), expected, key)
    return KeyBehavior(key, MergeBehavior.NORMAL, expected, content)


def with_id_of(content: Content, current: Content, key: ContentKey) -> Content:
    """Returns the content that resolves a conflict, with the id of the target's content.

    Raises `InvalidInput` if it has the id of another content.
    """
    if content.id not in (None, current.id):
        raise InvalidInput(
            f"--resolve {key}: the file has the content id {content.id}, but the key has the id"
            f" {current.id}. Hint: remove the id from the file"
        )
    return content.with_id(current.id)


def contents_of_files(texts: Sequence[str] | None) -> dict[ContentKey, Content]:
    """Returns the contents of `--resolve KEY=FILE`. Raises `InvalidInput` that names the option."""
    return {key: _read_content(file) for key, file in map(key_and_file, texts or ())}


def key_and_file(text: str) -> tuple[ContentKey, str]:
    """Splits `KEY=FILE`.

    A quoted key may contain a `=`, so the first one after a whole key counts.
    """
    for position in (i for i, char in enumerate(text) if char == "="):
        with suppress(InvalidInput):
            key = ContentKey.parse(text[:position])
            if text[position + 1 :]:
                return key, text[position + 1 :]
    raise InvalidInput(f"--resolve {text!r}: write KEY=FILE, a file with the content as REST JSON")


def _read_content(file: str) -> Content:
    name = "stdin" if file == "-" else file
    return decode_content(read_bytes(file, "--resolve"), name, allow_unknown=True)
