"""Mark: which files live commits need, and where tables are or have been, written down as four datasets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct, json, structs

from nessie_cli.gc.datasets import parquet_writer
from nessie_cli.gc.following import STATES_PER_PIECE, Rows, follow
from nessie_cli.gc.history import History, TableState, no_staged
from nessie_cli.gc.policies import policies
from nessie_cli.gc.roots import moves_since
from nessie_cli.gc.run import Marks, Pinned, Settings
from nessie_cli.gc.schemas import CONTENTS
from nessie_cli.iceberg.reachable import Snapshots
from nessie_cli.repository.base import Repository

_FOUND = "_found.json"
"""Beside the contents: where the references stood, and how much was found."""
Told: TypeAlias = Callable[[str, int, int | None], None]
"""Hears what is being done, how many there were so far, and of how many (None: nobody knows). May be called often."""


class Marked(Struct, frozen=True):
    """What was marked: all references, where they stood, and how much was found."""

    references: tuple[Pinned, ...]
    counts: Mapping[str, int]


def mark(
    repository: Repository,
    settings: Settings,
    marks: Marks,
    properties: Mapping[str, str],
    told: Told,
    *,
    states_per_piece: int = STATES_PER_PIECE,
) -> Marked:
    """Walk the history, then follow every state of a table in it that is live down to its last data file.

    A mark that was stopped goes on where it was: a history that was walked to its end is not walked again, and files are read from the first piece
    on that was not finished. A mark that has to begin anew is given datasets that nothing has been written to.

    `properties` are those of PyIceberg's FileIO. Raises `InvalidInput` for settings that can never work and what the repository raises; a table that
    cannot be read is a finding. Cost: each commit of the repository once, each metadata file of a live commit and each manifest once.
    """
    marked = contents_of(repository, settings, marks, told)
    files = follow(
        marks,
        properties,
        Snapshots(settings.snapshots),
        lambda count: told("live files", count, None),
        states_per_piece,
    )
    return structs.replace(marked, counts={**marked.counts, **files})


def history_of(
    repository: Repository,
    settings: Settings,
    told: Told,
    staged: Callable[[], Iterable[TableState]] = no_staged,
) -> History:
    """The walk over the history of a repository that the settings of a run ask for."""
    return History(
        repository,
        policies(settings.default_cutoff, settings.cutoffs, settings.reference_time),
        lambda count: told("commits", count, None),
        moves_since=moves_since(repository, settings.reference_time),
        staged=staged,
    )


def contents_of(
    repository: Repository,
    settings: Settings,
    marks: Marks,
    told: Told,
    history: History | None = None,
) -> Marked:
    """The first half: the dataset `contents`, as it is where that has been written, else by this history or one by the settings."""
    if marks.contents.exists and (marks.contents.folder / _FOUND).exists():
        found: Marked = json.decode((marks.contents.folder / _FOUND).read_bytes(), type=Marked)
        return found
    if history is None:
        history = history_of(repository, settings, told)
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
        (folder / _FOUND).write_bytes(json.encode(marked))
    return marked
