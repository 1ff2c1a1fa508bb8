"""The page that compares two revisions: numbers, details, and the changed rows of a table."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from msgspec import structs

from nessie_cli.errors import InvalidInput, NessieError, NotAllowed
from nessie_cli.inspection.changes import tally
from nessie_cli.inspection.comparison import first_changes
from nessie_cli.model import ContentKey, KeyRange, Reference, ReferenceType
from nessie_cli.repository.reader import ALL_KEYS
from nessie_cli.revisions import Revision
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.nessie.rows import RowQuestion
from nessie_cli.server.pages.call import PageCall
from nessie_cli.server.pages.changes import CHANGES, MOST_CHANGES, shown_changes
from nessie_cli.server.pages.listings import listing
from nessie_cli.server.pages.row_table import MOST_COLUMNS, MOST_ROWS, RowTable, row_table
from nessie_cli.server.pages.table_access import TableAccess
from nessie_cli.server.pages.urls import page_url
from nessie_cli.server.runtime.row_request import RowRequest

_MERGE = "merge"
_MOST_ANSWER = 8 << 20
"""The most bytes of the rows of a page in memory. Compressed ones could have any number."""


class Sides(NamedTuple):
    """The revisions that are compared, as their texts and commits.

    `before` is that of `start`, or the merge base of both.
    """

    start_text: str
    end_text: str
    start: Reference
    end: Reference
    before: Reference
    is_merge: bool

    @property
    def names(self) -> tuple[str, str]:
        """The names of both revisions for people."""
        return _name(self.start, self.start_text), _name(self.end, self.end_text)

    @property
    def are_branches(self) -> bool:
        """Whether both are branches, of which one can be merged into the other."""
        return self.start_text != self.end_text and all(
            reference.type is ReferenceType.BRANCH and reference.name == text
            for reference, text in ((self.start, self.start_text), (self.end, self.end_text))
        )

    @property
    def query(self) -> dict[str, str]:
        """The query fields of this comparison."""
        merge = {"base": _MERGE} if self.is_merge else {}
        return {"from": self.start_text, "to": self.end_text} | merge

    @property
    def fixed_url(self) -> str:
        """The address of this comparison between commits."""
        commits = {"from": self.start.hash, "to": self.end.hash}
        return page_url("compare", **(self.query | commits))

    @property
    def swapped_url(self) -> str:
        """The address of the opposite comparison."""
        ends = {"from": self.end_text, "to": self.start_text}
        return page_url("compare", **(self.query | ends))

    @property
    def other_url(self) -> str:
        """The address of the comparison in the other form."""
        ends = {"from": self.start_text, "to": self.end_text}
        return page_url("compare", **ends, base=None if self.is_merge else _MERGE)


def _name(reference: Reference, text: str) -> str:
    is_commit = reference.type is ReferenceType.DETACHED and reference.hash == text
    return reference.hash[:12] if is_commit else text


async def compare(access: TableAccess, call: PageCall) -> Reply:
    """`GET /ui/compare`: what differs from `from` to `to`, or from their merge base to `to`.

    `rows` is the key of a table whose changed rows are shown.
    """
    reply: Reply
    if not call.text("rows"):
        reply = await access.answer(call, partial(_changes, access))
        return reply
    asked: _Asked = await access.answer(call, partial(_ask_rows, access))
    if asked.request is not None and access.rows is not None:
        try:
            processes = access.rows.processes
            data = await processes.whole(asked.request, call.watch_client())
            asked = asked._replace(data=data)
        except InvalidInput as error:
            # The process refuses what it cannot read, such as a filter or too many rows.
            asked = asked._replace(refusal=error.message)
    reply = await access.answer(call, partial(_rows, access, asked))
    return reply


def _sides(call: PageCall) -> Sides:
    start_text, end_text = (call.text(name) or call.default_branch for name in ("from", "to"))
    start, end = (call.repository.resolve(text) for text in (start_text, end_text))
    is_merge = call.text("base") == _MERGE
    before = start
    if is_merge:
        commits = (Revision(None, each.hash) for each in (start, end))
        before = call.repository.resolve(Revision(None, call.repository.merge_base(*commits)))
    return Sides(start_text, end_text, start, end, before, is_merge)


def _page(call: PageCall, sides: Sides, **values: Any) -> Reply:
    start, end = sides.names
    title = (
        f"What merging {end} into {start} would change"
        if sides.is_merge
        else f"What changed from {start} to {end}"
    )
    shown = {"revision": sides.end_text, "fixed_url": sides.fixed_url, "sides": sides}
    return call.page("compare.html", title, at=sides.end, **(shown | values))


def _changes(access: TableAccess, call: PageCall) -> Reply:
    sides = _sides(call)
    key = call.key("key")
    keys = ALL_KEYS if key is None else KeyRange(prefix=key)
    first = first_changes(call.repository, sides.before.hash, sides.end.hash, MOST_CHANGES, keys)
    page = listing(call, first.changes, CHANGES)
    return _page(
        call,
        sides,
        key=key,
        numbers=tally(first.changes),
        is_cut=first.is_cut,
        most=MOST_CHANGES,
        listing=page,
        shown=shown_changes(call, access, page.rows, sides.before.hash, sides.end.hash),
        has_warehouses=access.has_warehouses,
        reads_rows=access.rows is not None,
        table=None,
    )


# -- rows ------------------------------------------------------------------------------------------
class _Asked(NamedTuple):
    """A question for rows: what a process has to read, or why it is refused; and its answer."""

    sides: Sides
    key: ContentKey
    request: RowRequest | None = None
    refusal: str = ""
    data: bytes = b""


def _ask_rows(access: TableAccess, call: PageCall) -> _Asked:
    sides, key = _sides(call), call.key_named("rows")
    if access.rows is None:
        refusal = "this server has no warehouse, so it reads no rows"
        return _Asked(sides, key, refusal=refusal)
    question = RowQuestion(
        sides.before,
        sides.end,
        key,
        call.key("was") or key,
        where=call.text("where") or None,
        limit=MOST_ROWS + 1,
    )
    try:
        request = access.rows.request(call.repository, question)
    except (NotAllowed, InvalidInput) as error:
        return _Asked(sides, key, refusal=error.message)
    limits = request.limits._replace(answer=min(request.limits.answer, _MOST_ANSWER))
    return _Asked(sides, key, structs.replace(request, limits=limits, compressed=False))


def _rows(access: TableAccess, asked: _Asked, call: PageCall) -> Reply:
    table: RowTable | None = None
    refusal = asked.refusal
    if asked.data:
        try:
            table = row_table(asked.data)
        except NessieError as error:
            refusal = error.message
    return _page(
        call,
        asked.sides,
        key=asked.key,
        was=call.text("was") or "",
        where=call.text("where") or "",
        table=table,
        refusal=refusal,
        limits=access.rows.processes.limits if access.rows else None,
        most_rows=MOST_ROWS,
        most_columns=MOST_COLUMNS,
    )
