"""How to undo an operation in the reflog. An undo is an operation too, so undoing it redoes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from nessie_cli.errors import InvalidInput, ReferenceMoved, ReferenceNotFound
from nessie_cli.model import ReferenceType, ReflogEntry, ReflogType
from nessie_cli.repository.changes import (
    AssignReference,
    Change,
    CreateReference,
    DeleteReference,
    PutSettings,
    RenameReference,
)
from nessie_cli.repository.expiry import expiry
from nessie_cli.repository.reader import ReadableRepository

RENAME = "rename"


class Values(NamedTuple):
    """The values of a setting before and after an undo; None if it is not set."""

    setting: str
    before: str | None
    after: str | None


class UndoStep(NamedTuple):
    """An undo: its description, the resulting reference, and the change that does it.

    `after` is None if the reference is deleted. `renamed` is its current name if the undo renames
    it. An undo that changes a setting has `values`, and neither hashes nor a resulting reference.
    """

    verb: str
    name: str
    type: ReflogType
    before: str | None
    after: str | None
    change: Change[Any]
    renamed: str | None = None
    values: Values | None = None


def check_exists(repository: ReadableRepository, name: str) -> None:
    """Raises `ReferenceNotFound` for a name without a reflog, unless it is that of a reference.

    The operations on a reference expire, and the reference stays.
    """
    try:
        repository.reference(name)
    except ReferenceNotFound:
        raise ReferenceNotFound(
            f"no reference '{name}' exists, and the reflog has no operation on one", name
        ) from None


def last_operation(repository: ReadableRepository, name: str) -> ReflogEntry:
    """Returns the last operation on a reference or setting.

    Raises `ReferenceNotFound` if there is no such reference, `InvalidInput` if all operations have
    expired.
    """
    last = next(repository.reflog(name), None)
    if last is None:
        check_exists(repository, name)
        raise InvalidInput(f"there is nothing to undo: the operations on '{name}' have expired")
    return last


def plan(repository: ReadableRepository, name: str, to: int | None = None) -> UndoStep:
    """Returns the step that undoes the last operation on a reference, or all after number `to`.

    A name `setting:NAME` is a setting. Raises `ReferenceNotFound` for a name without a reflog,
    `InvalidInput` if there is nothing to undo.
    """
    last = last_operation(repository, name)
    if last.setting is not None:
        before = last.value_before if to is None else _position(repository, name, to).value_after
        return _set_back(repository, last.setting, last, before)
    if to is None and last.operation == RENAME:
        return _rename_back(repository, last)
    target = last.before if to is None else _position(repository, name, to).after
    if target == last.after:
        raise InvalidInput(f"'{name}' is at this hash already: nothing to undo")
    return _step(repository, last, target)


def last_operation_of(
    repository: ReadableRepository, callers: Collection[str]
) -> ReflogEntry | None:
    """Returns the newest operation of a caller, under any of the caller's names."""
    return next((entry for entry in repository.reflog() if entry.who in callers), None)


def operation_number(repository: ReadableRepository, number: int) -> ReflogEntry:
    """Returns the operation with a number. Raises `InvalidInput` if the reflog has none."""
    for entry in repository.reflog():
        if entry.number == number:
            return entry
    raise InvalidInput(
        f"--to {number}: the reflog has no such operation; `nessie reflog --all` lists them"
    )


def operations_since(
    repository: ReadableRepository, name: str, first: int, before: int | None = None
) -> Iterator[ReflogEntry]:
    """Yields the operations on a reference from number `first` on, newest first.

    Those under its earlier names are included. With `before`, only operations before this number.
    """
    for entry in repository.reflog(name):
        if entry.number < first:
            return
        if before is not None and entry.number >= before:
            continue
        yield entry
        if entry.operation == RENAME and entry.before is None:
            deletion = _other_half(repository, entry)
            if deletion is not None:
                yield from operations_since(repository, deletion.reference, first, entry.number)


def _other_half(repository: ReadableRepository, half: ReflogEntry) -> ReflogEntry | None:
    """Returns the other entry of a rename: a creation and then a deletion; None if it is hidden."""
    number = half.number + (1 if half.before is None else -1)
    other = next(repository.reflog(limit=1, before=number + 1), None)
    if other is None or other.number != number or other.operation != RENAME:
        return None
    return other


def _position(repository: ReadableRepository, name: str, to: int) -> ReflogEntry:
    for entry in repository.reflog(name):
        if entry.number == to:
            return entry
    raise InvalidInput(
        f"--to {to}: the reflog of '{name}' has no such operation; `nessie reflog {name}` lists"
        " them"
    )


def _set_back(
    repository: ReadableRepository, setting: str, last: ReflogEntry, before: str | None
) -> UndoStep:
    """Returns the step that sets a setting to `before`, or removes it (None)."""
    now = repository.config().settings.get(setting)
    if now != last.value_after:
        raise InvalidInput(
            f"setting {setting} has changed since operation {last.number}",
            hint=f"`nessie reflog {last.reference}` lists its changes",
        )
    if before == now:
        raise InvalidInput(f"setting {setting} has this value already: nothing to undo")
    return UndoStep(
        "removed" if before is None else "restored",
        last.reference,
        last.type,
        None,
        None,
        PutSettings({setting: before}),
        values=Values(setting, now, before),
    )


def _step(repository: ReadableRepository, last: ReflogEntry, target: str | None) -> UndoStep:
    name, now = last.reference, last.after
    if target is None:
        assert now is not None
        return UndoStep(
            "deleted",
            name,
            last.type,
            now,
            None,
            DeleteReference(name, now),
        )
    if now is None:
        message = _message_before_deletion(repository, last)
        return UndoStep(
            "restored",
            name,
            last.type,
            None,
            target,
            CreateReference(ReferenceType(last.type), name, target, message),
        )
    return UndoStep(
        "moved",
        name,
        last.type,
        now,
        target,
        # The reference was there, so commits of a failed run were allowed at that time.
        AssignReference(name, target, now, allow_failed_run=True),
    )


def _message_before_deletion(repository: ReadableRepository, deletion: ReflogEntry) -> str:
    if deletion.type is not ReflogType.TAG:
        return ""
    return next(
        (
            entry.message
            for entry in repository.reflog(deletion.reference)
            if entry.number < deletion.number
        ),
        "",
    )


def _rename_back(repository: ReadableRepository, last: ReflogEntry) -> UndoStep:
    """Returns the undo of a rename.

    Raises `ReferenceMoved` if the new name has changed since: the branch may be another one.
    """
    other = _other_half(repository, last)
    if other is None:
        raise InvalidInput(
            f"'{last.reference}' was renamed, but its other name is not in the reflog"
        )
    creation, deletion = (last, other) if last.before is None else (other, last)
    old, new = deletion.reference, creation.reference
    newest = last_operation(repository, new)
    if newest.number != creation.number:
        command = "nessie tag --move" if last.type is ReflogType.TAG else "nessie branch -m"
        raise ReferenceMoved(
            (
                f"'{old}' was renamed to '{new}', and '{new}' has changed since"
                f" ({newest.operation} by {newest.who or 'an unknown user'})"
            ),
            hint=f"`{command} {new} {old}` renames '{new}' as it is now" if newest.after else "",
        )
    hash_ = creation.after
    assert hash_ is not None, "a reference was created at a commit"
    return UndoStep(
        "renamed",
        old,
        last.type,
        hash_,
        hash_,
        RenameReference(new, old, hash_),
        renamed=new,
    )


def has_expired(repository: ReadableRepository, step: UndoStep, now: datetime) -> bool:
    """Whether the step's commit has left the reflog.

    Then `nessie gc` may have deleted its table files.
    """
    if step.after is None or step.renamed:
        return False
    limit = expiry(repository.config().settings).moves
    moves = repository.reflog(step.name)
    return not any(
        now - move.time <= limit and step.after in (move.before, move.after) for move in moves
    )
