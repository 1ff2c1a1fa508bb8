"""`nessie stash push`, also without `push`."""

from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace

from nessie_cli.cli.app.global_options import carried
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.errors.resolutions import command_line
from nessie_cli.cli.staging.key_arguments import staged_keys
from nessie_cli.cli.staging.stashes import StashResult
from nessie_cli.cli.staging.submission import nothing_staged, read_batch
from nessie_cli.workspace.staging import without
from nessie_cli.workspace.stash import Stashed, StashFile

EXAMPLES = (
    "nessie stash",
    "nessie stash push -m 'half of the rename'",
    "nessie stash push 'db.sales.*'",
)


class Options(Struct, frozen=True, kw_only=True):
    """Stash the staged batch, or the operations of some keys."""

    keys: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY...]", help="The keys, or globs such as 'db.*'. Default: the whole batch."
        ),
    ] = None
    message: Annotated[
        str,
        typer.Option(
            "-m", "--message", metavar="MSG", help="A description for `nessie stash list`."
        ),
    ] = ""


def run(options: Options, app: Invocation) -> StashResult:
    """Moves the batch to the stash."""
    workspace = app.store.need_workspace()
    name = app.head.name or str(app.head)
    with app.batch_file().changing() as file:
        batch, done = read_batch(app, file)
        if batch is None:
            suffix = ""
            if done is not None:
                where = f"{done.reference.hash[:12]} on {done.reference.name}"
                suffix = f"; the batch was committed already, as {where}"
            raise nothing_staged(suffix)
        keys = staged_keys(options.keys or (), batch.keys)
        left = without(batch.staged, keys) if keys else ()
        left_ids = set(map(id, left))
        aside = tuple(item for item in batch.staged if id(item) not in left_ids)
        stashed = Stashed(
            replace(batch, staged=aside, request_id=None), options.message, name, app.now
        )
        StashFile(workspace).push(stashed)
        file.write(replace(batch, staged=left, request_id=None))
    return StashResult.of(0, stashed, len(left))


def show(result: StashResult, output: Output) -> None:
    """Prints how many keys were stashed."""
    left = (
        f"{result.left} operation{'' if result.left == 1 else 's'} still staged"
        if result.left
        else "nothing is staged"
    )
    output.say(f"stashed: {result.keys} key{'' if result.keys == 1 else 's'}; {left}")
    pop = command_line(*carried(output.options, ()), "stash", "pop")
    output.note(f"`{pop}` stages it again")
