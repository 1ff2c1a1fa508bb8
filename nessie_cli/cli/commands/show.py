"""`nessie show`."""

from typing import Annotated

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.walks import changes_in
from nessie_cli.cli.words import split_content, split_keys
from nessie_cli.model import ContentKey
from nessie_cli.render.changes import Change, encode_changes
from nessie_cli.render.history import Logged, Names, show_lines
from nessie_cli.wire.facts import log_entry_with_facts

EXAMPLES = (
    "nessie show",
    "nessie show main~2",
    "nessie show 8f31c0de -- db.sales.orders",
    "nessie show v1 --deep --json",
    "nessie show v1:db.orders",
)
USAGE = "nessie show [REV|REV:KEY] [-- KEY...]"


def show(
    ctx: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="[REV] [-- KEY...]", help="Which commit, and which keys.")] = None,
    *,
    deep: Annotated[bool, typer.Option("--deep", help="Also what the metadata files of Iceberg contents say: columns, rows, files.")] = False,
) -> None:
    """Show one commit: what is said about it, and each content before and after.

    A key stands for itself and all keys below it. REV:KEY shows one content as it is there, as `nessie content show KEY REV` does.
    """
    call = Invocation.of(ctx)
    before, keys = split_keys(call, words or [], 1, USAGE)
    if before and not keys and (found := split_content(before[0])) is not None:
        from nessie_cli.cli.content_showing import show_content

        show_content(call, found[1], found[0])
        return
    repository = call.repository()
    entry = repository.commit_at(call.revision(before[0] if before else None))
    changes = [change for change in changes_in(repository, entry) if _is_meant(change, keys)]
    if deep:
        from nessie_cli.cli.log.deep import deepen

        changes = list(deepen(changes, call))
    if call.wants_json:
        call.answer(log_entry_with_facts(entry) | {"diffs": list(encode_changes(changes))})
        return
    names = Names(repository.references(), call.head.name) if call.out.is_terminal else Names()
    call.out.print_lines(show_lines(Logged(entry, changes), call.out, names), paged=True)


def _is_meant(change: Change, keys: list[ContentKey]) -> bool:
    return not keys or any(touched.starts_with(key) for key in keys for touched in (change.key, change.old_key) if touched)
