"""The pages of branches and tags, and the forms that change them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from heapq import merge
from typing import NamedTuple

from msgspec import structs

from nessie_cli.errors import InvalidInput, NotAllowed, ReferenceNotFound
from nessie_cli.inspection.references import LastCommit, last_commit
from nessie_cli.model import (
    NO_ANCESTOR,
    AheadBehind,
    Reference,
    ReferenceMetadata,
    ReferenceType,
)
from nessie_cli.model.batches import batched
from nessie_cli.repository.changes import CreateReference, DeleteReference, RenameReference
from nessie_cli.revisions import Revision
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pages.call import PageCall
from nessie_cli.server.pages.html import redirect
from nessie_cli.server.pages.listings import Listing, listing
from nessie_cli.server.pages.urls import page_url

_NEVER = datetime.min.replace(tzinfo=UTC)
_SORTED = 10_000
"""The most references that are sorted by one call."""


class BranchRow(NamedTuple):
    """A branch with its last commit, compared with the default branch (None for that one)."""

    reference: Reference
    last: LastCommit
    distance: AheadBehind | None


def branches(call: PageCall) -> Reply:
    """`GET /ui/branches`: newest activity first, the default branch before all others."""
    page = _newest_first(call, ReferenceType.BRANCH)
    rows = [BranchRow(each, last, _distance(call, each)) for each, last in page.rows]
    return call.page("branches.html", "Branches", listing=page, rows=rows, deleted=_deleted(call))


def tags(call: PageCall) -> Reply:
    """`GET /ui/tags`: newest commit first."""
    page = _newest_first(call, ReferenceType.TAG)
    messages = call.repository.messages([each.name for each, _ in page.rows])
    return call.page("tags.html", "Tags", listing=page, messages=messages, deleted=_deleted(call))


def _deleted(call: PageCall) -> str:
    """Returns the reference that the form before this page has deleted, if it still is."""
    name = call.text("deleted")
    last = next(call.repository.reflog(name, limit=1), None) if name else None
    return last.reference if last is not None and last.operation == "delete" else ""


def _newest_first(call: PageCall, type_: ReferenceType) -> Listing[tuple[Reference, LastCommit]]:
    pattern = (call.text("q") or "").lower()
    # A subject can have a megabyte, so those of all references are not kept.
    timed = [
        (each, _last(call, each).time)
        for each in call.repository.references(type_)
        if pattern in each.name.lower()
    ]
    page = listing(call, newest_first(timed, call.default_branch))
    return page.with_rows([(each, _last(call, each)) for each, _ in page.rows])


def newest_first(
    timed: Iterable[tuple[Reference, datetime | None]], default_branch: str
) -> list[tuple[Reference, datetime | None]]:
    """Returns references with their times, newest first, the default branch before all others.

    No other thread runs during a sort, so it sorts parts.
    """

    def place(pair: tuple[Reference, datetime | None]) -> tuple[bool, float]:
        reference, time = pair
        return reference.name != default_branch, -(time or _NEVER).timestamp()

    parts = [sorted(part, key=place) for part in batched(timed, _SORTED)]
    return list(merge(*parts, key=place))


def _last(call: PageCall, reference: Reference) -> LastCommit:
    """Returns the last commit of a reference, if the caller may read it. Costs one small read."""
    if reference.hash == NO_ANCESTOR:
        return last_commit(reference)
    # A caller with rights sees a commit through its reference. All others need no second look-up.
    at = Revision(reference.name) if call.has_rights else Revision(None, reference.hash)
    try:
        head = next(iter(call.repository.log(at))).meta
    except (NotAllowed, ReferenceNotFound):
        return last_commit(reference)
    return last_commit(structs.replace(reference, metadata=ReferenceMetadata(head=head)))


def _distance(call: PageCall, branch: Reference) -> AheadBehind | None:
    if branch.name == call.default_branch:
        return None
    # The caller may not be allowed to view the default branch.
    with suppress(NotAllowed, ReferenceNotFound):
        return call.repository.ahead_behind(Revision(branch.name), Revision(call.default_branch))
    return None


# -- forms -----------------------------------------------------------------------------------------
def create(call: PageCall) -> Reply:
    """`POST /ui/references/create`: a branch or tag at a revision."""
    try:
        type_ = ReferenceType((call.field("type") or "branch").upper())
    except ValueError:
        raise InvalidInput("type: must be branch or tag") from None
    name = call.needed_field("name")
    target = call.repository.resolve(call.needed_field("at")).hash
    message = call.field("message") if type_ is ReferenceType.TAG else ""
    call.submit(CreateReference(type_, name, target, message))
    return redirect(page_url("tags" if type_ is ReferenceType.TAG else "history", ref=name))


def rename(call: PageCall) -> Reply:
    """`POST /ui/references/rename`: a reference that is where the page showed it."""
    old, new = call.needed_field("name"), call.needed_field("new")
    reference = call.repository.reference(old)
    call.submit(RenameReference(old, new, call.needed_field("hash")))
    return redirect(page_url(_list_of(reference), q=new))


def delete(call: PageCall) -> Reply:
    """`POST /ui/references/delete`: a reference that is where the page showed it."""
    name = call.needed_field("name")
    reference = call.repository.reference(name)
    call.submit(DeleteReference(name, call.needed_field("hash")))
    return redirect(page_url(_list_of(reference), deleted=name))


def _list_of(reference: Reference) -> str:
    return "tags" if reference.type is ReferenceType.TAG else "branches"
