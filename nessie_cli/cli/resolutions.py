"""The command lines that resolve a conflict, and the report that shows conflicts with them. Only this room knows command names."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nessie_cli.errors import MergeConflict, NessieError, ReferenceConflict
from nessie_cli.model import Conflict, ConflictType, Content, ContentKey, UnknownContent
from nessie_cli.render.fields import type_label

if TYPE_CHECKING:
    from nessie_cli.cli.context import Invocation
    from nessie_cli.render.conflicts import ConflictReport
    from nessie_cli.repository.changes import Revision

HASH_DIGITS = 12
"""As many digits of a hash as a command line shows that is to be pasted."""

Resolutions = Callable[[Conflict], Sequence[str]]

TYPE_OPTION: Mapping[str, str] = {name: type_label(name) for name in ("ICEBERG_TABLE", "ICEBERG_VIEW", "NAMESPACE", "DELTA_LAKE_TABLE", "UDF")}
"""How `--type` spells the content types."""

FIELD_OPTION: Mapping[str, str] = {
    "metadataLocation": "--metadata-location",
    "snapshotId": "--snapshot-id",
    "schemaId": "--schema-id",
    "specId": "--spec-id",
    "sortOrderId": "--sort-order-id",
    "versionId": "--version-id",
    "sqlText": "--sql-text",
    "dialect": "--dialect",
    "signatureId": "--signature-id",
    "metadataLocationHistory": "--metadata-location",
    "checkpointLocationHistory": "--checkpoint-location",
    "lastCheckpoint": "--last-checkpoint",
    "properties": "--property",
}
"""Which option of `nessie content put` sets which attribute of a content."""


def command_line(*words: str) -> str:
    """One command line, each word quoted as a shell needs it."""
    return "nessie " + " ".join(map(shlex.quote, words))


def put_options(content: Content) -> list[str]:
    """The options of `nessie content put` that give this content."""
    if isinstance(content, UnknownContent):
        return ["--content", "FILE"]
    words = ["--type", TYPE_OPTION[content.type_name]]
    for name, value in content.attributes().items():
        words += [word for text in _texts(value) for word in (FIELD_OPTION[name], text)] if name in FIELD_OPTION else []
    return words


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (f"{name}={text}" for name, text in value.items())
    elif isinstance(value, list):
        yield from map(str, value)
    elif value is not None:
        yield str(value)


def batch_resolutions(call: Invocation, head: str | None) -> Resolutions:
    """How to resolve the conflicts of staged operations: stage again what has then seen the state at `head`, or take the operation out.

    Without a workspace there is nothing staged: then each line commits by itself. Half a rename cannot be staged again.
    """
    seen = ("--expected-hash", head[:HASH_DIGITS]) if head else ()
    moved = call.renames

    def resolutions(conflict: Conflict) -> list[str]:
        key = conflict.key
        if key is None or "--batch" in call.argv:
            return _with_hash(call, head)
        if special := _SPECIAL.get(conflict.type):
            return special(call, key)
        out = _reset(call, [key])
        if key in moved:
            return [_staging(call, ["rename"], [key, moved[key]], seen), *out] if conflict.actual else out
        return out if key in moved.values() else [*_again(call, conflict, key, seen), *out]

    return resolutions


def _with_hash(call: Invocation, head: str | None) -> list[str]:
    """The same command once more, on the state there is now; nothing where it did not say which state it expects."""
    words = list(call.argv)
    for option in ("--expected-hash", "-c"):
        if head and option in words[:-1]:
            words[words.index(option) + 1] = head[:HASH_DIGITS]
            return [command_line(*words)]
    return []


def _staging(call: Invocation, verb: Sequence[str], keys: Sequence[ContentKey], options: Sequence[str] = ()) -> str:
    """A command line of `nessie content`, on the same store; a key that looks like an option stands behind `--`."""
    from nessie_cli.cli.options import carried

    message = () if call.workspace else ("-m", f"{verb[0]} {', '.join(map(str, keys))}")
    texts = list(map(str, keys))
    words = ["--", *texts] if any(text.startswith("-") for text in texts) else texts
    behind = [*options, *message]
    return command_line(*carried(call.options), "content", *verb, *([*behind, *words] if words[0] == "--" else [*words, *behind]))


def _reset(call: Invocation, keys: Sequence[ContentKey]) -> list[str]:
    from nessie_cli.cli.options import carried

    if call.workspace is None or not keys:
        return []
    dash = ["--"] if any(str(key).startswith("-") for key in keys) else []
    return [command_line(*carried(call.options), "reset", *dash, *map(str, keys))]


def _make_namespace(call: Invocation, key: ContentKey) -> list[str]:
    return [_staging(call, ["put"], [key], ("--type", "namespace")), *_reset(call, _staged_below(call, key))]


def _empty_namespace(call: Invocation, key: ContentKey) -> list[str]:
    """Delete what is still in it, or keep it."""
    left = contents_below(call, call.head, key)
    if left and call.workspace is None:
        left.append(key)
    return [*([_staging(call, ["delete"], left)] if left else []), *_reset(call, [key])]


def contents_below(call: Invocation, at: Revision, key: ContentKey) -> list[ContentKey]:
    """The keys below one that no staged operation touches; none where there are too many for a command line."""
    from itertools import islice

    from nessie_cli.model import KeyRange

    below = call.repository().entries(at, KeyRange(prefix=key))
    found = list(islice((entry.key for entry in below if entry.key != key and entry.key not in call.staged_keys), MOST_CHILDREN + 1))
    return found if len(found) <= MOST_CHILDREN else []


def _replace_by_namespace(call: Invocation, key: ContentKey) -> list[str]:
    """Give up what stands in the place of the namespace, or what was to be put below it."""
    return [_staging(call, ["replace"], [key], ("--type", "namespace")), *_reset(call, _staged_below(call, key))]


def _staged_below(call: Invocation, key: ContentKey) -> list[ContentKey]:
    return [staged for staged in call.staged_keys if staged != key and staged.starts_with(key)]


MOST_CHILDREN = 20
"""Of a namespace that has more contents than this no command line deletes them all."""

_SPECIAL: Mapping[ConflictType, Callable[[Invocation, ContentKey], list[str]]] = {
    ConflictType.NAMESPACE_ABSENT: _make_namespace,
    ConflictType.NAMESPACE_NOT_EMPTY: _empty_namespace,
    ConflictType.NOT_A_NAMESPACE: _replace_by_namespace,
}


def _again(call: Invocation, conflict: Conflict, key: ContentKey, seen: Sequence[str]) -> list[str]:
    """The command that stages the operation again, as one that has seen what is there now; none where nothing is there to be deleted or kept."""
    if conflict.proposed is None or conflict.proposed == conflict.expected:
        verb = "delete" if conflict.proposed is None else "unmodified"
        return [_staging(call, [verb], [key], seen)] if conflict.actual else []
    verb = "replace" if conflict.actual and _is_another(conflict) else "put"
    return [_staging(call, [verb], [key], (*put_options(conflict.proposed), *seen))]


def _is_another(conflict: Conflict) -> bool:
    """Whether the proposed content is another one than that which is there, or than that which was expected."""
    proposed, actual, expected = conflict.proposed, conflict.actual, conflict.expected
    if proposed is None or actual is None:
        return False
    return proposed.type_name != actual.type_name or (expected is not None and proposed.id != expected.id)


def resolutions_of(error: NessieError, call: Invocation) -> Resolutions:
    """What the command that failed offers (`call.resolutions`), else what resolves a conflict of the batch."""
    return call.resolutions or batch_resolutions(call, error.head if isinstance(error, ReferenceConflict) else None)


def conflict_report(error: ReferenceConflict, call: Invocation) -> ConflictReport:
    """Everything that the diagnostics show of a failed commit, merge or transplant."""
    from nessie_cli.render.conflicts import ConflictReport

    return ConflictReport(
        error.conflicts,
        error.reference,
        error.head,
        error.expected_hash,
        distance=_distance(error, call),
        resolutions=resolutions_of(error, call),
        is_merge=isinstance(error, MergeConflict),
    )


def _distance(error: ReferenceConflict, call: Invocation) -> int | None:
    """How many commits were made since the caller started; nothing, rather than a second failure, where that cannot be told."""
    if not (error.head and error.expected_hash and call.is_open) or error.head == error.expected_hash:
        return None
    try:
        return call.repository().ahead_behind(error.head, error.expected_hash).ahead
    except NessieError:
        return None
