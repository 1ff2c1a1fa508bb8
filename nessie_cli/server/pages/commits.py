"""The page of one commit: its metadata, and its changes field by field."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from nessie_cli.inspection.changes import ContentChange, changes_of_commit, tally
from nessie_cli.inspection.fields import Difference, changed_fields
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pages.call import PageCall
from nessie_cli.server.pages.listings import listing


class ChangeRow(NamedTuple):
    """A changed content, with the fields that differ."""

    change: ContentChange
    fields: Sequence[Difference]


def change_rows(changes: Sequence[ContentChange]) -> list[ChangeRow]:
    """Returns changes with their fields."""
    return [ChangeRow(change, changed_fields(change)) for change in changes]


def commit(call: PageCall) -> Reply:
    """`GET /ui/commit`: the commit of a revision."""
    at = call.reference_named()
    entry = call.repository.commit_at(at.hash)
    changes = changes_of_commit(call.repository, entry)
    page = listing(call, changes)
    names = [each for each in call.repository.references() if each.hash == entry.hash]
    return call.page(
        "commit.html",
        f"Commit {entry.hash[:12]}",
        at=at,
        entry=entry,
        names=list(islice(names, 20)),
        numbers=tally(changes),
        listing=page,
        rows=change_rows(page.rows),
    )
