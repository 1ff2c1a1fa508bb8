"""Stores tables whose rows a process has merged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from nessie_cli.errors import NessieError
from nessie_cli.iceberg.builder.document import normalized
from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.combination.merging import Combiner, TableStates
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.locations import LocationRefused
from nessie_cli.model import CombinedTable, IcebergTable
from nessie_cli.server.runtime.row_merge_answer import MergedRows


class MergedRowsCombiner(Combiner):
    """Combines the tables whose rows a process has merged, and writes their files.

    It has no access to any other table, nor to another state of these. `permit`, `check` and
    `parse` are those of `FileCombiner`.
    """

    def __init__(
        self,
        merged: Sequence[MergedRows],
        files: Files,
        *,
        permit: Callable[[TableStates], None],
        check: Callable[[Document, Document], None],
        parse: Callable[[bytes, str], Document],
    ) -> None:
        self._merged: dict[tuple[object, ...], MergedRows] = {each.states: each for each in merged}
        self._files = files
        self._permit = permit
        self._check = check
        self._parse = parse

    def combine(self, states: TableStates) -> CombinedTable:
        """Writes the files of a merged table. See `Combiner.combine`."""
        merged = self._merged.get((states.base, states.ours, states.theirs))
        if merged is None:
            raise LocationRefused("no process has merged the rows of this table")
        self._permit(states)
        if merged.files:
            # Before the first file is written to a place that the metadata names.
            data, location = merged.metadata
            self._check(self._document(states.ours), normalized(self._parse(data, location)))
            try:
                for location, data in merged.files:
                    self._files.write(location, data)
            except BaseException:
                self._remove(merged)
                raise
        return merged.table

    def discard(self, content: IcebergTable) -> None:
        """Removes the files of a merged table that no commit needs."""
        for merged in self._merged.values():
            if merged.merge.content == content:
                self._remove(merged)

    def _remove(self, merged: MergedRows) -> None:
        for location, _ in merged.files:
            # A file that stays does no harm: garbage collection removes it.
            with suppress(NessieError, OSError):
                self._files.remove(location)

    def _document(self, content: IcebergTable) -> Document:
        location = content.metadata_location
        return normalized(self._parse(self._files.read(location), location))
