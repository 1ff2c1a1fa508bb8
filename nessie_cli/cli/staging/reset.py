"""`nessie reset`."""

from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.staging.batch import BatchResult
from nessie_cli.cli.staging.key_arguments import staged_keys
from nessie_cli.cli.staging.submission import read_batch
from nessie_cli.errors import InvalidInput
from nessie_cli.workspace.staging import without

EXAMPLES = ("nessie reset db.orders", "nessie reset 'db.*'", "nessie reset --all")


class Options(Struct, frozen=True, kw_only=True):
    """Remove operations from the staged batch.

    Branches and the store do not change. To move a branch, use `nessie branch --force NAME TARGET`.
    """

    keys: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY...]", help="The keys, or globs such as 'db.*'. Default: the whole batch."
        ),
    ] = None
    all: Annotated[bool, typer.Option("--all", help="Remove the whole batch, as without KEY.")] = (
        False
    )


def run(options: Options, app: Invocation) -> BatchResult:
    """Removes the operations of the keys."""
    if options.all and options.keys:
        raise InvalidInput("--all removes the whole batch, so it takes no key")
    # All checks come first, so that a failed command removes nothing.
    reference = app.reference_name() if app.output.is_json else ""
    with app.batch_file().changing() as file:
        batch, done = read_batch(app, file)
        staged = batch.staged if batch else ()
        keys = staged_keys(options.keys or (), batch.keys if batch else ())
        left = without(staged, keys) if keys else ()
        changed = replace(batch, staged=left, request_id=None) if batch else None
        file.write(changed)
    if done is not None:
        where = f"{done.reference.hash} on {done.reference.name}"
        app.output.note(f"the batch was committed already, as {where}")
    left_ids = set(map(id, left))
    unstaged = [item.key for item in staged if id(item) not in left_ids]
    return BatchResult.of(changed if left else None, reference, unstaged)


def show(result: BatchResult, output: Output) -> None:
    """Prints how many operations were removed."""
    removed = len(result.touched)
    left = len(result.staged)
    output.say(f"unstaged {removed} operation{'' if removed == 1 else 's'}, {left} still staged")
