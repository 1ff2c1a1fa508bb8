"""The page of a history: commits with their graph, newest first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from nessie_cli.errors import InvalidInput, NotAllowed, ReferenceNotFound
from nessie_cli.inspection.graph import Graph, PlacedCommit
from nessie_cli.model import NO_ANCESTOR, LogEntry, Reference
from nessie_cli.repository.log_filter import LogFilter, PlainText, Walk, reachable
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.revisions import Revision
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pages.call import PageCall
from nessie_cli.server.pages.history_search import HistorySearch, Place, place_of
from nessie_cli.server.pages.table_access import TableAccess
from nessie_cli.wire import keys

COMMITS = 50
"""The commits of one page."""
MOST_NAMES = 20
"""The most references that are named at a commit."""
_MOST_LANES = 64
"""The lanes that go on to the next page: many proxies refuse addresses of more than 8 KiB."""
_HASH = re.compile("[0-9a-f]{64}")


class Line(NamedTuple):
    """A line in the row of a commit, from one lane at the top to another one at the bottom.

    It ends at the commit if `bottom` is None, and begins there if `top` is None.
    """

    top: int | None
    bottom: int | None


class Lanes(NamedTuple):
    """The hash that each lane waits for, or None.

    With `is_reserved`, the first lane is kept for the default branch, and has no line yet.
    """

    hashes: Sequence[str | None]
    is_reserved: bool = False

    @property
    def drawn(self) -> set[int]:
        """The lanes that have a line."""
        drawn = {lane for lane, hash_ in enumerate(self.hashes) if hash_ is not None}
        return drawn - {0} if self.is_reserved else drawn

    @property
    def token(self) -> str:
        """The lanes as a query parameter; empty if none waits."""
        if not any(self.hashes):
            return ""
        return ("~" if self.is_reserved else "") + ".".join(hash_ or "" for hash_ in self.hashes)


class CommitRow(NamedTuple):
    """A commit with its lane and lines, and all references at it."""

    entry: LogEntry
    lane: int
    lines: Sequence[Line]
    width: int
    names: Sequence[Reference]


async def history(access: TableAccess, call: PageCall) -> Reply:
    """`GET /ui/history`: the history of a revision. `after` are the lanes of the page before."""
    # A search takes longer than other reads.
    reply: Reply = await access.answer(call, _history)
    return reply


def _history(call: PageCall) -> Reply:
    at = call.reference_named()
    author, message, key = (call.text(name) or "" for name in ("author", "message", "key"))
    if author or message or key:
        return _filtered(call, at, author, message, key)
    start = _lanes_of(call.text("after") or "") or _first_lanes(call, at)
    graph = Graph(NO_ANCESTOR, start.hashes)
    heads = [hash_ for hash_ in start.hashes if hash_ not in (None, NO_ANCESTOR)]
    entries = islice(_reachable(call.repository, [hash_ for hash_ in heads if hash_]), COMMITS)
    rows = list(_rows(entries, graph, start.drawn if call.text("after") else set(), _names(call)))
    is_reserved = start.is_reserved and all(row.entry.hash != start.hashes[0] for row in rows)
    lanes, ended = _continued(Lanes(graph.lanes, is_reserved))
    return call.page(
        "history.html", f"History of {at.name or at.hash[:12]}", at=at, rows=rows,
        most_names=MOST_NAMES, after=lanes.token, ended=ended, is_first=not call.text("after"),
        searched=None, author="", message="", key="",
    )  # fmt: skip


def _filtered(call: PageCall, at: Reference, author: str, message: str, key: str) -> Reply:
    """Returns the commits that pass a filter, without a graph.

    `after` is the place where the page before has stopped.
    """
    start = place_of(call.text("after") or "") or Place([at.hash])
    commit_filter = LogFilter(
        authors=(PlainText(author),) if author else (),
        message=PlainText(message) if message else None,
        keys=(keys.decode(key),) if key else (),
        until=start.time,
    )
    names = _names(call)
    search = HistorySearch(start, COMMITS)
    if at.hash != NO_ANCESTOR:
        walk = Walk(Revision(None, at.hash), heads=tuple(start.heads))
        search.read(call.repository.search_log(walk, commit_filter))
    return call.page(
        "history.html", f"Commits of {at.name or at.hash[:12]}", at=at,
        rows=[CommitRow(entry, 0, (), 0, names.get(entry.hash, ())) for entry in search.entries],
        most_names=MOST_NAMES, after=search.place.token if search.has_more else "", ended=[],
        is_first=start.time is None, searched=search if search.is_cut else None,
        author=author, message=message, key=key,
    )  # fmt: skip


def _reachable(repository: ReadableRepository, heads: Sequence[str]) -> Iterator[LogEntry]:
    def read(hash_: str) -> LogEntry:
        # Plain text would be looked up as a name first.
        return next(iter(repository.log(Revision(None, hash_))))

    return reachable(heads, read, first_parent=False)


def _names(call: PageCall) -> dict[str, list[Reference]]:
    """Returns the branches and tags at each commit."""
    names: dict[str, list[Reference]] = {}
    for reference in call.repository.references():
        names.setdefault(reference.hash, []).append(reference)
    return names


def _first_lanes(call: PageCall, at: Reference) -> Lanes:
    """Returns the lanes at the begin of a history: that of the default branch is the first one."""
    if at.hash == NO_ANCESTOR:
        return Lanes([])
    base, default = NO_ANCESTOR, call.default_branch
    # If the request named the default branch, the caller would see common commits through it.
    if call.may_list_log(default):
        # The caller may not be allowed to view the default branch.
        with suppress(NotAllowed, ReferenceNotFound):
            base = call.repository.merge_base(Revision(None, at.hash), Revision(default))
    if base in (NO_ANCESTOR, at.hash):
        return Lanes([at.hash])
    return Lanes([base, at.hash], is_reserved=True)


def _continued(lanes: Lanes) -> tuple[Lanes, Sequence[str]]:
    """Returns the lanes of the next page, and the hashes of those that end before it."""
    if len(lanes.hashes) <= _MOST_LANES:
        return lanes, []
    hashes = list(dict.fromkeys(filter(None, lanes.hashes)))
    return Lanes(hashes[:_MOST_LANES], lanes.is_reserved), hashes[_MOST_LANES:]


def _lanes_of(token: str) -> Lanes | None:
    """Returns the lanes of a token, None for an empty one. Raises `InvalidInput`."""
    if not token:
        return None
    lanes = token.removeprefix("~").split(".")
    if len(lanes) > _MOST_LANES or any(lane and not _HASH.fullmatch(lane) for lane in lanes):
        raise InvalidInput("after: is not the end of a page of a history")
    return Lanes([lane or None for lane in lanes], token.startswith("~"))


def _rows(
    entries: Iterator[LogEntry],
    graph: Graph,
    above: set[int],
    names: dict[str, list[Reference]],
) -> Iterator[CommitRow]:
    """Places the commits. `above` are the lanes with a line above the first one."""
    for entry in entries:
        placed = graph.add(entry.hash, entry.meta.parents)
        lines = list(_lines(placed, above))
        above = {line.bottom for line in lines if line.bottom is not None}
        lane = placed.own.commit or 0
        ends = [end for line in lines for end in line if end is not None]
        yield CommitRow(entry, lane, lines, 1 + max([lane, *ends]), names.get(entry.hash, ()))


def _lines(placed: PlacedCommit, above: AbstractSet[int]) -> Iterator[Line]:
    commit = placed.own.commit
    assert commit is not None
    ending = [row.across.lane for row in placed.above if row.across is not None]
    for lane in (commit, *ending):
        if lane in above:
            yield Line(lane, None)
    to_parents = {row.across.lane for row in placed.below if row.across is not None}
    for lane, has_line in enumerate(placed.further.lanes):
        if has_line and (lane == commit or lane in to_parents):
            yield Line(None, lane)
        if has_line and lane != commit and lane in above:
            yield Line(lane, lane)
