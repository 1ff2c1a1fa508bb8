"""The page of one commit: its metadata, and its changes field by field."""

from __future__ import annotations

from itertools import islice

from nessie_cli.inspection.changes import tally
from nessie_cli.inspection.comparison import first_changes
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pages.call import PageCall
from nessie_cli.server.pages.changes import CHANGES, MOST_CHANGES, shown_changes
from nessie_cli.server.pages.history import MOST_NAMES
from nessie_cli.server.pages.listings import listing
from nessie_cli.server.pages.table_access import TableAccess


async def commit(access: TableAccess, call: PageCall) -> Reply:
    """`GET /ui/commit`: the commit of a revision."""
    reply: Reply = await access.answer(call, lambda call: _commit(access, call))
    return reply


def _commit(access: TableAccess, call: PageCall) -> Reply:
    at = call.reference_named()
    entry = call.commit_named(call.text("ref") or call.default_branch)
    first = first_changes(call.repository, entry.parent, entry.hash, MOST_CHANGES)
    page = listing(call, first.changes, CHANGES)
    names = [each for each in call.repository.references() if each.hash == entry.hash]
    return call.page(
        "commit.html",
        f"Commit {entry.hash[:12]}",
        at=at,
        entry=entry,
        names=list(islice(names, MOST_NAMES)),
        numbers=tally(first.changes),
        is_cut=first.is_cut,
        most=MOST_CHANGES,
        listing=page,
        shown=shown_changes(call, access, page.rows, entry.parent, entry.hash),
        has_warehouses=access.has_warehouses,
        reads_rows=access.rows is not None,
    )
