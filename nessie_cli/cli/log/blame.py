"""`nessie blame`."""

from collections.abc import Iterator
from itertools import chain, islice, starmap
from typing import Annotated, Self

import typer
from msgspec import Struct, structs

from nessie_cli.cli.app.arguments import refuse_empty
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Page, Records, Result
from nessie_cli.errors import ContentNotFound
from nessie_cli.inspection.last_changes import last_changes
from nessie_cli.model import CommitMeta, ContentKey, Entry, KeyRange
from nessie_cli.render.entries import last_changes_table
from nessie_cli.wire import commits, entries
from nessie_cli.wire.references import AnyReference, reference_struct

EXAMPLES = ("nessie blame", "nessie blame db.sales", "nessie blame db.sales --at v1 --json")


class Options(Struct, frozen=True, kw_only=True):
    """Show the commit that last changed each key.

    Only first parents are followed: a change that came by a merge is shown with the merge commit.
    """

    prefix: Annotated[
        str | None,
        typer.Argument(metavar="[PREFIX]", help="Show only this key and the keys below it."),
    ] = None
    at: Annotated[
        str | None, typer.Option(metavar="REV", help="The revision to read. Default: HEAD.")
    ] = None


class BlamedEntry(entries.Entry):
    """A key and the commit that last changed it."""

    last_change: commits.CommitMeta

    @classmethod
    def of_change(cls, entry: Entry, last_change: CommitMeta) -> Self:
        """Returns the struct of a key and its last change."""
        key = structs.asdict(entries.Entry.of(entry))
        return cls(**key, last_change=commits.CommitMeta.of(last_change))


class Blame(Page, frozen=True, kw_only=True):
    """The keys at a revision, ascending, each with its last change."""

    listing = "blame"
    effective_reference: AnyReference
    blame: Records[BlamedEntry]


class BlameResult(Result, frozen=True):
    """The keys with their last changes."""

    document: Blame
    changes: Iterator[tuple[Entry, CommitMeta]]


def run(options: Options, app: Invocation) -> BlameResult:
    """Finds the last change of each key."""
    refuse_empty("nessie blame [PREFIX]", options.prefix, options.at)
    repository = app.repository()
    effective = repository.resolve(app.revision(options.at))
    keys = KeyRange(prefix=ContentKey.parse(options.prefix)) if options.prefix else KeyRange()
    rest = iter(last_changes(repository, effective.hash, keys))
    first = list(islice(rest, 1))
    if keys.prefix is not None and not first:
        where = effective.name or effective.hash
        raise ContentNotFound(
            f"there is no content at or below key '{keys.prefix}' in '{where}'", keys.prefix
        )
    changes = chain(first, rest)
    document = Blame(
        effective_reference=reference_struct(effective),
        blame=starmap(BlamedEntry.of_change, changes),
    )
    return BlameResult(document, changes)


def show(result: BlameResult, output: Output) -> None:
    """Prints a table with a row for each key."""
    output.out.print_table(*last_changes_table(result.changes), paged=True)
