"""Conversion of the options of merge and transplant to those of the repository."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from nessie_cli.cli.app.input import read_bytes
from nessie_cli.cli.merge.expected import expected_commit
from nessie_cli.cli.merge.names import ContentName, key_and_file
from nessie_cli.cli.staging.commit_meta import message_of_paragraphs
from nessie_cli.errors import InvalidInput
from nessie_cli.inspection.text import short_hash, visible
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    Content,
    ContentKey,
    KeyBehavior,
    MergeBehavior,
)
from nessie_cli.model.key_patterns import KeyPattern
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
    return MergeOptions(
        meta=meta,
        behaviors=list(_behaviors(app, branch, options)),
        default_behavior=MergeBehavior(options.behavior.name),
        expected_hash=expected_commit(app, options.expected_hash),
        allow_failed_run=options.allow_failed_run,
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
    merged = app.repository().resolve(spec)
    if spec.name and spec.name == merged.name and not spec.steps:
        return CommitMeta(
            f"Merge {merged.type.lower()} '{merged.name}' into {visible(branch)}", authors=authors
        )
    return CommitMeta(
        f"Merge commit '{short_hash(merged.hash)}' into {visible(branch)}", authors=authors
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
            f"-m: replaces the message of a single commit, and there are {len(commits)}",
            hint="omit it",
        )
    meta = app.repository().commit_at(Revision(None, commits[0])).meta
    return CommitMeta(message, meta.authors, meta.signed_off_by, meta.author_time, meta.properties)


# -- decisions about keys --------------------------------------------------------------------------


def refuse_unknown(repository: Repository, options: DecisionOptions, states: Iterable[str]) -> None:
    """Raises `InvalidInput` for a decision about a key that no state (hash) contains.

    The repository refuses decisions about contents that the source does not change.
    """
    named = dict(_named(options))
    keys = [name.key for name in named if name.content_id is None]
    if not keys:
        return
    states = list(states)
    existing = {key for at in states for key in repository.contents(Revision(None, at), keys)}
    for name, option in named.items():
        if name.content_id is None and name.key not in existing:
            from nessie_cli.cli.errors.suggestions import did_you_mean

            at = Revision(None, states[-1])
            near = did_you_mean(str(name), (str(e.key) for e in repository.entries(at)))
            raise InvalidInput(f"{option} {name}: the source does not change this key{near}")


def states_of_merge(repository: Repository, branch: str, source: str) -> Iterator[str]:
    """Yields the commits in which a decision may name a key: ours, base and theirs."""
    head = repository.reference(branch).hash
    yield head
    yield repository.merge_base(Revision(None, head), Revision(None, source))
    yield source


def states_of_transplant(
    repository: Repository, branch: str, commits: Sequence[str]
) -> Iterator[str]:
    """Yields the commits in which a decision may name a key: ours, the parents and the commits."""
    yield repository.reference(branch).hash
    for commit in commits:
        yield repository.commit_at(Revision(None, commit)).parent
        yield commit


def _named(options: DecisionOptions) -> Iterator[tuple[ContentName, str]]:
    """Yields the names in the options of decisions, each with its option. Globs are no names."""
    for texts, option in ((options.ours, "--ours"), (options.theirs, "--theirs")):
        for text in texts or ():
            if KeyPattern.parse(text) is None:
                yield ContentName.parse(text), option
    for text in options.resolve or ():
        yield ContentName(key_and_file(text)[0]), "--resolve"


def _behaviors(app: Invocation, branch: str, options: DecisionOptions) -> Iterator[KeyBehavior]:
    sides: dict[ContentName, str] = {}
    files: dict[ContentName, str] = {}
    paths = dict(map(key_and_file, options.resolve or ()))
    for name, option in _named(options):
        # A table that both sides renamed can get a new value, and the key of a side.
        seen = files if option == "--resolve" else sides
        if name in seen:
            raise InvalidInput(f"{option} {name}: the key is already named by {seen[name]}")
        seen[name] = option
        if option == "--resolve":
            yield _resolved(app, branch, name.key, paths[name.key])
        else:
            commit = app.repository().resolve(Revision(None, name.commit)) if name.commit else None
            yield KeyBehavior(
                name.key,
                _OF_OPTION[option],
                content_id=name.content_id,
                commit=commit.hash if commit else None,
            )


def with_a_side(options: DecisionOptions) -> tuple[list[str], list[str]]:
    """Divides the texts of `--resolve` into those whose key also has a side, and the others.

    A value and a side together are a whole decision, also if the side is that of a glob, which
    would decide the conflict before the value. Without a side, `resolve` finds the conflict.
    """
    named = {name.key for name, option in _named(options) if option != "--resolve"}
    sides = (*(options.ours or ()), *(options.theirs or ()))
    globs = [pattern for text in sides if (pattern := KeyPattern.parse(text)) is not None]
    texts = options.resolve or ()
    keys = {text: key_and_file(text)[0] for text in texts}
    decided = {key for key in keys.values() if any(each.matches(key) for each in globs)} | named
    both = [text for text in texts if keys[text] in decided]
    return both, [text for text in texts if text not in both]


def resolved_by_files(app: Invocation, branch: str, texts: Sequence[str]) -> list[KeyBehavior]:
    """Returns the decisions of `--resolve KEY=FILE`, if the branch has these keys."""
    return [_resolved(app, branch, key, file) for key, file in map(key_and_file, texts)]


def _resolved(app: Invocation, branch: str, key: ContentKey, file: str) -> KeyBehavior:
    """Resolves a key by the content of a file, if the target still has its current content."""
    expected = app.repository().contents(branch, [key]).get(key)
    if expected is None:
        raise InvalidInput(
            f"--resolve {key}: '{branch}' has no content with this key",
            hint="decide by --ours or --theirs",
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
            f" {current.id}",
            hint="remove the id from the file, or decide by --ours or --theirs if the branch"
            " created this key again",
        )
    return content.with_id(current.id)


def contents_of_files(texts: Sequence[str] | None) -> dict[ContentKey, Content]:
    """Returns the contents of `--resolve KEY=FILE`. Raises `InvalidInput` that names the option."""
    return {key: _read_content(file) for key, file in map(key_and_file, texts or ())}


def _read_content(file: str) -> Content:
    name = "stdin" if file == "-" else file
    return decode_content(read_bytes(file, "--resolve"), name, allow_unknown=True)
