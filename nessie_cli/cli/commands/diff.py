"""`nessie diff`."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Annotated

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.diffing import each_change
from nessie_cli.cli.words import split_keys
from nessie_cli.commitspec import CommitSpec
from nessie_cli.errors import InvalidInput
from nessie_cli.model import Content, ContentKey, DiffEntry, KeyRange
from nessie_cli.render.changes import Change, encode_changes
from nessie_cli.render.diffs import print_diff, print_name_status, print_names, print_summary
from nessie_cli.repository.base import ALL_KEYS
from nessie_cli.wire.encode import encode_reference

EXAMPLES = (
    "nessie diff main feature",
    "nessie diff main...feature --stat",
    "nessie diff main feature --deep -- db.sales.orders",
    "nessie diff v1 --name-status -- db.sales",
    "nessie diff main feature --name-only",
    "nessie diff main feature --exit-code --json",
)
USAGE = "nessie diff A [B] [-- PREFIX...]"
DIFFERENCES_FOUND = 1


def diff(
    ctx: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="A [B] [-- PREFIX...]", help="From A to B (the current reference).")] = None,
    *,
    stat: Annotated[bool, typer.Option("--stat", help="Only which fields differ.")] = False,
    name_status: Annotated[bool, typer.Option("--name-status", help="Only keys: A created, M updated, D deleted, R renamed.")] = False,
    name_only: Annotated[bool, typer.Option("--name-only", help="Only keys; of what was renamed the new one.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Also what the metadata files of Iceberg contents say: columns, rows, files.")] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 where anything differs; with -q print nothing.")] = False,
) -> None:
    """Show the contents that differ between two revisions, field by field.

    A..B is the same as A B; A...B starts at their merge base. Out of a terminal a line is: change, key, field, before, after. As in git, -q prints
    nothing and means --exit-code; a document that --json asks for is printed all the same.
    """
    call = Invocation.of(ctx)
    if deep and (stat or name_status or name_only):
        raise InvalidInput("--deep tells field by field; leave --stat, --name-status and --name-only out")
    found, prefixes = split_keys(call, words or [], 2, USAGE)
    sides = [call.repository().resolve(side) for side in _sides(call, found)]
    before, after = (CommitSpec(None, side.hash) for side in sides)
    changes = _changes(call, before, after, prefixes, deep=deep)
    first = list(islice(changes, 1))
    if call.options.quiet and not call.wants_json:
        # As in git: who wants nothing printed asks by the exit code.
        raise typer.Exit(DIFFERENCES_FOUND if first else 0)
    changes = chain(first, changes)
    if call.wants_json:
        references = {"effectiveFromReference": encode_reference(sides[0]), "effectiveToReference": encode_reference(sides[1])}
        call.answer_listing("diffs", encode_changes(changes), hasMore=False, token=None, **references)
    else:
        (print_names if name_only else print_name_status if name_status else print_summary if stat else print_diff)(changes, call.out)
    if exit_code and first:
        raise typer.Exit(DIFFERENCES_FOUND)


def _changes(call: Invocation, before: CommitSpec, after: CommitSpec, prefixes: Sequence[ContentKey], *, deep: bool) -> Iterator[Change]:
    def content_before(key: ContentKey) -> Content | None:
        return call.repository().contents(before, [key]).get(key)

    found = each_change(lambda: _differences(call, before, after, prefixes), content_before)
    if not deep:
        return found
    from nessie_cli.cli.log.deep import deepen

    return deepen(found, call)


def _sides(call: Invocation, words: Sequence[str]) -> tuple[CommitSpec, CommitSpec]:
    if not words:
        raise InvalidInput(f"diff needs a revision to compare with: {USAGE}")
    if len(words) > 1:
        return call.revision(words[0]), call.revision(words[1])
    meant = call.revision_range(words[0])
    if isinstance(meant, CommitSpec):
        return meant, call.revision(None)
    if meant.symmetric:
        return CommitSpec(None, call.repository().merge_base(meant.start, meant.end)), meant.end
    return meant.start, meant.end


def _differences(call: Invocation, before: CommitSpec, after: CommitSpec, prefixes: Sequence[ContentKey]) -> Iterator[DiffEntry]:
    repository = call.repository()
    ranges = [KeyRange(prefix=prefix) for prefix in _outermost(prefixes)] or [ALL_KEYS]
    return (entry for keys in ranges for entry in repository.diff(before, after, keys))


def _outermost(prefixes: Iterable[ContentKey]) -> list[ContentKey]:
    """In order, those that lie below another left out."""
    found: list[ContentKey] = []
    for prefix in sorted(set(prefixes)):
        if not any(prefix.starts_with(outer) for outer in found):
            found.append(prefix)
    return found
