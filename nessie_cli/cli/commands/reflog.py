"""`nessie reflog`."""

from itertools import islice
from typing import Annotated

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.words import at_most, refuse_empty
from nessie_cli.errors import InvalidInput, ReferenceNotFound
from nessie_cli.render.references import print_reflog
from nessie_cli.wire.facts import reflog_entry

EXAMPLES = ("nessie reflog", "nessie reflog main -n 5", "nessie reflog --all --json")


def reflog(
    ctx: typer.Context,
    reference: Annotated[str | None, typer.Argument(metavar="[REF]", help="A reference, also one that was deleted.")] = None,
    *,
    all_: Annotated[bool, typer.Option("--all", help="Every reference.")] = False,
    limit: Annotated[int | None, typer.Option("-n", metavar="N", min=0, help="At most N moves.")] = None,
) -> None:
    """Show where a reference has been, by whom and why, newest first.

    The first column is what `nessie undo --to` takes.
    """
    call = Invocation.of(ctx)
    refuse_empty("nessie reflog [REF]", reference)
    if all_ and reference:
        raise InvalidInput("--all takes no reference: it shows the moves of every one")
    name = None if all_ else reference or call.reference_name()
    found = at_most(limit, call.repository().reflog(name))
    first = list(islice(found, 1))
    if not first and name and limit != 0:
        raise ReferenceNotFound(f"no reference '{name}' was ever here", name)
    entries = (entry for part in (first, found) for entry in part)
    if call.wants_json:
        call.answer_listing("reflogEntries", map(reflog_entry, entries), hasMore=False, token=None)
    else:
        print_reflog(entries, call.out)
