"""The staged batch for people and programs: one row or one JSON operation per change, renames as one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from nessie_cli.model import Delete, Put, Unchanged
from nessie_cli.render.fields import type_label
from nessie_cli.workspace.batch import Batch, Staged, encode_batch
from nessie_cli.workspace.staging import renames

if TYPE_CHECKING:
    from nessie_cli.cli.context import Invocation


class StagedChange(NamedTuple):
    """One change that a batch makes: what happens, to which key, and the content type (or, for a rename, the new key)."""

    verb: str
    key: str
    what: str


_STYLES = {"create": "created", "update": "updated", "replace": "updated", "rename": "renamed", "delete": "deleted", "unmodified": "label"}
"""How each verb is shown."""


def changes_of(staged: tuple[Staged, ...]) -> list[StagedChange]:
    """What staged operations amount to, in the order they were staged."""
    moved = renames(staged)
    targets = set(moved.values())
    found: dict[str, StagedChange] = {}
    for item in staged:
        key = str(item.key)
        if item.key in moved and isinstance(item.operation, Delete):
            found[key] = StagedChange("rename", key, str(moved[item.key]))
        elif item.key not in targets:
            found[key] = StagedChange("replace" if key in found else _verb(item), key, _type(item))
    return list(found.values())


def _verb(item: Staged) -> str:
    if isinstance(item.operation, Delete):
        return "delete"
    if isinstance(item.operation, Unchanged):
        return "unmodified"
    if item.seen is None:
        return "create"
    return "update" if item.operation.content.id == item.seen.id else "replace"


def _type(item: Staged) -> str:
    content = item.operation.content if isinstance(item.operation, Put) else item.seen
    return type_label(content.type_name) if content else ""


def print_changes(call: Invocation, changes: Iterable[StagedChange], indent: str = "") -> None:
    """One line per change: what happens, to which key, and what it is."""
    from nessie_cli.render.spans import Span

    for change in changes:
        call.say(Span(f"{indent}{change.verb:<10} ", _STYLES[change.verb]), Span(change.key, "key"), f"  {change.what}".rstrip())


_LETTERS = {"create": "A", "update": "M", "replace": "M", "rename": "R", "delete": "D", "unmodified": "="}
"""What each verb is in a short list."""


def print_short(call: Invocation, changes: Iterable[StagedChange], conflicts: Collection[str]) -> None:
    """As `git status --short`: the letter of what is staged, C where one of its keys is in conflict, the key; of a rename the old and the new one."""
    from nessie_cli.render.spans import Span

    for change in changes:
        keys = [change.key, change.what] if change.verb == "rename" else [change.key]
        state = Span("C", "conflict") if set(keys) & set(conflicts) else Span(" ")
        call.say(Span(_LETTERS[change.verb], _STYLES[change.verb]), state, Span(f" {' -> '.join(keys)}", "key"))


def batch_document(batch: Batch | None, reference: str) -> dict[str, Any]:
    """The JSON of what is staged; no operations where nothing is."""
    body = encode_batch(batch) if batch else {"begunAt": None, "operations": []}
    body.pop("version", None)
    return {"reference": body.pop("branch", reference), **body}
