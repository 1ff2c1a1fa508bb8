"""Marks the live files of a repository, and finds files that have become live since."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from nessie_cli.errors import InvalidInput
from nessie_cli.gc.apply import Revived
from nessie_cli.gc.foreign import ForeignTables
from nessie_cli.gc.history import HistoryWalk, TableState, no_staged
from nessie_cli.gc.mark import Marked, PhaseProgress, contents_of, history_of, mark
from nessie_cli.gc.parts import GcFinding, Notes
from nessie_cli.gc.roots import Roots, moves_since
from nessie_cli.gc.run import ForeignLocation, MarkDatasets, RunSettings
from nessie_cli.gc.table_files import BROKEN, FileFinder
from nessie_cli.iceberg.reachable import FileKind, SnapshotScope
from nessie_cli.repository.base import Repository

Engine: TypeAlias = Callable[
    [Repository, RunSettings, MarkDatasets, Mapping[str, str], PhaseProgress], Marked
]
"""`gc.mark.mark`, or another implementation of it."""


class RepositoryMarker:
    """Marks by the settings of a run; a `Marker`.

    `properties` are those of PyIceberg's FileIO. `staged` is called for the states of the staged
    batch and the stashes.
    """

    def __init__(
        self,
        repository: Repository,
        settings: RunSettings,
        properties: Mapping[str, str],
        progress: PhaseProgress,
        *,
        staged: Callable[[], Iterable[TableState]] = no_staged,
        engine: Engine = mark,
    ) -> None:
        self._repository = repository
        self._settings = settings
        self._properties = properties
        self._progress = progress
        self._staged = staged
        self._foreign = ForeignTables(repository, properties)
        self._engine = engine
        self._history: HistoryWalk | None = None
        self._marks: MarkDatasets | None = None

    def verify(self) -> int | None:
        """Verifies the objects of all roots. Returns None if the store is that of a server."""
        self._progress("verifying the store", 0, None)
        since = moves_since(self._repository, self._settings.reference_time)
        roots = Roots(self._repository, since)
        return self._repository.verify({root.hash for root in roots.new()})

    def mark(self, marks: MarkDatasets) -> Marked:
        """Marks the files that are live now. Resumes an interrupted mark."""
        history = history_of(self._repository, self._settings, self._progress, self._staged)
        self._history, self._marks = history, marks
        vars(self).pop("_finder", None)
        contents_of(self._repository, self._settings, marks, self._progress, history)
        return self._engine(
            self._repository, self._settings, marks, self._properties, self._progress
        )

    def revived(self) -> Iterator[Revived]:
        """Yields files that have become live since the mark or the last call.

        Cost if nothing has changed: that of `HistoryWalk.became_live`.
        """
        if self._history is None:
            raise InvalidInput("nothing has been marked yet")
        for state in self._history.became_live():
            yield from self._needed(state)

    def foreign(self) -> Sequence[ForeignLocation]:
        """Returns the locations of tables that another catalog may write now."""
        return self._foreign.locations()

    def _needed(self, state: TableState) -> Iterator[Revived]:
        notes = Notes()
        for file, _ in self._finder.live([state], notes):
            yield Revived(file.path, state.key, state.reference)
        # The files of an unreadable content are unknown, so its base counts as live.
        unknown = [finding.base for finding in notes.findings if finding.base]
        if notes.broken:
            unknown += [base for _, _, base in notes.bases] + self._known_bases(state.content_id)
        for base in unknown:
            yield Revived(base, state.key, state.reference, is_base=True)

    @cached_property
    def _finder(self) -> FileFinder:
        """Returns a walk that skips the manifests of the mark, whose files are live already."""
        assert self._marks is not None
        finder = FileFinder(self._properties, SnapshotScope(self._settings.snapshots))
        broken = [
            GcFinding(**row) for row in self._marks.findings.records() if row["kind"] == BROKEN
        ]
        live = self._marks.live.records(["path", "kind"])
        manifests = (row["path"] for row in live if row["kind"] == FileKind.MANIFEST.value)
        finder.remember(Notes(broken=broken), manifests)
        return finder

    def _known_bases(self, content_id: str) -> list[str]:
        assert self._marks is not None
        rows = self._marks.bases.records()
        return [row["base"] for row in rows if row["content_id"] == content_id]
