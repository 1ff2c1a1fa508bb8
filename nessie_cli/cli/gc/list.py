"""`nessie gc list`."""

from collections.abc import Iterator

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Listing
from nessie_cli.cli.gc.results import CollectorRun
from nessie_cli.cli.gc.runs import FolderOptions
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
    runs: Iterator[CollectorRun]


def run(options: Options, app: Invocation) -> CollectorRuns:
    """Reads the folder of the runs."""
    return CollectorRuns(runs=map(CollectorRun.of, options.runs(app).all()))


def show(result: CollectorRuns, output: Output) -> None:
    """Prints a table with a row for each run."""
    out = output.out
    out.print_table(
        _COLUMNS,
        ((one.run, one.state, out.time(one.created), *_counts(one)) for one in result.runs),
    )


def _counts(run: CollectorRun) -> tuple[str, ...]:
    live, candidates, deleted = (
        f"{run.counts[name]:,}" if name in run.counts else ""
        for name in ("live", "candidates", "deleted")
    )
    size = human_size(run.counts["candidateBytes"]) if "candidateBytes" in run.counts else ""
    return live, candidates, size, deleted
