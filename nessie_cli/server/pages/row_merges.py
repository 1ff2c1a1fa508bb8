"""Merges of rows for the page of a merge: what a process has to read, and what it says.

The rows are read with the credentials of the server, so a caller needs the right `READ_ROWS` for
each of the three states of a table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec import structs

from nessie_cli.errors import InvalidInput, MergeConflict, NessieError, NotAllowed
from nessie_cli.iceberg.builder.schemas import identifiers
from nessie_cli.iceberg.builder.values import by_id
from nessie_cli.iceberg.combination.merging import TableStates, states_of
from nessie_cli.iceberg.metadata import in_state
from nessie_cli.model import Conflict, IcebergTable
from nessie_cli.server.http.failures import Unavailable
from nessie_cli.server.pages.call import PageCall
from nessie_cli.server.pages.conflicts import decision_fields, table_digest
from nessie_cli.server.pages.row_choices import (
    MOST_SHOWN,
    MOST_TABLES,
    ROWS,
    ShownRows,
    decisions_of,
    rest_of,
    shown_rows,
)
from nessie_cli.server.pages.table_access import TableAccess
from nessie_cli.server.runtime.row_merge_answer import MergedRows, RowMerge, decode_merges
from nessie_cli.server.runtime.row_request import RowLimits, RowMergeRequest, TableRows

_MOST_COUNTED = 5_000
"""The most tables whose bytes are remembered."""
_MOST_WRITTEN = 32 << 20
"""The most bytes of new files of a merge; the server has a few copies of them in memory."""
_States = tuple[object, object, object]


class Given(NamedTuple):
    """The decisions of a form about tables, and those about rows, by the names of their fields."""

    tables: Mapping[str, str]
    rows: Mapping[str, str]


class RowPlan(NamedTuple):
    """What a process has to do for a page or form.

    `fields` name the decisions about the tables of the request, in order. `results` are known
    without a process.
    """

    request: RowMergeRequest | None
    fields: Sequence[str]
    results: Mapping[str, RowMerge]


class RowAnswer(NamedTuple):
    """The answer of a process to a plan, or why there is none."""

    plan: RowPlan
    data: bytes = b""
    refusal: str = ""


class RowResults(NamedTuple):
    """What is known about the rows of tables, by the names of the decisions about these.

    `limits` are those of the process that has read them.
    """

    results: Mapping[str, RowMerge] = {}
    merged: Mapping[str, MergedRows] = {}
    limits: RowLimits | None = None

    @property
    def are_outdated(self) -> bool:
        """Whether a decision is about a row that is not in conflict."""
        return any(merge.outdated for merge in self.results.values())

    def refused(self, left: Sequence[Conflict]) -> RowResults:
        """Returns the results, given the conflicts that are left after decisions.

        A merged table may be refused, because of its locations for example.
        """
        if not self.merged:
            return self
        refusals = {
            field: "; ".join(collision.reason for collision in conflict.collisions)
            for field, conflict in zip(decision_fields(left), left, strict=True)
            if field in self.merged
        }
        results = {
            field: structs.replace(merge, reason=refusals[field]) if field in refusals else merge
            for field, merge in self.results.items()
        }
        return self._replace(results=results)

    def shown(self, given: Given) -> dict[str, ShownRows]:
        """Returns what a page shows of them."""
        return {
            field: shown_rows(table_digest(field), merge, given.rows, self.limits)
            for field, merge in self.results.items()
        }


NO_ROWS = RowResults()
NO_PLAN = RowPlan(None, (), {})


class RowMerges:
    """Has the rows of tables merged by processes, or their bytes counted."""

    def __init__(self, access: TableAccess) -> None:
        self._access = access
        # The files of a state never change.
        self._counted: dict[_States, RowMerge] = {}

    def plan(
        self,
        call: PageCall,
        error: MergeConflict,
        commits: tuple[str, str, str],
        given: Given,
        *,
        description: str,
        offered: Collection[str],
        writes: bool,
    ) -> RowPlan:
        """Returns what a process has to do.

        It merges the rows of the tables for which that is chosen, and counts the bytes of those
        `offered`. `commits` are those of base, ours and theirs.
        """
        tables: dict[str, TableRows] = {}
        results: dict[str, RowMerge] = {}
        mergeable = list(_mergeable(error))
        for field, states in mergeable:
            if given.tables.get(field) != ROWS:
                continue
            if len(tables) == MOST_TABLES:
                results[field] = _refusal(f"pages merge the rows of at most {MOST_TABLES} tables")
                continue
            try:
                tables[field] = _decided(self._table(call, commits, states), field, given)
            except NotAllowed as refusal:
                results[field] = _refusal(refusal.message)
        for field, states in mergeable:
            if field in offered and given.tables.get(field) != ROWS:
                # Who may not read rows gets no offer.
                with suppress(NotAllowed):
                    table = self._table(call, commits, states)
                    counted = self._counted.get((table.base, table.ours, table.theirs))
                    if counted is not None:
                        results[field] = counted
                    elif self._has_key(call, commits[1], states):
                        tables[field] = table
        if not tables:
            return RowPlan(None, (), results)
        assert self._access.rows is not None, "it has found the place of a table"
        limits = self._access.rows.processes.limits
        request = RowMergeRequest(
            tables=list(tables.values()),
            description=description,
            writes=writes,
            most_shown=MOST_SHOWN,
            limits=limits._replace(answer=min(limits.answer, _MOST_WRITTEN)),
        )
        return RowPlan(request, list(tables), results)

    async def run(self, call: PageCall, plan: RowPlan) -> RowAnswer:
        """Carries out a plan. A refusal is part of the answer. Raises `ClientGone`."""
        if plan.request is None or self._access.rows is None:
            return RowAnswer(plan)
        try:
            data = await self._access.rows.processes.whole(plan.request, call.watch_client())
        except (InvalidInput, Unavailable) as error:
            return RowAnswer(plan, refusal=error.message)
        return RowAnswer(plan, data)

    def results(self, answer: RowAnswer) -> RowResults:
        """Returns the results in an answer. Those of a process that failed have the reason."""
        plan, data, refusal = answer
        if plan.request is None:
            return RowResults(plan.results)
        try:
            merged = decode_merges(data, plan.request.tables) if data else ()
        except InvalidInput as error:
            merged, refusal = (), error.message
        if not merged:
            failed = dict.fromkeys(plan.fields, _refusal(refusal))
            return RowResults({**plan.results, **failed})
        for each in merged:
            self._remember(each)
        by_field = dict(zip(plan.fields, merged, strict=True))
        results = {field: each.merge for field, each in by_field.items()}
        complete = {field: each for field, each in by_field.items() if each.merge.content}
        return RowResults({**plan.results, **results}, complete, plan.request.limits)

    def _remember(self, merged: MergedRows) -> None:
        merge = merged.merge
        if merge.bytes is None and not merge.is_final:
            return
        if len(self._counted) >= _MOST_COUNTED:
            self._counted = {}
        self._counted[merged.states] = RowMerge(bytes=merge.bytes, new_bytes=merge.new_bytes)

    def _has_key(self, call: PageCall, commit: str, states: TableStates) -> bool:
        """Returns whether a table has identifier fields. Without them, no process is asked."""
        with self._access.metadata(call.repository) as reader:
            try:
                document = reader.read(commit, states.head_key, states.ours)
            except NessieError:
                return False
        table = in_state(document, states.ours)
        schemas = by_id(table.get("schemas") or (), "schema-id")
        return bool(identifiers(schemas.get(table.get("current-schema-id")) or {}))

    def _table(
        self, call: PageCall, commits: tuple[str, str, str], states: TableStates
    ) -> TableRows:
        """Returns a table whose rows the caller may read. Raises `NotAllowed`."""
        if self._access.rows is None:
            raise NotAllowed("this server reads no rows")
        base, ours, theirs = states.base, states.ours, states.theirs
        assert isinstance(base, IcebergTable)
        keys = (states.base_key, states.head_key, states.theirs_key)
        sides = list(zip(commits, keys, strict=True))
        place = self._access.rows.place(call.repository, sides, (base, ours, theirs))
        return TableRows(
            key=states.key,
            base=base,
            ours=ours,
            theirs=theirs,
            warehouse=place.warehouse,
            folders=place.folders,
            reads=False,
        )


def _mergeable(error: MergeConflict) -> Iterator[tuple[str, TableStates]]:
    """Yields the tables whose files collide, with the fields of the decisions about them."""
    if not any(conflict.collisions for conflict in error.conflicts):
        return
    fields = decision_fields(error.conflicts)
    # A decision can be about the key of a table as well: then it takes a whole state.
    numbers = Counter(fields)
    for field, conflict in zip(fields, error.conflicts, strict=True):
        states = states_of(conflict, error)
        # With several merge bases, only the merge of their states is a base.
        has_base = not error.result.has_several_bases or conflict.merged_base is not None
        if (
            states is not None
            and conflict.collisions
            and numbers[field] == 1
            and has_base
            and isinstance(states.base, IcebergTable)
        ):
            yield field, states


def _decided(table: TableRows, field: str, given: Given) -> TableRows:
    """Returns a table whose rows are to be merged, with the decisions about them."""
    digest = table_digest(field)
    decisions, rest = decisions_of(digest, given.rows), rest_of(digest, given.rows)
    return structs.replace(table, reads=True, decisions=decisions, rest=rest)


def _refusal(reason: str) -> RowMerge:
    return RowMerge(bytes=None, reason=reason)
