"""`nessie blame`."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Annotated

import typer

from nessie_cli.cli.blaming import blame_of
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.words import refuse_empty
from nessie_cli.errors import ContentNotFound
from nessie_cli.model import CommitMeta, ContentKey, Entry, KeyRange

EXAMPLES = ("nessie blame", "nessie blame db.sales", "nessie blame db.sales --at v1 --json")


def blame(
    ctx: typer.Context,
    prefix: Annotated[str | None, typer.Argument(metavar="[PREFIX]", help="Only this key and what is below it.", show_default=False)] = None,
    *,
    at: Annotated[str | None, typer.Option(metavar="REV", help="Where to look; HEAD, when it is left out.")] = None,
) -> None:
    """Show for each key the commit that changed it last.

    Out of a terminal a line is: key, hash, time, author, subject.
    """
    call = Invocation.of(ctx)
    refuse_empty("nessie blame [PREFIX]", prefix, at)
    repository = call.repository()
    effective = repository.resolve(call.revision(at))
    keys = KeyRange(prefix=ContentKey.parse(prefix)) if prefix else KeyRange()
    found = blame_of(repository, effective.hash, keys)
    if keys.prefix is not None:
        first = list(islice(found, 1))
        if not first:
            raise ContentNotFound(f"nothing is at or below key '{keys.prefix}' in '{effective.name or effective.hash}'", keys.prefix)
        found = chain(first, found)
    if call.wants_json:
        from nessie_cli.wire.encode import encode_reference

        call.answer_listing("blame", map(_document, found), effectiveReference=encode_reference(effective), hasMore=False, token=None)
    else:
        _print(call, found)


def _document(found: tuple[Entry, CommitMeta]) -> dict[str, object]:
    from nessie_cli.wire.encode import encode_commit_meta
    from nessie_cli.wire.facts import entry_with_facts

    entry, meta = found
    return entry_with_facts(entry) | {"lastChange": encode_commit_meta(meta)}


def _print(call: Invocation, found: Iterator[tuple[Entry, CommitMeta]]) -> None:
    from nessie_cli.render.spans import Column

    out = call.out
    columns = (
        Column("KEY", "key", "fold"),
        Column("COMMIT", "hash"),
        Column("WHEN", "time", "spare"),
        Column("AUTHOR", "author", "spare"),
        Column("SUBJECT", room="cut"),
    )
    rows = (
        (str(entry.key), out.hash(meta.hash or ""), out.time(meta.commit_time), out.person(meta.author or meta.committer or ""), meta.subject)
        for entry, meta in found
    )
    out.print_table(columns, rows, paged=True)
