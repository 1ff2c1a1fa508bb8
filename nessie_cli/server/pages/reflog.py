"""The page of the reflog, with undo and redo."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

from msgspec import structs

from nessie_cli.errors import ReferenceMoved
from nessie_cli.inspection.undo import RENAME, last_operation, plan
from nessie_cli.model import ReflogEntry
from nessie_cli.model.references import SETTING_PREFIX
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.server.auth.authorized import AuthorizedRepository
from nessie_cli.server.auth.rules import VIEW_REFLOG
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pages.call import PageCall
from nessie_cli.server.pages.html import redirect
from nessie_cli.server.pages.listings import ROWS
from nessie_cli.server.pages.urls import page_url

UNDO, REDO = "undo of ", "redo of "
_LONG = 10_000
"""The length from which texts of entries are shortened."""


class OperationRow(NamedTuple):
    """An operation; `can_be_undone` if it is the newest one of its reference or setting.

    An undo and a redo have the `operation` and the message that they undid or did again, and a
    `prefix`.
    """

    entry: ReflogEntry
    can_be_undone: bool
    operation: str
    message: str
    prefix: str = ""

    @property
    def button(self) -> str:
        """The word of the button that undoes it."""
        return "Redo" if self.prefix == UNDO else "Undo"


def reflog(call: PageCall) -> Reply:
    """`GET /ui/reflog`: the operations on all references, or on `ref`, newest first.

    `before` is the number of the last operation of the page before.
    """
    name, before = call.text("ref") or None, call.number("before")
    # An undo is known by the operation before it, which may be on the next page.
    newest = islice(call.repository.reflog(name, before=before), 2 * ROWS)
    entries = list(map(_shortened, newest))
    rows = _rows(entries, call.default_branch)[:ROWS]
    if before is not None:
        rows = [_unless_followed(call.repository, row) for row in rows]
    return call.page(
        "reflog.html",
        f"Reflog of {name}" if name else "Reflog",
        name=name or "",
        rows=rows,
        is_newest=before is None,
        before=rows[-1].entry.number if len(entries) > ROWS else None,
    )


def _shortened(entry: ReflogEntry) -> ReflogEntry:
    """Returns an entry without the ends of long texts: a setting may have megabytes."""
    before, after = entry.value_before, entry.value_after
    return structs.replace(
        entry,
        message=entry.message[:_LONG],
        value_before=before and _short(before),
        value_after=after and _short(after),
    )


def _short(value: str) -> str:
    # The page shows less of it. The digest still tells it from others.
    digest = blake2b(value[_LONG:].encode(errors="replace")).hexdigest()
    return value if len(value) <= _LONG else value[:_LONG] + digest


def _unless_followed(repository: ReadableRepository, row: OperationRow) -> OperationRow:
    """Returns an operation that cannot be undone if a later page has a newer one."""
    if not row.can_be_undone:
        return row
    newest = next(repository.reflog(row.entry.reference, limit=1), None)
    is_newest = newest is not None and newest.number == row.entry.number
    return row._replace(can_be_undone=is_newest)


def _rows(entries: Sequence[ReflogEntry], default_branch: str) -> list[OperationRow]:
    """Returns operations, which are the newest first."""
    rows: list[OperationRow] = []
    previous: dict[str, OperationRow] = {}
    for entry in reversed(entries):
        row = _row(entry, previous.get(entry.reference))
        rows.append(row)
        previous[entry.reference] = row
    newest = {row.entry.number for row in previous.values()}
    return [
        # The default branch cannot be deleted.
        row._replace(
            can_be_undone=row.entry.number in newest
            and not (row.entry.before is None and row.entry.reference == default_branch)
        )
        for row in reversed(rows)
    ]


def _row(entry: ReflogEntry, before: OperationRow | None) -> OperationRow:
    """Returns an operation, given the one before it on the same reference or setting."""
    if before is None or not _reverses(entry, before.entry):
        return OperationRow(entry, False, entry.operation, entry.message)
    prefix = REDO if before.prefix == UNDO else UNDO
    return OperationRow(entry, False, before.operation, before.message, prefix)


def _reverses(entry: ReflogEntry, before: ReflogEntry) -> bool:
    """Returns whether an operation puts back what another one changed."""
    if entry.setting is not None:
        return (entry.value_before, entry.value_after) == (before.value_after, before.value_before)
    is_undo = entry.operation in ("assign", "create") and before.operation != RENAME
    return is_undo and (entry.before, entry.after) == (before.after, before.before)


def undo(call: PageCall) -> Reply:
    """`POST /ui/undo`: undoes the operation that the page showed. An undo is undone as well."""
    name, number = call.needed_field("name"), call.needed_field("number")
    repository = call.repository
    if isinstance(repository, AuthorizedRepository) and not name.startswith(SETTING_PREFIX):
        repository.rights.require(VIEW_REFLOG, name)
    last = last_operation(repository, name)
    if str(last.number) != number:
        raise ReferenceMoved(
            f"'{name}' has changed since this page was shown ({last.operation} by"
            f" {last.who or 'an unknown user'}); nothing was undone"
        )
    call.submit(plan(repository, name).change)
    return redirect(page_url("reflog"))
