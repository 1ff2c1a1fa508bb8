"""`nessie content list`."""

from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from nessie_cli.cli.content_fields import type_of
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.words import refuse_empty
from nessie_cli.model import ContentKey, Entry, KeyRange

EXAMPLES = (
    "nessie content list",
    "nessie content list db.sales --type iceberg-table",
    "nessie content list --at main~10 --jsonl",
    "nessie content list --filter \"entry.name.startsWith('orders')\"",
)


def content_list(
    ctx: typer.Context,
    prefix: Annotated[str | None, typer.Argument(metavar="[PREFIX]", help="Only this key and what is below it.", show_default=False)] = None,
    *,
    type_: Annotated[str | None, typer.Option("--type", "-t", metavar="TYPE", help="Only contents of this type.")] = None,
    filter_: Annotated[str | None, typer.Option("--filter", metavar="CEL", help="Only keys that this is true for, about `entry`.")] = None,
    tree: Annotated[bool, typer.Option("--tree", help="Show the keys as a tree.")] = False,
    at: Annotated[str | None, typer.Option("--at", "-r", metavar="REV", help="Where to look; HEAD, when it is left out.")] = None,
) -> None:
    """List the keys of the catalog with content type and content id; with -v or JSON the contents as well."""
    call = Invocation.of(ctx)
    refuse_empty("nessie content list [PREFIX]", prefix, type_, filter_, at)
    repository = call.repository()
    wanted_type = type_of(type_) if type_ else None
    keys = KeyRange(prefix=ContentKey.parse(prefix)) if prefix else KeyRange()
    effective = repository.resolve(call.revision(at))
    contents = call.wants_json or call.options.verbose
    entries: Iterable[Entry] = (e for e in repository.entries(effective.hash, keys, content=contents) if wanted_type in (None, e.type))
    if filter_:
        from nessie_cli.cli.filters import by_filter

        entries = filter(by_filter("entries", filter_), entries)
    if call.wants_json:
        from nessie_cli.wire.encode import encode_reference
        from nessie_cli.wire.facts import entry_with_facts

        page = {"hasMore": False, "token": None, "effectiveReference": encode_reference(effective)}
        call.answer_listing("entries", map(entry_with_facts, entries), **page)
    else:
        (_print_tree if tree else _print)(call, entries)


def _print(call: Invocation, entries: Iterable[Entry]) -> None:
    from nessie_cli.render.fields import type_label
    from nessie_cli.render.merges import summary
    from nessie_cli.render.spans import Column

    columns = [Column("KEY", "key", "fold"), Column("TYPE"), Column("CONTENT ID", "hash", "spare")]
    rows = ([str(e.key), type_label(e.type), e.content_id] for e in entries)
    if call.options.verbose:
        columns.append(Column("CONTENT", "", "cut"))
        rows = ([str(e.key), type_label(e.type), e.content_id, summary(e.content)] for e in entries)
    call.out.print_table(columns, rows, paged=True)


def _print_tree(call: Invocation, entries: Iterable[Entry]) -> None:
    """One line per key, its last element indented below what holds it; namespaces that have no content of their own are shown as well."""
    from nessie_cli.render.fields import type_label
    from nessie_cli.render.spans import Line, Span

    def lines() -> Iterator[Line]:
        above: tuple[str, ...] = ()
        for entry in entries:
            elements = entry.key.elements
            shared = next((n for n, (a, b) in enumerate(zip(above, elements, strict=False)) if a != b), min(len(above), len(elements)))
            for depth in range(shared, len(elements) - 1):
                yield [Span("  " * depth), Span(str(ContentKey(elements[depth : depth + 1])), "label")]
            own = str(ContentKey(elements[-1:]))
            yield [Span("  " * (len(elements) - 1)), Span(own, "key"), Span(f"  {type_label(entry.type)}")]
            above = elements

    call.out.print_lines(lines(), paged=True)
