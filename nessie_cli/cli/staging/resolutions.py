"""The command lines that resolve the conflicts of staged operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from nessie_cli.cli.app.global_options import carried
from nessie_cli.cli.errors.resolutions import command_line, with_current_hash
from nessie_cli.errors import ReferenceConflict, Resolution
from nessie_cli.model import (
    Conflict,
    ConflictType,
    Content,
    ContentKey,
    KeyRange,
    UnknownContent,
    type_label,
)
from nessie_cli.render.text import counted, short_hash, visible
from nessie_cli.workspace.staging import StagedList, renames

if TYPE_CHECKING:
    from collections.abc import Collection

    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.repository.changes import AnyRevision


def batch_resolver(app: Invocation) -> str:
    """Returns the command line that asks about each conflict, or nothing without a workspace."""
    return command_line(*carried(app.options), "resolve") if app.store.workspace else ""


MOST_CHILDREN = 20
"""No command line is suggested that deletes a namespace with more contents."""

TYPE_OPTION: Mapping[str, str] = {
    name: type_label(name)
    for name in ("ICEBERG_TABLE", "ICEBERG_VIEW", "NAMESPACE", "DELTA_LAKE_TABLE", "UDF")
}
"""The spelling of each content type in `--type`."""

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
"""The option of `nessie content put` that sets each attribute of a content."""


class BatchResolutions:
    """Resolves a conflict: stage the operation again on the current state, or drop it.

    Without a workspace nothing is staged, so each command line commits by itself.
    """

    def __init__(self, app: Invocation, staged: StagedList, error: ReferenceConflict) -> None:
        self._app = app
        self._renames = renames(staged)
        self._staged_keys = [item.key for item in staged]
        self._error = error

    def __call__(self, conflict: Conflict) -> Sequence[Resolution]:
        """Returns the command lines for a conflict."""
        key = conflict.key
        if key is None:
            return with_current_hash(self._app, self._error)(conflict)
        match conflict.type:
            case ConflictType.NAMESPACE_ABSENT:
                return [self._namespace("put", key), *self._reset(self._staged_below(key))]
            case ConflictType.NOT_A_NAMESPACE:
                replace = self._namespace("replace", key)._replace(
                    effect=f"deletes the present {visible(str(key))}"
                )
                return [*self._reset(self._staged_below(key)), replace]
            case ConflictType.NAMESPACE_NOT_EMPTY:
                return self._empty(key)
        drop = self._reset([key])
        if key in self._renames.values():
            # Half a rename cannot be staged again.
            return drop
        return [*self._stage_again(conflict, key), *drop]

    def _stage_again(self, conflict: Conflict, key: ContentKey) -> list[Resolution]:
        """Returns the command that stages the operation on the current state, if there is one."""
        proposed = conflict.proposed
        seen = ("--expected-hash", short_hash(self._error.head)) if self._error.head else ()
        if key in self._renames:
            return (
                [self._staging(["rename"], [key, self._renames[key]], seen)]
                if conflict.actual
                else []
            )
        if proposed is None or proposed == conflict.expected:
            verb = "delete" if proposed is None else "unmodified"
            return [self._staging([verb], [key], seen)] if conflict.actual else []
        verb = "replace" if conflict.actual and _is_another(conflict) else "put"
        return [self._staging([verb], [key], (*put_options(proposed), *seen))]

    def _namespace(self, verb: str, key: ContentKey) -> Resolution:
        return self._staging([verb], [key], ("--type", "namespace"))

    def _empty(self, key: ContentKey) -> list[Resolution]:
        """Returns commands that keep a namespace, or delete its contents."""
        left = contents_below(self._app, self._app.head, key, self._staged_keys)
        if left and self._app.workspace is None:
            left.append(key)
        deleted = f"deletes {counted(len(left), 'content')} of the branch"
        empty = [self._staging(["delete"], left)._replace(effect=deleted)] if left else []
        return [*self._reset([key]), *empty]

    def _staged_below(self, key: ContentKey) -> list[ContentKey]:
        return [staged for staged in self._staged_keys if staged != key and staged.starts_with(key)]

    def _staging(
        self, verb: Sequence[str], keys: Sequence[ContentKey], options: Sequence[str] = ()
    ) -> Resolution:
        """Returns a command line of `nessie content`.

        A key that looks like an option follows `--`.
        """
        message = () if self._app.workspace else ("-m", f"{verb[0]} {', '.join(map(str, keys))}")
        texts = list(map(str, keys))
        head = [*carried(self._app.options), "content", *verb]
        if any(text.startswith("-") for text in texts):
            return Resolution(command_line(*head, *options, *message, "--", *texts))
        return Resolution(command_line(*head, *texts, *options, *message))

    def _reset(self, keys: Sequence[ContentKey]) -> list[Resolution]:
        if self._app.workspace is None or not keys:
            return []
        dash = ["--"] if any(str(key).startswith("-") for key in keys) else []
        line = command_line(*carried(self._app.options), "reset", *dash, *map(str, keys))
        return [Resolution(line)]


def _is_another(conflict: Conflict) -> bool:
    """Whether the proposed content differs from the current and from the expected one."""
    proposed, actual, expected = conflict.proposed, conflict.actual, conflict.expected
    if proposed is None or actual is None:
        return False
    return proposed.type_name != actual.type_name or (
        expected is not None and proposed.id != expected.id
    )


def contents_below(
    app: Invocation, at: AnyRevision, key: ContentKey, staged: Collection[ContentKey] = ()
) -> list[ContentKey]:
    """Returns the keys below a key without the staged ones, or nothing if there are too many."""
    below = app.repository().entries(at, KeyRange(prefix=key))
    found = list(
        islice(
            (entry.key for entry in below if entry.key != key and entry.key not in staged),
            MOST_CHILDREN + 1,
        )
    )
    return found if len(found) <= MOST_CHILDREN else []


def put_options(content: Content) -> list[str]:
    """Returns the options of `nessie content put` that write a content."""
    if isinstance(content, UnknownContent):
        return ["--content", "FILE"]
    words = ["--type", TYPE_OPTION[content.type_name]]
    for name, value in content.attributes().items():
        words += (
            [word for text in _texts(value) for word in (FIELD_OPTION[name], text)]
            if name in FIELD_OPTION
            else []
        )
    return words


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (f"{name}={text}" for name, text in value.items())
    elif isinstance(value, list):
        yield from map(str, value)
    elif value is not None:
        yield str(value)
