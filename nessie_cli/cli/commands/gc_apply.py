"""`nessie gc apply`."""

from typing import Annotated

import typer

from nessie_cli.cli.collecting import RunName, RunsFolder, Worker, clock, document, finish, runs, size
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.engines import EngineOption

EXAMPLES = ("nessie gc apply", "nessie gc apply 20260131T120000Z --dry-run --json")


def gc_apply(
    ctx: typer.Context,
    name: RunName = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Mark again and tell what would be deleted; delete nothing.")] = False,
    engine: EngineOption = None,
    runs_folder: RunsFolder = None,
) -> None:
    """Delete the approved files of a run, after marking once more: what has become live since then stays.

    Verifies the store first, and exits with 7 if it is damaged. Looks at the references again before each batch, and exits with 5 if a file to
    be deleted has become live. Files that were written anew, that belong to a content that cannot be read now, or that are outside of the
    allowed locations stay as well. If interrupted, run the same command again to resume. Exits with 8 if some files could not be deleted.
    """
    call = Invocation.of(ctx)
    from nessie_cli.cli.heard import heard
    from nessie_cli.gc.applying import apply
    from nessie_cli.gc.run import State

    run = runs(call, runs_folder).open(name)
    with run.changing(), heard(call, "marking again") as tell:
        if run.info.state is State.APPLIED and not dry_run:
            call.note(f"run {run.id} has been applied")
            finish(call, run)
            return
        worker = Worker(call, run, engine, tell)
        found = apply(run, worker, worker.properties, clock, lambda done, total: tell("deleting", done, total), dry_run=dry_run)
    if not dry_run:
        finish(call, run)
    elif call.wants_json:
        call.answer({**document(run), "wouldBe": found.counts})
    else:
        counts = found.counts
        staying = sum(count for name, count in counts.items() if name not in ("deleted", "deletedBytes"))
        call.say(f"run {run.id}: {counts['deleted']:,} files would be deleted ({size(counts['deletedBytes'])}), {staying:,} would stay")
