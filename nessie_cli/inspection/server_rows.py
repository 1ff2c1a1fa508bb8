"""The changed rows that a server reads with its own access to the files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import TYPE_CHECKING

from nessie_cli.errors import InvalidInput, NotAllowed, StoreUnavailable
from nessie_cli.iceberg.row_diff.answer import RowAnswer
from nessie_cli.inspection.changes import ContentChange
from nessie_cli.inspection.rows import ChangedTable, Comparison
from nessie_cli.repository.base import RowSource
from nessie_cli.wire.rows import RowQuery

if TYPE_CHECKING:
    import pyarrow as pa

    from nessie_cli.iceberg.row_diff.difference import Selection
    from nessie_cli.model.progress import Progress

MOST_HELD = 64 << 20
"""The bytes of answers in memory. Further rows are requested again when they are shown."""


class ServerRows:
    """The rows that differ between two commits of a repository behind a server."""

    def __init__(
        self,
        source: RowSource,
        before: str,
        after: str,
        selection: Selection,
        work: AbstractContextManager[Progress],
    ) -> None:
        """`before` and `after` are hashes. `work` is entered for each table."""
        self._source = source
        self._before = before
        self._after = after
        self._selection = selection
        self._work = work
        self._held = 0

    def compared(self, change: ContentChange, read_locally: Comparison) -> ChangedTable:
        """Compares the states of an Iceberg table.

        If the server refuses to read it, `read_locally` compares them. Raises `InvalidInput` for a
        table that cannot be compared.
        """
        selection = self._selection
        query = RowQuery(
            before=self._before,
            after=self._after,
            key=change.key,
            old_key=change.old_key,
            key_columns=selection.key,
            columns=selection.columns,
            where=selection.where,
            limit=selection.limit,
            rows=selection.rows,
        )
        with self._work:
            table = self._table(change, query, read_locally)
        if isinstance(table, RowAnswer):
            self._held += table.size
            return self._opened(change, query, table, is_held=self._held <= MOST_HELD)
        return table

    def _table(
        self,
        change: ContentChange,
        query: RowQuery,
        read_locally: Comparison,
    ) -> RowAnswer | ChangedTable:
        try:
            return self._ask(query)
        except NotAllowed as refusal:
            try:
                return read_locally(change)
            except (InvalidInput, StoreUnavailable) as error:
                raise NotAllowed(
                    f"{change.keys}: {refusal.message}; with your own access: {error.message}"
                ) from None
        except InvalidInput as error:
            raise type(error)(f"{change.keys}: {error.message}") from None

    def _ask(self, query: RowQuery) -> RowAnswer:
        return RowAnswer(self._source.changed_rows(query), self._source.url)

    def _opened(
        self, change: ContentChange, query: RowQuery, answer: RowAnswer, *, is_held: bool
    ) -> ChangedTable:
        if is_held or not query.rows:
            return ChangedTable(change, answer.summary, lambda _: answer)
        return ChangedTable(
            change, answer.summary, lambda _: _AskedLater(partial(self._ask, query))
        )


class _AskedLater:
    """Rows that are requested when they are needed."""

    def __init__(self, ask: Callable[[], RowAnswer]) -> None:
        self._ask = ask

    @cached_property
    def _answer(self) -> RowAnswer:
        return self._ask()

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches."""
        return self._answer.schema

    @property
    def ambiguous_keys(self) -> int:
        """The keys whose rows are not paired."""
        return self._answer.ambiguous_keys

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yields the batches, once."""
        return iter(self._answer)
