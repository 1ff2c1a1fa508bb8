"""`nessie restore`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import typer

from nessie_cli.cli.app.output import Output
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.staging.batch import Batch
from nessie_cli.cli.staging.committed import Committed
from nessie_cli.cli.staging.options import CommitOptions
from nessie_cli.cli.staging.step import Step, print_step, stage
from nessie_cli.cli.submission import head_of_branch
from nessie_cli.errors import ContentNotFound
from nessie_cli.model import ContentKey, KeyRange
from nessie_cli.workspace.staging import StagedList, State, effective, restore

EXAMPLES = (
    "nessie restore db.orders --at main~3",
    "nessie restore db.orders db.items --at v1 -m 'back to v1'",
    "nessie restore db.sales --recursive --at 'main*2 hours ago'",
)


@dataclass(frozen=True, kw_only=True)
class Options(CommitOptions):
    """Stage the earlier state of keys.

    A key that did not exist at the revision is deleted. A content that was dropped since then comes
    back with a new content id.
    """

    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="The keys.")]
    at: Annotated[
        str,
        typer.Option("--at", "--source", "-s", metavar="REV", help="The revision to restore from."),
    ]
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="Also restore all keys below them.")] = False


def run(options: Options, app: Invocation) -> Batch | Committed:
    """Stages the state that the keys had."""
    named = list(map(ContentKey.parse, options.keys))
    repository = app.repository()
    at = repository.resolve(app.revision(options.at)).hash
    keys = tuple(_below(app, at, named) if options.recursive else named)
    known = repository.contents(at, keys)

    def change(staged: StagedList, state: State) -> StagedList:
        for key in keys:
            wanted = known.get(key)
            if wanted is None and effective(staged, key, state) is None:
                raise ContentNotFound(f"there is no content with key '{key}', neither now nor at {options.at}", key)
            if state(key) == wanted:
                app.output.note(f"{key} is the same now as at {options.at}")
            staged = restore(staged, key, wanted, state)
        return staged

    return stage(app, Step(change, keys), options)


def show(result: Batch | Committed, output: Output) -> None:
    """Prints the changes, or their commit."""
    print_step(result, output)


def _below(app: Invocation, at: str, named: list[ContentKey]) -> Iterator[ContentKey]:
    """Yields the keys at or below the named ones whose state differs, each once.

    Raises `ContentNotFound` if there are none on either side.
    """
    repository = app.repository()
    head = head_of_branch(repository, app.reference_name())
    seen = set()
    for prefix in named:
        below = KeyRange(prefix=prefix)
        if not any(next(iter(repository.entries(side, below)), None) for side in (head, at)):
            raise ContentNotFound(f"there is no content at or below '{prefix}', neither now nor then", prefix)
        for entry in repository.diff(head, at, below):
            if entry.key not in seen:
                seen.add(entry.key)
                yield entry.key
