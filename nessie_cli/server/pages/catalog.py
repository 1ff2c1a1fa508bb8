"""The page of a catalog at a revision: one level of namespaces and contents at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from nessie_cli.inspection.levels import Child, ContentCount, children, count_contents
from nessie_cli.model import CommitMeta, ContentKey, Entry, KeyRange, Namespace, Reference
from nessie_cli.revisions import Revision
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pages.call import PageCall
from nessie_cli.server.pages.html import redirect
from nessie_cli.server.pages.urls import page_url
from nessie_cli.wire.keys import encode_canonical

ROWS, ROWS_WITH_CHANGES = 50, 20
"""The rows of one page, and of one with the last changes, which need a look-up each."""
COUNTED, COUNTED_IN_ROWS, COUNTED_AT_LEAST = 1_000, 2_000, 20
"""The most keys that are read to count contents: of the level, and of all rows.

In any case, the third number is read for each row.
"""
_ROOT = ContentKey(())


class CatalogRow(NamedTuple):
    """A child with the number of contents below it, and its last change if it was requested."""

    child: Child
    contents: ContentCount | None
    last: CommitMeta | None


def catalog(call: PageCall) -> Reply:
    """`GET /ui/catalog`: the children of the namespace `key`, behind the key `after`."""
    at = call.reference_named()
    parent, after = call.key("key") or _ROOT, call.key("after")
    shows_changes = bool(call.text("changes"))
    size = ROWS_WITH_CHANGES if shows_changes else ROWS
    page = list(islice(children(call.repository, at.hash, parent, after), size + 1))
    listed = page[:size]
    entry = _entry_of(call, at, parent)
    if entry is not None and entry.type != Namespace.type and not listed:
        key = encode_canonical(parent)
        return redirect(page_url("content", ref=call.text("ref") or at.name, key=key))
    return call.page(
        "catalog.html",
        str(parent) if parent.elements else f"Catalog of {at.name or at.hash[:12]}",
        at=at,
        parent=parent,
        above=[ContentKey(parent.elements[:n]) for n in range(1, len(parent.elements))],
        has_content=entry is not None,
        exists=bool(listed) or entry is not None or not parent.elements,
        count=count_contents(call.repository, at.hash, parent, COUNTED),
        rows=list(_rows(call, at, listed, shows_changes=shows_changes)),
        shows_changes=1 if shows_changes else None,
        is_first=after is None,
        after=listed[-1].key if len(page) > size else None,
    )


def _entry_of(call: PageCall, at: Reference, key: ContentKey) -> Entry | None:
    """Returns the entry of a key; None for the root, and if there is none."""
    if not key.elements:
        return None
    return next(iter(call.repository.entries(at.hash, KeyRange(keys=(key,)))), None)


def _rows(
    call: PageCall, at: Reference, listed: Sequence[Child], *, shows_changes: bool
) -> Iterator[CatalogRow]:
    left, parents = COUNTED_IN_ROWS, sum(child.is_parent for child in listed)
    for child in listed:
        count = None
        if child.is_parent:
            parents -= 1
            most = max(left - parents * COUNTED_AT_LEAST, COUNTED_AT_LEAST)
            count = count_contents(call.repository, at.hash, child.key, most)
            left -= most if count.is_least else count.number
        last = None
        if shows_changes and child.entry is not None:
            last = call.repository.last_change(Revision(None, at.hash), child.key)
        yield CatalogRow(child, count, last)
