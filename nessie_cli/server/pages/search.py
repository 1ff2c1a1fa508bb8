"""The page that finds contents by a part of their key, at a revision or on all branches."""

from __future__ import annotations

import time
from itertools import islice
from typing import Any

from nessie_cli.inspection.names import Matches, search_branches
from nessie_cli.model import Reference, ReferenceType
from nessie_cli.revisions import Revision
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pages.call import PageCall
from nessie_cli.server.pages.table_access import TableAccess

MOST = 100
"""The most matches of a page."""
SECONDS, FIRST_SECONDS = 2.0, 0.04
"""The time of a search over all branches, and that of its first answer."""


async def search(access: TableAccess, call: PageCall) -> Reply:
    """`GET /ui/search`: the keys that contain `q`, at `ref`, or on all branches with `all`."""
    reply: Reply = await access.answer(call, _search)
    return reply


def _search(call: PageCall) -> Reply:
    at = call.reference_named()
    text = (call.text("q") or "").strip()
    values: dict[str, Any] = {"text": text, "most": MOST, "seconds": SECONDS, "matches": None}
    is_full = bool(call.text("full"))
    values |= {"entries": (), "is_cut": False, "is_everywhere": bool(call.text("all"))}
    values["is_full"] = is_full
    if text and values["is_everywhere"]:
        values["matches"] = _on_branches(call, at, text, SECONDS if is_full else FIRST_SECONDS)
    elif text:
        find = call.repository.key_finder(text)
        entries = list(islice(find(Revision(None, at.hash)), MOST + 1))
        values |= {"entries": entries[:MOST], "is_cut": len(entries) > MOST}
    return call.page("search.html", "Search", at=at, **values)


def _on_branches(call: PageCall, at: Reference, text: str, seconds: float) -> Matches:
    branches = list(call.repository.references(ReferenceType.BRANCH))
    # The state that the page shows comes first.
    branches.sort(key=lambda branch: branch.hash != at.hash)
    until = time.monotonic() + seconds
    return search_branches(call.repository, branches, text, MOST, lambda: time.monotonic() > until)
