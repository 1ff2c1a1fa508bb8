"""`nessie restore`."""

from collections.abc import Iterator
from typing import Annotated

import typer

from nessie_cli.cli import staging
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.submission import head_of_branch
from nessie_cli.errors import ContentNotFound
from nessie_cli.model import ContentKey, KeyRange
from nessie_cli.workspace.staging import StagedList, State, effective, restore

EXAMPLES = (
    "nessie restore db.orders --at main~3",
    "nessie restore db.orders db.items --at v1 -m 'back to v1'",
    "nessie restore db.sales --recursive --at 'main*2 hours ago'",
)


def restore_keys(
    ctx: typer.Context,
    keys: staging.Keys,
    *,
    source: Annotated[str, typer.Option("--at", "--source", "-s", metavar="REV", help="The revision with the wanted state.", show_default=False)],
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="All that is below the keys as well.")] = False,
    message: staging.Message = None,
) -> None:
    """Stage what keys were at an earlier revision; -m commits it.

    A key that did not exist there is deleted. A content that was dropped comes back under a new content id.
    """
    call = Invocation.of(ctx)
    named = [ContentKey.parse(key) for key in keys]
    repository = call.repository()
    at = repository.resolve(call.revision(source)).hash
    wanted_keys = list(_below(call, at, named)) if recursive else named
    known = repository.contents(at, wanted_keys)

    def change(staged: StagedList, state: State) -> StagedList:
        for key in wanted_keys:
            wanted = known.get(key)
            if wanted is None and effective(staged, key, state) is None:
                raise ContentNotFound(f"there is no content with key '{key}', neither now nor at {source}", key)
            if state(key) == wanted:
                call.note(f"{key} is now what it was at {source}")
            staged = restore(staged, key, wanted, state)
        return staged

    staging.stage(call, staging.Step(change, wanted_keys, message, None))


def _below(call: Invocation, at: str, named: list[ContentKey]) -> Iterator[ContentKey]:
    """The keys at or below the named ones whose state differs, each once; raises `ContentNotFound` where both sides have nothing."""
    repository = call.repository()
    head = head_of_branch(repository, call.reference_name())
    seen = set()
    for prefix in named:
        below = KeyRange(prefix=prefix)
        if not any(next(iter(repository.entries(side, below)), None) for side in (head, at)):
            raise ContentNotFound(f"there is no content at or below '{prefix}', neither now nor then", prefix)
        for entry in repository.diff(head, at, below):
            if entry.key not in seen:
                seen.add(entry.key)
                yield entry.key
