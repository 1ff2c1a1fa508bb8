"""Merges the rows of tables in a process of its own (`row_worker`), which writes no file.

New files are in the answer. The server stores them, after its own checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nessie_cli.errors import InvalidInput, NotAllowed, StoreUnavailable
from nessie_cli.iceberg.avro import OF_MERGES
from nessie_cli.iceberg.combination.file_combiner import FileCombiner, UnwrittenFiles
from nessie_cli.iceberg.combination.merging import TableStates
from nessie_cli.iceberg.files import MissingFile
from nessie_cli.iceberg.row_merge.parts import MOST_CONFLICTS
from nessie_cli.iceberg.warehouses.table_files import TableFiles
from nessie_cli.inspection.cells import cell_text, differ
from nessie_cli.model import (
    Collision,
    CombinationRules,
    CombinedTable,
    ContentKey,
    RowConflict,
    RowConflictKind,
    RowDecision,
    RowRules,
    row_key_text,
)
from nessie_cli.server.runtime.row_merge_answer import (
    RowMerge,
    ShownConflict,
    encode_merges,
    row_digest,
)
from nessie_cli.server.runtime.row_request import (
    LimitExceeded,
    RowCounter,
    RowMergeRequest,
    TableRows,
)

_MOST_COLUMNS = 10
"""The most columns of a whole row that are shown."""


def merged_tables(
    request: RowMergeRequest, opening: Callable[[str], None] = lambda _: None
) -> bytes:
    """Returns the answer (`row_merge_answer`). Raises `LimitExceeded` for too many new bytes.

    `opening` is called with the location of each file before it is read.
    """
    merges: list[RowMerge] = []
    files: list[bytes] = []
    # The counter of what is read before decisions, and of what is read with them.
    counters = RowCounter(request.limits), RowCounter(request.limits)
    for table in request.tables:
        merge, new = _Table(request, table, counters, opening).merged()
        merges.append(merge)
        files += new
        if sum(map(len, files)) > request.limits.answer:
            raise LimitExceeded(
                f"the server writes at most {request.limits.answer >> 20} MiB of merged rows",
                hint="merge on the command line",
            )
    return encode_merges(merges, files)


class _Counted(Exception):
    """Ends a merge before it reads rows."""


class _Table:
    """The merge of the rows of one table."""

    def __init__(
        self,
        request: RowMergeRequest,
        table: TableRows,
        counters: tuple[RowCounter, RowCounter],
        opening: Callable[[str], None],
    ) -> None:
        self._request = request
        self._table = table
        self._counters = counters
        self._opening = opening
        self._bytes: int | None = None
        self._new_bytes = 0
        self._is_final = True

    def merged(self) -> tuple[RowMerge, Sequence[bytes]]:
        """Returns the merge, and the bytes of its files."""
        table = self._table
        before, decided = self._counters
        try:
            combined, files = self._attempt(before, RowRules())
        except _Counted:
            return RowMerge(bytes=self._bytes, new_bytes=self._new_bytes), ()
        conflicts = [row for collision in combined.collisions for row in collision.rows]
        digests = [row_digest(row_key_text(row.key), row.column) for row in conflicts]
        if conflicts and (table.decisions or table.rest is not None):
            combined, files = self._attempt(decided, self._rules(conflicts, digests))
        # The values of a column of the key have one type.
        shown = sorted(
            zip(conflicts, digests, strict=True),
            key=lambda each: (*each[0].key.values(), each[0].column or ""),
        )[: self._request.most_shown]
        new = self._files_of(combined, files)
        merge = RowMerge(
            bytes=self._bytes,
            new_bytes=self._new_bytes,
            conflicts=[_shown(*each) for each in shown],
            more=len(conflicts) - len(shown),
            is_least=len(conflicts) >= MOST_CONFLICTS,
            outdated=len(table.decisions.keys() - set(digests)),
            reason="; ".join(collision.reason for collision in combined.collisions),
            is_final=self._is_final,
            content=combined.content,
            combination=combined.combination,
            files=[(location, len(data)) for location, data in new.items()],
        )
        return merge, list(new.values())

    def _attempt(
        self, counter: RowCounter, rules: RowRules
    ) -> tuple[CombinedTable, UnwrittenFiles]:
        table = self._table
        files = UnwrittenFiles(
            TableFiles(table.warehouse, table.folders, counter.read, self._opening)
        )
        combiner = FileCombiner(
            files,
            self._request.description,
            CombinationRules(rows=rules),
            limits=OF_MERGES,
            announce=self._announce,
            check_rows=counter.rows,
        )
        keys = (table.key, table.key, table.key, table.key)
        states = TableStates(None, "", *keys, table.base, table.ours, table.theirs)
        self._is_final = True
        try:
            return combiner.combine(states), files
        except (InvalidInput, NotAllowed, StoreUnavailable) as error:
            self._is_final = isinstance(error, InvalidInput) and not isinstance(error, MissingFile)
            return CombinedTable(collisions=(Collision(error.message),)), files

    def _announce(self, _: ContentKey, size: int, new_size: int) -> None:
        self._bytes, self._new_bytes = size, new_size
        if not self._table.reads:
            raise _Counted

    def _rules(self, conflicts: Sequence[RowConflict], digests: Sequence[str]) -> RowRules:
        """Returns the decisions about some conflicts."""
        table = self._table
        decisions = [
            RowDecision(table.key, row_key_text(row.key), row.column, table.decisions[digest])
            for row, digest in zip(conflicts, digests, strict=True)
            if digest in table.decisions
        ]
        rest = {table.rest: (table.key,)}
        return RowRules((), False, rest.get(False, ()), rest.get(True, ()), tuple(decisions))

    def _files_of(self, combined: CombinedTable, files: UnwrittenFiles) -> Mapping[str, bytes]:
        """Returns the new files that the server needs, the metadata file last."""
        content = combined.content
        if content is None or content == self._table.ours:
            return {}
        if self._request.writes:
            return files.new
        return {content.metadata_location: files.new[content.metadata_location]}


# -- texts -----------------------------------------------------------------------------------------


def _shown(conflict: RowConflict, digest: str) -> ShownConflict:
    key = [(cell_text(name), cell_text(value)) for name, value in conflict.key.items()]
    states = (conflict.base, conflict.ours, conflict.theirs)
    if conflict.column is None:
        return ShownConflict(digest, key, None, *_rows(states))
    # A row that both sides added has no base.
    base, *sides = map(cell_text, states)
    is_new = conflict.kind is RowConflictKind.INSERT_INSERT
    return ShownConflict(digest, key, cell_text(conflict.column), None if is_new else base, *sides)


def _rows(states: Sequence[Any]) -> list[str | None]:
    """Returns the texts of three states of a row, without the columns in which all are equal."""
    present = [state for state in states if state is not None]
    names = [
        name
        for name, value in present[0].items()
        if len(present) == 1 or any(differ(value, other[name]) for other in present[1:])
    ]
    more = len(names) - _MOST_COLUMNS
    end = f", … ({more:,} more columns)" if more > 0 else ""
    return [
        None
        if state is None
        else ", ".join(
            f"{cell_text(name)}: {cell_text(state[name])}" for name in names[:_MOST_COLUMNS]
        )
        + end
        for state in states
    ]
