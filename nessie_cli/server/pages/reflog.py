"""The page of the reflog, with undo and redo."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from nessie_cli.errors import ReferenceMoved
from nessie_cli.inspection.undo import last_operation, plan
from nessie_cli.model import ReflogEntry
from nessie_cli.model.references import SETTING_PREFIX
from nessie_cli.server.auth.authorized import AuthorizedRepository
from nessie_cli.server.auth.rules import VIEW_REFLOG
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pages.call import PageCall
from nessie_cli.server.pages.html import redirect
from nessie_cli.server.pages.listings import ROWS
from nessie_cli.server.pages.urls import page_url


class OperationRow(NamedTuple):
    """An operation; `can_be_undone` if it is the newest one of its reference or setting."""

    entry: ReflogEntry
    can_be_undone: bool


def reflog(call: PageCall) -> Reply:
    """`GET /ui/reflog`: the operations on all references, or on `ref`, newest first."""
    name = call.text("ref") or None
    number = max(call.number("page") or 1, 1)
    first = (number - 1) * ROWS
    seen: set[str] = set()
    rows = []
    for entry in islice(call.repository.reflog(name), first + ROWS + 1):
        # The default branch cannot be deleted.
        is_first = entry.before is None and entry.reference == call.default_branch
        rows.append(OperationRow(entry, entry.reference not in seen and not is_first))
        seen.add(entry.reference)
    return call.page(
        "reflog.html",
        f"Reflog of {name}" if name else "Reflog",
        name=name or "",
        rows=rows[first : first + ROWS],
        previous=number - 1,
        next=number + 1 if len(rows) > first + ROWS else 0,
    )


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
