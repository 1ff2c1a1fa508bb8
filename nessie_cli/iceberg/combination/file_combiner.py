"""Combines a table with access to its files."""

from __future__ import annotations

import shutil
import time
import uuid
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from nessie_cli.errors import NessieError
from nessie_cli.iceberg.avro import USUAL, AvroLimits
from nessie_cli.iceberg.builder.table import updated
from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.combination.combination import Combination, combine
from nessie_cli.iceberg.combination.comparison import Base, MergedDocument
from nessie_cli.iceberg.combination.counts import counts_of_files
from nessie_cli.iceberg.combination.definitions import DefinitionConflict
from nessie_cli.iceberg.combination.engines import Engine
from nessie_cli.iceberg.combination.file_merge import FileConflict
from nessie_cli.iceberg.combination.merging import Combiner, MergedTable, TableBase, TableStates
from nessie_cli.iceberg.combination.states import COMBINED_BY, TableFile
from nessie_cli.iceberg.combination.writing import write_table
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.locations import LocationRefused
from nessie_cli.iceberg.metadata import content_of, in_state, parse_document
from nessie_cli.iceberg.validity.metadata import check_metadata
from nessie_cli.model import (
    CollidingFile,
    Collision,
    CombinationRules,
    CombinedTable,
    ContentKey,
    IcebergTable,
    RowRules,
)
from nessie_cli.repository.bounded_cache import BoundedCache
from nessie_cli.wire.large_json import encode

if TYPE_CHECKING:
    from nessie_cli.iceberg.row_diff.parquet import Reader
    from nessie_cli.iceberg.row_merge.engines import RowEngine

MOST_FILES_NAMED = 20
"""The most files of one collision that are named."""
MOST_CACHED = 5_000
"""The most tables in a cache of collisions."""
MOST_IN_MEMORY = 64 * 2**20
"""The bytes of new files of a dry run in memory. Further ones are temporary files."""


class UnwrittenFiles(Files):
    """The files of a dry run: those of `files`, and new ones, which are in no table's folder."""

    def __init__(self, files: Reader, most_in_memory: int = MOST_IN_MEMORY) -> None:
        super().__init__()
        self._files = files
        self._left = most_in_memory
        self._new: dict[str, bytes | Path] = {}
        self._folder: Path | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out the folder of temporary files. Other processes make their own."""
        return {**super().__getstate__(), "_folder": None}

    @property
    def new(self) -> Mapping[str, bytes]:
        """The new files by their locations, in the order in which they were written."""
        return {uri: self.read(uri) for uri in self._new}

    def read(self, uri: str) -> bytes:
        """Returns the bytes of a file. Raises `InvalidInput` or `StoreUnavailable`."""
        new = self._new.get(uri)
        if new is None:
            return self._files.read(uri)
        return new if isinstance(new, bytes) else new.read_bytes()

    def open(self, uri: str) -> Any:
        """Opens a file for random access. Raises the errors of `read`."""
        new = self._new.get(uri)
        if new is None:
            return self._files.open(uri)
        return BytesIO(new) if isinstance(new, bytes) else new.open("rb")

    def write(self, uri: str, data: bytes) -> None:
        """Stores a new file until the dry run ends."""
        if len(data) <= self._left:
            self._left -= len(data)
            self._new[uri] = data
            return
        if self._folder is None:
            self._folder = Path(mkdtemp(prefix="nessie-dry-run-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        path = self._folder / str(uuid.uuid4())
        path.write_bytes(data)
        self._new[uri] = path

    def remove(self, uri: str) -> None:
        """Drops a new file."""
        new = self._new.pop(uri, None)
        if isinstance(new, bytes):
            self._left += len(new)
        elif new is not None:
            new.unlink()


class CollisionCache:
    """The reasons why tables do not combine, by the states of their sides and the rules.

    The files of a state never change, so a table that did not combine never does. For any thread.
    """

    def __init__(self, most: int = MOST_CACHED) -> None:
        self._cached: BoundedCache[Hashable, tuple[Collision, ...]] = BoundedCache(most)

    def find(self, states: TableStates, rules: CombinationRules) -> tuple[Collision, ...]:
        """Returns the reasons, or nothing."""
        return self._cached.get(_cache_key(states, rules)) or ()

    def keep(
        self, states: TableStates, rules: CombinationRules, collisions: tuple[Collision, ...]
    ) -> None:
        """Caches the reasons."""
        self._cached[_cache_key(states, rules)] = collisions


def _cache_key(states: TableStates, rules: CombinationRules) -> Hashable:
    sides = states.base, states.ours, states.theirs
    return *sides, rules.is_serializable, rules.refuses_same_keys, rules.rows


class FileCombiner(Combiner):
    """Combines tables with access to their files.

    `description` names the merge in the summaries of new snapshots. `permit` raises `NotAllowed` if
    a table may not be combined, and `check` if its metadata may not be replaced by other metadata.
    `limits` are those of each manifest and of all entries together.
    The `engine` reads and encodes manifests, by default in this process. `row_engine` returns the
    one that merges rows, by default in this process, and takes a list, to which it adds the
    locations of files that other processes write. `announce` is called with the table, the bytes of
    its files to read and about the most to write, before rows are read, and `check_rows` with each
    batch of them; both may raise an error. `cache` returns that of the permitted table. `parse`
    returns the metadata in the text of a file, whose location follows.
    """

    def __init__(
        self,
        files: Files,
        description: str,
        rules: CombinationRules,
        *,
        permit: Callable[[TableStates], None] | None = None,
        check: Callable[[Document, Document], None] | None = None,
        limits: AvroLimits = USUAL,
        engine: Engine | None = None,
        row_engine: Callable[[list[str]], RowEngine] | None = None,
        announce: Callable[[ContentKey, int, int], None] | None = None,
        check_rows: Callable[[Any], object] | None = None,
        cache: Callable[[], CollisionCache] = CollisionCache,
        parse: Callable[[bytes, str], Mapping[str, Any]] = parse_document,
    ) -> None:
        self._files = files
        self._description = description
        self._rules = rules
        self._permit = permit
        self._check = check
        self._limits = limits
        self._engine = engine
        self._row_engine = row_engine
        self._announce = announce
        self._check_rows = check_rows
        self._cache = cache
        self._parse = parse
        self._written: dict[str, list[str]] = {}

    def combine(self, states: TableStates) -> CombinedTable:
        """Combines a table. See `Combiner.combine`."""
        if self._permit is not None:
            self._permit(states)
        cache = self._cache()
        if collisions := cache.find(states, self._rules):
            return CombinedTable(collisions=collisions)
        written: list[str] = []
        try:
            combined = self._combined(states, written)
        except BaseException:
            self._remove(written)
            raise
        if combined.content is not None:
            self._written[combined.content.metadata_location] = written
        elif combined.collisions:
            cache.keep(states, self._rules, combined.collisions)
        return combined

    def discard(self, content: IcebergTable) -> None:
        """Removes the files of a combined table that no commit needs."""
        self._remove(self._written.pop(content.metadata_location, ()))

    def _remove(self, written: Sequence[str]) -> None:
        for location in written:
            # A file that stays does no harm: garbage collection removes it.
            with suppress(NessieError, OSError):
                self._files.remove(location)

    def _combined(self, states: TableStates, written: list[str]) -> CombinedTable:
        combination = combine(
            self._base(states.base),
            self._document(states.ours),
            self._document(states.theirs),
            self._files.read,
            is_serializable=self._rules.is_serializable,
            # Rows that both sides added with one key are merged as well.
            refuses_same_keys=self._rules.refuses_same_keys or self._rules.rows is not None,
            key=self._rules.rows.key_of(_keys(states)) if self._rules.rows else (),
            limits=self._limits,
            engine=self._engine,
        )
        conflicts = combination.files.conflicts
        may_merge_rows = conflicts and all(each.rows_may_merge for each in conflicts)
        if self._rules.rows is not None and may_merge_rows:
            return self._merged_rows(combination, states, self._rules.rows, written)
        if combination.conflicts:
            return CombinedTable(collisions=tuple(map(_collision, combination.conflicts)))
        counts = counts_of_files(combination.files, combination.vectors, combination.notes)
        if combination.files.is_empty and not combination.definitions.updates:
            # Not the side of ours: theirs may have renamed the table.
            return CombinedTable(states.ours, counts)
        return CombinedTable(self._written_table(combination, states, written), counts)

    def _merged_rows(
        self,
        combination: Combination,
        states: TableStates,
        rules: RowRules,
        written: list[str],
    ) -> CombinedTable:
        """Merges the rows of a table whose files do not combine."""
        from nessie_cli.iceberg.row_merge.merging import RowMerger
        from nessie_cli.iceberg.row_merge.outcome import counts_of, decisions_of, refusal_of

        if combination.definitions.conflicts:
            return CombinedTable(collisions=tuple(map(_collision, combination.conflicts)))
        if isinstance(states.base, MergedTable):
            reason = "the branches have several merge bases, so their rows are not merged"
            return CombinedTable(collisions=(Collision(reason),))
        merger = RowMerger(
            combination,
            self._document(states.base),
            self._files.read,
            time.time_ns() // 1_000_000,
            key=rules.key_of(_keys(states)),
            whole_rows=rules.whole_rows,
            engine=None if self._row_engine is None else self._row_engine(written),
            check=self._check_rows,
        )
        if self._announce is not None:
            self._announce(states.key, merger.bytes, merger.new_bytes)
        decisions = decisions_of(rules, _keys(states))
        outcome = merger.merge(self._files, self._writing(written), decisions)
        refusal = refusal_of(outcome, decisions)
        if refusal is not None:
            self._remove(written)
            return CombinedTable(collisions=(refusal,))
        content = states.ours
        merged = outcome.combination
        if merged.written or merged.definitions.updates or not merged.files.is_empty:
            content = self._written_table(merged, states, written)
        return CombinedTable(content, counts_of(outcome))

    def _writing(self, written: list[str]) -> Callable[[str, bytes], None]:
        """Returns a function that writes a file and adds its location to `written`."""

        def write(location: str, data: bytes) -> None:
            written.append(location)
            try:
                self._files.write(location, data)
            except LocationRefused:
                written.remove(location)
                raise

        return write

    def _written_table(
        self, combination: Combination, states: TableStates, written: list[str]
    ) -> IcebergTable:
        """Writes the metadata of a combined table, and returns its content."""
        now = time.time_ns() // 1_000_000
        if self._check is not None:
            # Before the first file is written to a place that the metadata names.
            ours = combination.ours
            self._check(ours, updated(ours, combination.definitions.updates, now))

        write = self._writing(written)
        table = write_table(
            combination,
            write,
            location=states.ours.metadata_location,
            now=now,
            summary={
                COMBINED_BY: self._description,
                "nessie.combined-base": " ".join(str(base.snapshot_id) for base in states.bases),
                "nessie.combined-ours": str(states.ours.snapshot_id),
                "nessie.combined-theirs": str(states.theirs.snapshot_id),
            },
        )
        write(table.location, encode(table.document))
        content = content_of(table.document, table.location)
        assert isinstance(content, IcebergTable), "a combined table is one"
        return replace(content, id=states.ours.id)

    def _base(self, base: TableBase) -> Base:
        if isinstance(base, MergedTable):
            ours, theirs = self._document(base.ours), self._document(base.theirs)
            return MergedDocument(self._base(base.base), ours, theirs)
        return self._document(base)

    def _document(self, content: IcebergTable) -> dict[str, Any]:
        location = content.metadata_location
        document = self._parse(self._files.read(location), location)
        check_metadata(document)
        return dict(in_state(document, content))


def _keys(states: TableStates) -> list[ContentKey]:
    """Returns the keys that a table has on the two sides."""
    return [states.key, states.head_key, states.theirs_key]


def _collision(conflict: FileConflict | DefinitionConflict) -> Collision:
    if isinstance(conflict, DefinitionConflict):
        return Collision(str(conflict))
    files = tuple(map(_colliding, conflict.files[:MOST_FILES_NAMED]))
    more = len(conflict.files) - len(files)
    return Collision(conflict.reason + (f" (and {more:,} more files)" if more else ""), files)


def _colliding(file: TableFile) -> CollidingFile:
    partition = file.row.get("partition") or {}
    text = ", ".join(f"{name}={value}" for name, value in partition.items())
    return CollidingFile(file.path, text, file.records)
