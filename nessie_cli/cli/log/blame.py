"""`nessie blame`."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Annotated

import typer
from msgspec import Struct

from nessie_cli.cli.app.arguments import refuse_empty
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Page
from nessie_cli.cli.log.last_changes import last_changes
from nessie_cli.errors import ContentNotFound
from nessie_cli.model import CommitMeta, ContentKey, Entry, KeyRange, Reference
from nessie_cli.render.spans import Column
from nessie_cli.render.text import name_of, short_hash
from nessie_cli.wire.record import INLINE, Record

EXAMPLES = ("nessie blame", "nessie blame db.sales", "nessie blame db.sales --at v1 --json")
_COLUMNS = (
    Column("KEY", "key", "fold"),
    Column("COMMIT", "hash"),
    Column("WHEN", "time", "spare"),
    Column("AUTHOR", "author", "spare"),
    Column("SUBJECT", room="cut"),
)


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


class BlamedEntry(Record, frozen=True):
    """A key and the commit that last changed it."""

    entry: Annotated[Entry, INLINE]
    last_change: CommitMeta


class Blame(Page, frozen=True, kw_only=True):
    """The keys at a revision, ascending, each with its last change."""

    listing = "blame"
    effective_reference: Reference
    blame: Iterator[BlamedEntry]


def run(options: Options, app: Invocation) -> Blame:
    """Finds the last change of each key."""
    refuse_empty("nessie blame [PREFIX]", options.prefix, options.at)
    repository = app.repository()
    effective = repository.resolve(app.revision(options.at))
    keys = KeyRange(prefix=ContentKey.parse(options.prefix)) if options.prefix else KeyRange()
    found = (BlamedEntry(*one) for one in last_changes(repository, effective.hash, keys))
    first = list(islice(found, 1))
    if keys.prefix is not None and not first:
        where = effective.name or effective.hash
        raise ContentNotFound(
            f"there is no content at or below key '{keys.prefix}' in '{where}'", keys.prefix
        )
    return Blame(effective_reference=effective, blame=chain(first, found))


def show(result: Blame, output: Output) -> None:
    """Prints a table with a row for each key."""
    out = output.out
    rows = (
        (
            str(one.entry.key),
            short_hash(meta.hash or ""),
            out.time(meta.commit_time),
            name_of(meta.author or meta.committer or ""),
            meta.subject,
        )
        for one in result.blame
        for meta in [one.last_change]
    )
    out.print_table(_COLUMNS, rows, paged=True)
