"""`nessie restore`."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import Annotated

import typer

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.key_patterns import KeyPattern
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.staging.batch import Batch
from nessie_cli.cli.staging.committed import Committed
from nessie_cli.cli.staging.key_arguments import staged_now
from nessie_cli.cli.staging.options import CommitOptions
from nessie_cli.cli.staging.step import Step, print_step, stage
from nessie_cli.cli.staging.submission import head_of_branch
from nessie_cli.errors import ContentNotFound
from nessie_cli.model import Content, ContentKey, KeyRange
from nessie_cli.workspace.staging import StagedList, State, delete, effective, rename, restore

EXAMPLES = (
    "nessie restore db.orders --at main~3",
    "nessie restore db.orders db.items --at v1 -m 'back to v1'",
    "nessie restore 'db.sales.*' --at v1",
    "nessie restore db.sales --recursive --at 'main*2 hours ago'",
)


class Options(CommitOptions, frozen=True, kw_only=True):
    """Restore keys from an earlier revision, as staged changes.

    A key that is on the branch but not at the revision is staged for deletion. A restored content
    gets a new content id if its key has no content now, or another one.
    To undo a rename and keep the id, restore both the old and the new key; at the revision, the new
    key must have had no content.
    """

    keys: Annotated[
        list[str], typer.Argument(metavar="KEY...", help="The keys, or globs such as 'db.*'.")
    ]
    at: Annotated[
        str,
        typer.Option("--at", "--source", "-s", metavar="REV", help="The revision to restore from."),
    ]
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="Also restore all keys below each KEY.")
    ] = False


def run(options: Options, app: Invocation) -> Batch | Committed:
    """Stages the earlier state of the keys."""
    repository = app.repository()
    at = repository.resolve(app.revision(options.at)).hash
    selected = tuple(_keys(app, options, at))
    known = repository.contents(at, selected)
    # Keys of the revision come first, so that renames are undone before the new keys are deleted.
    keys = tuple(sorted(selected, key=lambda key: known.get(key) is None))
    holders = _Holders(app)

    def change(staged: StagedList, state: State) -> StagedList:
        for key in keys:
            wanted, now = known.get(key), effective(staged, key, state)
            if wanted is None and state(key) is None and now is None:
                raise ContentNotFound(
                    f"there is no content with key '{key}', neither on the branch nor at"
                    f" {options.at}",
                    key,
                )
            if state(key) == wanted:
                app.output.note(f"{key} is the same on the branch as at {options.at}")
            if wanted is not None and (now is None or now.id != wanted.id):
                holder = holders.of(wanted) if len(keys) > 1 else None
                is_deleted = holder in keys and known.get(holder) is None
                if holder and is_deleted and _has(staged, holder, wanted, state):
                    # The new key is deleted, so the rename is undone and the content keeps its id.
                    freed = staged if now is None else delete(staged, key, state)
                    staged = rename(freed, holder, key, state)
            staged = restore(staged, key, wanted, state)
        return staged

    return stage(app, Step(change, keys), options.message, options.author)


def _has(staged: StagedList, key: ContentKey, content: Content, state: State) -> bool:
    """Returns whether a key has a content with this id, with the batch applied."""
    found = effective(staged, key, state)
    return found is not None and found.id == content.id


class _Holders:
    """The keys of the current branch by content id. They are read on first use."""

    def __init__(self, app: Invocation) -> None:
        self._app = app

    def of(self, content: Content) -> ContentKey | None:
        """Returns the key that has the content id."""
        return self._keys.get(content.id)

    @cached_property
    def _keys(self) -> Mapping[str | None, ContentKey]:
        repository = self._app.repository()
        head = head_of_branch(repository, self._app.reference_name())
        return {entry.content_id: entry.key for entry in repository.entries(head)}


def show(result: Batch | Committed, output: Output) -> None:
    """Prints the changes, or their commit."""
    print_step(result, output)


def _keys(app: Invocation, options: Options, at: str) -> dict[ContentKey, None]:
    """Returns the keys that arguments select, each once.

    A glob, or a key with keys below it, selects only keys with another state.
    """
    found: dict[ContentKey, None] = {}
    for word in options.keys:
        pattern = KeyPattern.parse(word)
        key = ContentKey.parse(word)
        if pattern is not None:
            matches = pattern.matches_above if options.recursive else pattern.matches
            found |= dict.fromkeys(_changed(app, at, word, pattern.keys, matches))
        elif options.recursive:
            found |= dict.fromkeys(_changed(app, at, word, KeyRange(prefix=key), lambda _: True))
        else:
            found[key] = None
    return found


def _changed(
    app: Invocation,
    at: str,
    word: str,
    below: KeyRange,
    matches: Callable[[ContentKey], bool],
) -> Iterator[ContentKey]:
    """Yields matching keys whose state differs from that on the branch or in the batch.

    Raises `ContentNotFound` if no key matches on either side.
    """
    repository = app.repository()
    head = head_of_branch(repository, app.reference_name())
    sides = (entry.key for side in (head, at) for entry in repository.entries(side, below))
    staged = [
        item.key
        for item in staged_now(app)
        if below.prefix is None or item.key.starts_with(below.prefix)
    ]
    if not any(map(matches, chain(staged, sides))):
        raise ContentNotFound(
            f"no key matches '{word}', neither on the branch nor at the revision",
            ContentKey.parse(word),
        )
    yield from filter(
        matches, chain((entry.key for entry in repository.diff(head, at, below)), staged)
    )
