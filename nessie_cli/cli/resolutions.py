"""The command lines that resolve a conflict, and the report that shows conflicts with them. Only this room knows command names."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nessie_cli.errors import NessieError, ReferenceConflict
from nessie_cli.model import Conflict, ConflictType, Content, ContentKey, UnknownContent

if TYPE_CHECKING:
    from nessie_cli.cli.context import Invocation
    from nessie_cli.render.conflicts import ConflictReport

HASH_DIGITS = 12
"""As many digits of a hash as a command line shows that is to be pasted."""

Resolutions = Callable[[Conflict], Sequence[str]]

TYPE_OPTION: Mapping[str, str] = {
    "ICEBERG_TABLE": "iceberg-table",
    "ICEBERG_VIEW": "iceberg-view",
    "NAMESPACE": "namespace",
    "DELTA_LAKE_TABLE": "delta-table",
    "UDF": "udf",
}
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


def batch_resolutions(head: str | None, renames: Mapping[ContentKey, ContentKey] | None = None) -> Resolutions:
    """How to resolve the conflicts of the staged batch: stage again what has then seen the state at `head`, or take the operation out.

    `renames` are those of the batch: half a rename cannot be staged again.
    """
    moved = renames or {}

    def resolutions(conflict: Conflict) -> list[str]:
        key = conflict.key
        if key is None:
            return []
        if special := _SPECIAL.get(conflict.type):
            return special(key)
        seen = ("--expected-hash", head[:HASH_DIGITS]) if head else ()
        if key in moved:
            again = [command_line("content", "rename", str(key), str(moved[key]), *seen)] if conflict.actual else []
        elif key in moved.values():
            again = []
        else:
            again = _again(conflict, str(key), seen)
        return [*again, command_line("reset", str(key))]

    return resolutions


_SPECIAL: Mapping[ConflictType, Callable[[ContentKey], list[str]]] = {
    ConflictType.NAMESPACE_ABSENT: lambda key: [command_line("content", "put", str(key), "--type", "namespace")],
    ConflictType.NAMESPACE_NOT_EMPTY: lambda key: [command_line("content", "list", str(key)), command_line("reset", str(key))],
    ConflictType.NOT_A_NAMESPACE: lambda key: [command_line("content", "show", str(key))],
}


def _again(conflict: Conflict, key: str, seen: Sequence[str]) -> list[str]:
    """The command that stages the operation again, as one that has seen what is there now; none where nothing is there to be deleted or kept."""
    if conflict.proposed is None or conflict.proposed == conflict.expected:
        verb = "delete" if conflict.proposed is None else "unmodified"
        return [command_line("content", verb, key, *seen)] if conflict.actual else []
    verb = "replace" if conflict.actual and _is_another(conflict) else "put"
    return [command_line("content", verb, key, *put_options(conflict.proposed), *seen)]


def _is_another(conflict: Conflict) -> bool:
    """Whether the proposed content is another one than that which is there, or than that which was expected."""
    proposed, actual, expected = conflict.proposed, conflict.actual, conflict.expected
    if proposed is None or actual is None:
        return False
    return proposed.type_name != actual.type_name or (expected is not None and proposed.id != expected.id)


def resolutions_of(error: NessieError, call: Invocation) -> Resolutions:
    """What the command that failed offers (`call.resolutions`), else what resolves a conflict of the batch."""
    return call.resolutions or batch_resolutions(error.head if isinstance(error, ReferenceConflict) else None, call.renames)


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
    )


def _distance(error: ReferenceConflict, call: Invocation) -> int | None:
    """How many commits were made since the caller started; nothing, rather than a second failure, where that cannot be told."""
    if not (error.head and error.expected_hash and call.is_open) or error.head == error.expected_hash:
        return None
    try:
        return call.repository().ahead_behind(error.head, error.expected_hash).ahead
    except NessieError:
        return None
