"""`nessie reflog`."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Annotated

import typer
from msgspec import Struct

from nessie_cli.cli.app.arguments import limited, refuse_empty
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Page, Records, Result
from nessie_cli.errors import InvalidInput
from nessie_cli.inspection.undo import check_exists
from nessie_cli.model import ReflogEntry
from nessie_cli.render.references import reflog_table
from nessie_cli.wire import references

EXAMPLES = ("nessie reflog", "nessie reflog main -n 5", "nessie reflog --all --json")


class Options(Struct, frozen=True, kw_only=True):
    """Show the operations on a reference, newest first.

    With --all, changes of settings of the repository are shown too, as `setting:NAME`. Their
    message is the value before and after.

    The first column is the number that `nessie undo --to` accepts.
    """

    reference: Annotated[
        str | None,
        typer.Argument(
            metavar="[REF]",
            help="A branch or tag, possibly a deleted one, or setting:NAME. Default: the current"
            " reference.",
        ),
    ] = None
    all_: Annotated[bool, typer.Option("--all", help="Show the operations on all references.")] = (
        False
    )
    limit: Annotated[
        int | None, typer.Option("-n", metavar="N", min=0, help="Show at most N operations.")
    ] = None


class Reflog(Page, frozen=True, kw_only=True):
    """The operations on one reference, or on all, newest first."""

    listing = "reflog_entries"
    reflog_entries: Records[references.ReflogEntry]


class ReflogResult(Result, frozen=True):
    """The operations."""

    document: Reflog
    entries: Iterator[ReflogEntry]


def run(options: Options, app: Invocation) -> ReflogResult:
    """Reads the reflog."""
    refuse_empty("nessie reflog [REF]", options.reference)
    if options.all_ and options.reference:
        raise InvalidInput("--all shows the operations on all references, so it takes no REF")
    name = None if options.all_ else options.reference or app.reference_name()
    moves, has_more = limited(app, options.limit, app.repository().reflog(name))
    first = list(islice(moves, 1))
    if not first and name and options.limit != 0:
        check_exists(app.repository(), name)
    entries = chain(first, moves)
    structs = map(references.ReflogEntry.of, entries)
    return ReflogResult(Reflog(reflog_entries=structs, has_more=has_more), entries)


def show(result: ReflogResult, output: Output) -> None:
    """Prints a table with a row for each operation."""
    output.out.print_table(*reflog_table(result.entries), paged=True)
