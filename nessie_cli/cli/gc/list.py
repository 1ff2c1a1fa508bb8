"""`nessie gc list`."""

from collections.abc import Iterable, Mapping, Sequence

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Listing, Records, Result
from nessie_cli.cli.gc.results import CollectorRun, foreign_note
from nessie_cli.cli.gc.runs import FolderOptions
from nessie_cli.gc.run import Run
from nessie_cli.render.spans import Column
from nessie_cli.render.text import human_size

EXAMPLES = ("nessie gc list", "nessie gc list --runs /shared/gc --json")
_COLUMNS = (
    Column("RUN", "name"),
    Column("STATE"),
    Column("CREATED", "time"),
    Column("LIVE", right=True),
    Column("CANDIDATES", right=True),
    Column("SIZE", right=True),
    Column("DELETED", right=True),
)


class Options(FolderOptions, frozen=True, kw_only=True):
    """List the runs, newest first: state, time and counts."""


class CollectorRuns(Listing, frozen=True, kw_only=True):
    """Runs of the garbage collection, newest first."""

    listing = "runs"
    runs: Records[CollectorRun]


class CollectorRunsResult(Result, frozen=True):
    """Runs of the garbage collection, newest first."""

    document: CollectorRuns
    runs: Iterable[Run]
    notes: Sequence[str]


def run(options: Options, app: Invocation) -> CollectorRunsResult:
    """Reads the folder of the runs."""
    folder = options.runs(app)
    notes = [note for id_ in folder.ids()[:1] if (note := foreign_note(folder.open(id_)))]
    runs = folder.all()
    return CollectorRunsResult(CollectorRuns(runs=map(CollectorRun.of, runs)), runs, notes)


def show(result: CollectorRunsResult, output: Output) -> None:
    """Prints a table with a row for each run."""
    out = output.out
    out.print_table(
        _COLUMNS,
        (
            (run.id, run.info.state, out.time(run.info.created), *_counts(run.info.counts))
            for run in result.runs
        ),
    )


def _counts(counts: Mapping[str, int]) -> tuple[str, ...]:
    live, candidates, deleted = (
        f"{counts[name]:,}" if name in counts else "" for name in ("live", "candidates", "deleted")
    )
    size = human_size(counts["candidateBytes"]) if "candidateBytes" in counts else ""
    return live, candidates, size, deleted
