"""What `nessie merge` and `nessie transplant` share: options to behaviors per key, the outcome, and what resolves a conflict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import NamedTuple

from nessie_cli.cli.batch_resolutions import contents_below
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.errors.resolutions import HASH_DIGITS, command_line
from nessie_cli.commitspec import CommitSpec
from nessie_cli.errors import InvalidInput, Resolutions
from nessie_cli.model import CommitMeta, Conflict, ConflictType, Content, ContentKey, KeyBehavior, KeyRange, MergeBehavior, MergeResult
from nessie_cli.render.text import visible
from nessie_cli.repository.changes import MergeOptions


class BehaviorChoice(StrEnum):
    """How `--behavior` spells the behaviors."""

    NORMAL = "normal"
    FORCE = "force"
    DROP = "drop"


class Choices(NamedTuple):
    """The options of one call."""

    message: str | None = None
    dry_run: bool = False
    behavior: BehaviorChoice = BehaviorChoice.NORMAL
    ours: Sequence[str] = ()
    theirs: Sequence[str] = ()
    resolve: Sequence[str] = ()
    follow_renames: bool = False
    unrelated: bool = False
    expected_hash: str | None = None


def merge_options(call: Invocation, branch: str, choices: Choices, source: str = "", commits: Sequence[str] = ()) -> MergeOptions:
    """The options as the repository takes them, for a merge of `source` or for a transplant of `commits`; reads the files of `--resolve`.

    Raises `InvalidInput` that names the option.
    """
    if choices.message is not None and not choices.message.strip():
        raise InvalidInput("-m: the message is empty; leave it out for one that says what was merged")
    expected = choices.expected_hash
    return MergeOptions(
        meta=_meta_of_transplant(call, choices.message, commits) if commits else _meta_of_merge(call, choices.message, source, branch),
        behaviors=list(_behaviors(call, branch, choices)),
        default_behavior=MergeBehavior(choices.behavior.name),
        follow_renames=choices.follow_renames,
        unrelated=choices.unrelated,
        expected_hash=call.repository().resolve(call.revision(expected)).hash if expected else None,
        dry_run=choices.dry_run,
    )


def _meta_of_merge(call: Invocation, message: str | None, source: str, branch: str) -> CommitMeta:
    """A merge is a commit of the user's. Without a message it is git's: `Merge branch 'nightly' into main`."""
    author = call.author()
    authors = (author,) if author else ()
    if message is not None:
        return CommitMeta(message, authors=authors)
    spec = call.revision(source)
    found = call.repository().resolve(spec)
    if spec.name and spec.name == found.name and not spec.steps and not spec.hash:
        return CommitMeta(f"Merge {found.type.lower()} '{found.name}' into {visible(branch)}", authors=authors)
    return CommitMeta(f"Merge commit '{found.hash[:HASH_DIGITS]}' into {visible(branch)}", authors=authors)


def _meta_of_transplant(call: Invocation, message: str | None, commits: Sequence[str]) -> CommitMeta | None:
    """A copy stays its author's, with all that is said about it; only its message may be another."""
    if message is None:
        return None
    if len(commits) > 1:
        raise InvalidInput(f"-m: replaces the message of a single commit, and these are {len(commits)}; leave it out")
    meta = call.repository().commit_at(CommitSpec(None, commits[0])).meta
    return CommitMeta(message, meta.authors, meta.signed_off_by, meta.author_time, meta.properties)


def _behaviors(call: Invocation, branch: str, choices: Choices) -> Iterator[KeyBehavior]:
    behavior_of = {"--ours": MergeBehavior.DROP, "--theirs": MergeBehavior.FORCE}
    seen: dict[ContentKey, str] = {}
    for option, texts in (("--ours", choices.ours), ("--theirs", choices.theirs), ("--resolve", choices.resolve)):
        for text in texts:
            key, file = _key_and_file(text) if option == "--resolve" else (ContentKey.parse(text), "")
            if key in seen:
                raise InvalidInput(f"{option} {key}: the key is named by {seen[key]} already")
            seen[key] = option
            yield _resolved(call, branch, key, file) if file else KeyBehavior(key, behavior_of[option])


def contents_of_files(texts: Sequence[str]) -> dict[ContentKey, Content]:
    """The contents that `--resolve KEY=FILE` name; raises `InvalidInput` that names the option."""
    return {key: _read_content(file) for key, file in map(_key_and_file, texts)}


def _key_and_file(text: str) -> tuple[ContentKey, str]:
    """A key in quotes may hold a `=`, so the first one counts at which the left side is a key."""
    for position in (i for i, char in enumerate(text) if char == "="):
        with suppress(InvalidInput):
            key = ContentKey.parse(text[:position])
            if text[position + 1 :]:
                return key, text[position + 1 :]
    raise InvalidInput(f"--resolve {text!r}: write KEY=FILE, the file holding the content as REST JSON")


def _resolved(call: Invocation, branch: str, key: ContentKey, file: str) -> KeyBehavior:
    """The content of the file instead of both sides, provided that the target still has the content it has now."""
    expected = call.repository().contents(branch, [key]).get(key)
    if expected is None:
        raise InvalidInput(f"--resolve {key}: '{branch}' has no such content; decide by --ours or --theirs")
    content = _read_content(file)
    return KeyBehavior(key, MergeBehavior.NORMAL, expected, content if content.id else content.with_id(expected.id))


def _read_content(file: str) -> Content:
    from nessie_cli.cli.input import read_bytes
    from nessie_cli.wire.decode import decode_content

    return decode_content(read_bytes(file, "--resolve"), "stdin" if file == "-" else file, allow_unknown=True)


def show_result(call: Invocation, result: MergeResult, verb: str, source: str) -> None:
    """Print what a merge or transplant did: the keys on stdout, what happened on stderr."""
    if call.wants_json:
        from nessie_cli.wire.facts import merge_with_facts

        call.answer(merge_with_facts(result))
        return
    from nessie_cli.render.merges import merge_headline, print_merge

    if not call.options.quiet:
        call.err.print_line(*merge_headline(result, verb, source, call.err))
    print_merge(result, call.out)


def merge_resolutions(call: Invocation, branch: str) -> Resolutions:
    """The same command again with the decision added; what needs a namespace first says how to make it."""
    from nessie_cli.cli.options import carried

    again = [word for word in call.argv if word not in ("--dry-run", "--json", "--jsonl")]
    here = [word for word in carried(call.options) if word not in (call.options.ref, "--ref")]

    def resolutions(conflict: Conflict) -> Sequence[str]:
        if conflict.key is None:
            return ()
        key = str(conflict.key)
        if conflict.type is ConflictType.NAMESPACE_ABSENT:
            return (command_line(*here, "--ref", branch, "content", "put", key, "--type", "namespace", "-m", f"add {key}"),)
        if conflict.type is ConflictType.NAMESPACE_NOT_EMPTY:
            below = [str(child) for child in contents_below(call, branch, conflict.key)]
            empty = [command_line(*here, "--ref", branch, "content", "delete", *below, "-m", f"empty {key}")] if below else []
            # A transplant judges namespaces also where a commit's change to them is dropped.
            keep = [] if {"transplant", "cherry-pick"} & set(call.argv) else [command_line(*again, "--ours", key)]
            return [*keep, *empty]
        if conflict.type is ConflictType.NOT_A_NAMESPACE:
            return (command_line(*here, "--ref", branch, "content", "replace", key, "--type", "namespace", "-m", f"make {key} a namespace"),)
        lines = [command_line(*again, "--theirs", key), command_line(*again, "--ours", key)]
        renamed = conflict.source_rename or conflict.target_rename
        return [command_line(*again, "--follow-renames"), *lines] if renamed else lines

    return resolutions


def refuse_strangers(ours: Sequence[str], changed: Callable[[KeyRange], Iterable[ContentKey]]) -> None:
    """Raise `InvalidInput` for a key of `--ours` that is no part of what is merged: the repository takes it for no decision at all."""
    keys = tuple(map(ContentKey.parse, ours))
    if not keys:
        return
    found = set(changed(KeyRange(keys=keys)))
    for key in keys:
        if key not in found:
            from nessie_cli.cli.errors.suggestions import did_you_mean

            near = did_you_mean(str(key), map(str, changed(KeyRange())))
            raise InvalidInput(f"--ours {key}: what is merged does not change this key{near}")
