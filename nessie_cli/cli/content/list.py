"""`nessie content list`."""

from collections.abc import Callable, Iterable
from typing import Annotated

import typer
from msgspec import Struct

from nessie_cli.cli.app.arguments import refuse_empty
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Page, Records, Result
from nessie_cli.cli.content.fields import type_of
from nessie_cli.model import ContentKey, Entry, KeyRange
from nessie_cli.model.key_patterns import KeyPattern
from nessie_cli.render.entries import entries_table, tree_lines
from nessie_cli.wire import entries
from nessie_cli.wire.references import AnyReference, reference_struct

EXAMPLES = (
    "nessie content list",
    "nessie content list db.sales --type iceberg-table",
    "nessie content list 'db.*.orders'",
    "nessie content list --at main~10 --jsonl",
    "nessie content list --filter \"entry.name.startsWith('orders')\"",
)


class Options(Struct, frozen=True, kw_only=True):
    """List keys with content type and content id.

    With -v, the table has a summary of each content. JSON output has the contents themselves.
    """

    prefix: Annotated[
        str | None,
        typer.Argument(
            metavar="[PREFIX]",
            help="List only this key and those below it, or keys that match a glob such as 'db.*'"
            " (* also matches dots).",
        ),
    ] = None
    type_: Annotated[
        str | None,
        typer.Option("--type", "-t", metavar="TYPE", help="List only contents of this type."),
    ] = None
    filter_: Annotated[
        str | None,
        typer.Option(
            "--filter",
            metavar="CEL",
            help="List only keys for which this expression over `entry` is true; see"
            " nessie-filters(7).",
        ),
    ] = None
    tree: Annotated[bool, typer.Option("--tree", help="Show keys and types as a tree.")] = False
    at: Annotated[
        str | None,
        typer.Option("--at", "-r", metavar="REV", help="The revision to read. Default: HEAD."),
    ] = None


class Entries(Page, frozen=True, kw_only=True):
    """The keys at a revision, ascending."""

    listing = "entries"
    effective_reference: AnyReference
    entries: Records[entries.Entry]


class EntriesResult(Result, frozen=True):
    """The keys at a revision, and whether they are printed as a tree."""

    document: Entries
    entries: Iterable[Entry]
    is_tree: bool


def run(options: Options, app: Invocation) -> EntriesResult:
    """Lists the keys."""
    refuse_empty(
        "nessie content list [PREFIX]", options.prefix, options.type_, options.filter_, options.at
    )
    repository = app.repository()
    type_name = type_of(options.type_) if options.type_ else None
    pattern = KeyPattern.parse(options.prefix) if options.prefix else None
    keys = (
        pattern.keys
        if pattern
        else KeyRange(prefix=ContentKey.parse(options.prefix) if options.prefix else None)
    )
    is_listed: Callable[[Entry], bool] | None = None
    if options.filter_:
        from nessie_cli.cli.app.filters import by_filter
        from nessie_cli.wire.filter_range import prefix_of

        is_listed = by_filter("entries", options.filter_)
        if keys == KeyRange():
            keys = KeyRange(prefix=prefix_of(options.filter_))
    effective = repository.resolve(app.revision(options.at))
    with_contents = app.output.is_json or app.options.verbose
    listed = repository.entries(effective.hash, keys, content=with_contents)
    if pattern:
        listed = (entry for entry in listed if pattern.matches(entry.key))
    if type_name:
        listed = (entry for entry in listed if entry.type == type_name)
    if is_listed:
        listed = filter(is_listed, listed)
    document = Entries(
        effective_reference=reference_struct(effective), entries=map(entries.Entry.of, listed)
    )
    return EntriesResult(document, listed, options.tree)


def show(result: EntriesResult, output: Output) -> None:
    """Prints a table with a row for each key, or a tree."""
    if result.is_tree:
        output.out.print_lines(tree_lines(result.entries), paged=True)
        return
    verbose = output.options.verbose
    table = entries_table(result.entries, verbose=verbose)
    # As with `git ls-tree`: scripts count these lines, and cut them.
    output.out.print_table(*table, paged=True, has_heading=verbose)
