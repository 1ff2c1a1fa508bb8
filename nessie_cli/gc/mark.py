"""Mark: finds the files that live commits need, and the locations of tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct, json, structs

from nessie_cli.gc.datasets import parquet_writer
from nessie_cli.gc.history import HistoryWalk, TableState, no_staged
from nessie_cli.gc.policies import policies
from nessie_cli.gc.roots import moves_since
from nessie_cli.gc.run import MarkDatasets, PinnedReference, RunSettings
from nessie_cli.gc.schemas import CONTENTS
from nessie_cli.gc.table_files import STATES_PER_PIECE, Rows, follow
from nessie_cli.iceberg.reachable import SnapshotScope
from nessie_cli.repository.base import Repository

_HISTORY_RESULT = "_found.json"
"""A file next to the dataset `contents` with the references and the counts."""
PhaseProgress: TypeAlias = Callable[[str, int, int | None], None]
"""A callback with the name of a phase, the amount done, and the total (None: unknown)."""


class Marked(Struct, frozen=True):
    """The result of a mark: all references with their commits, and counts."""

    references: tuple[PinnedReference, ...]
    counts: Mapping[str, int]


def mark(
    repository: Repository,
    settings: RunSettings,
    marks: MarkDatasets,
    properties: Mapping[str, str],
    progress: PhaseProgress,
    *,
    states_per_piece: int = STATES_PER_PIECE,
) -> Marked:
    """Walks the history, then every live state of a table down to its data files.

    An interrupted mark resumes: a complete history is not walked again, and files are read from
    the first unfinished part. Empty datasets make it begin from scratch.

    `properties` are those of PyIceberg's FileIO. Raises `InvalidInput` for invalid settings, and
    the errors of the repository. A table that cannot be read is a finding. Cost: each commit of the
    repository, each metadata file of a live commit, and each manifest are read once.
    """
    marked = contents_of(repository, settings, marks, progress)
    files = follow(
        marks,
        properties,
        SnapshotScope(settings.snapshots),
        lambda count: progress("live files", count, None),
        states_per_piece,
    )
    return structs.replace(marked, counts={**marked.counts, **files})


def history_of(
    repository: Repository,
    settings: RunSettings,
    progress: PhaseProgress,
    staged: Callable[[], Iterable[TableState]] = no_staged,
) -> HistoryWalk:
    """Returns the walk over the history of a repository, by the settings of a run."""
    return HistoryWalk(
        repository,
        policies(settings.default_cutoff, settings.cutoffs, settings.reference_time),
        lambda count: progress("commits", count, None),
        moves_since=moves_since(repository, settings.reference_time),
        staged=staged,
    )


def contents_of(
    repository: Repository,
    settings: RunSettings,
    marks: MarkDatasets,
    progress: PhaseProgress,
    history: HistoryWalk | None = None,
) -> Marked:
    """Writes the dataset `contents`, unless it exists: by this history or one by the settings."""
    if marks.contents.exists and (marks.contents.folder / _HISTORY_RESULT).exists():
        earlier: Marked = json.decode(
            (marks.contents.folder / _HISTORY_RESULT).read_bytes(), type=Marked
        )
        return earlier
    if history is None:
        history = history_of(repository, settings, progress)
    live, dead = Counter[str](), Counter[str]()
    with marks.contents.replacing() as folder:
        with parquet_writer(folder, CONTENTS) as write:
            rows = Rows(CONTENTS, write)
            for state in history.states():
                (live if state.live else dead)[state.content_id] += 1
                rows.add(*(getattr(state, field) for field in TableState.__struct_fields__))
            rows.flush()
        references = tuple(history.roots.references)
        counts = {
            "references": len(references),
            "vanished": len(history.vanished),
            "commits": history.commits,
            "contents": len(live),
            "states": live.total(),
            "deadContents": len(dead.keys() - live.keys()),
            "deadStates": dead.total(),
        }
        if history.roots.has_reflog:
            counts["positions"] = history.roots.positions
        marked = Marked(references, counts)
        (folder / _HISTORY_RESULT).write_bytes(json.encode(marked))
    return marked
