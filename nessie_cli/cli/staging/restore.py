"""`nessie restore`."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count
from typing import Annotated

import typer
from msgspec.structs import replace

from nessie_cli.cli.app.global_options import carried
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.errors.resolutions import command_line
from nessie_cli.cli.staging.batch import BatchResult, note_deletions
from nessie_cli.cli.staging.committed import CommittedResult
from nessie_cli.cli.staging.key_arguments import staged_now
from nessie_cli.cli.staging.options import CommitOptions
from nessie_cli.cli.staging.restoration import Restoration, Restorer
from nessie_cli.cli.staging.split_runs import ids_of
from nessie_cli.cli.staging.step import Step, print_step, stage
from nessie_cli.cli.staging.submission import head_of_branch
from nessie_cli.errors import ContentNotFound, InvalidInput
from nessie_cli.iceberg.deleted_files import refuse_deleted
from nessie_cli.inspection.split_runs import split_runs
from nessie_cli.model import ContentKey, KeyRange, type_label
from nessie_cli.model.key_patterns import KeyPattern
from nessie_cli.repository.failed_runs import refuse_restoring
from nessie_cli.workspace.staging import StagedList, State

EXAMPLES = (
    "nessie restore db.orders --at main~3",
    "nessie restore db.orders db.items --at v1 -m 'back to v1'",
    "nessie restore 'db.sales.*' --at v1",
    "nessie restore db.sales --recursive --at 'main*2 hours ago'",
)


class Options(CommitOptions, frozen=True, kw_only=True):
    """Restore contents from an earlier revision, as staged changes.

    A content that was renamed since gets its earlier key back, and one that was deleted since comes
    back. Both keep their content ids. A content that was created since is deleted if its key is
    restored. But a content that has the key of a renamed one now is deleted only if both keys of
    the rename are restored. Otherwise nothing is staged, and the error prints a command that moves
    it.
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
    allow_failed_run: Annotated[
        bool,
        typer.Option(
            "--allow-failed-run",
            help="Allow contents of a run (`nessie run`) that failed or was discarded.",
        ),
    ] = False


def run(options: Options, app: Invocation) -> BatchResult | CommittedResult:
    """Stages the earlier contents. Raises `InvalidInput` if a content is in the way."""
    repository = app.repository()
    at = repository.resolve(app.revision(options.at)).hash
    selected = tuple(_keys(app, options, at))
    head = head_of_branch(repository, app.reference_name())
    if not options.allow_failed_run:
        refuse_restoring(repository, at, head)
    restorer = Restorer(repository, at, head, selected, carried(app.options))
    restored: list[Restoration] = []

    def change(staged: StagedList, state: State) -> StagedList:
        del state  # The restorer reads it, with the keys of renamed contents.
        _refuse_missing(restorer, selected, staged, options.at)
        restoration = restorer.restored(staged)
        if restoration.blocked:
            raise _in_the_way(app, restorer, restoration.blocked[0])
        refuse_deleted(
            {key: restorer.then.get(key) for key in selected},
            restorer.now.values(),
            "restore from a revision whose files still exist, or the other keys only",
        )
        for key in selected:
            if restorer.now.get(key) == restorer.then.get(key):
                app.output.note(f"{key} is the same on the branch as at {options.at}")
        for key in restoration.replaced:
            if key in restorer.now:
                app.output.note(f"{key}: the present {_type_at(restorer, key)} is deleted")
        restored.append(restoration)
        return restoration.staged

    keys = restorer.restored(staged_now(app)).keys
    result = stage(app, Step(change, keys), options.message, options.author)
    changed = ids_of(restored[-1].staged)
    result = replace(result, split_runs=split_runs(repository, head, at, changed))
    if isinstance(result, CommittedResult):
        for restoration in restored:
            note_deletions(app.output, restoration.staged, restoration.replaced)
    return result


def _refuse_missing(
    restorer: Restorer, keys: Iterable[ContentKey], staged: StagedList, at: str
) -> None:
    """Raises `ContentNotFound` for a key that exists nowhere."""
    existing = {*restorer.then, *restorer.now, *(item.key for item in staged)}
    for key in keys:
        if key not in existing:
            raise ContentNotFound(
                f"there is no content with key '{key}', neither on the branch nor at {at}", key
            )


def _in_the_way(app: Invocation, restorer: Restorer, key: ContentKey) -> InvalidInput:
    """Returns the error about a content that a restoration would delete."""
    aside = next(
        free
        for number in count(1)
        if (free := ContentKey((*key.elements[:-1], f"{key.elements[-1]}_{number}")))
        not in restorer.now
    )
    command = command_line(*carried(app.options), "content", "rename", str(key), str(aside))
    type_ = _type_at(restorer, key) if key in restorer.now else "staged content"
    return InvalidInput(
        f"key '{key}' has another content now, of type {type_}, and restoring would delete it",
        hint=f"`{command}` moves it; then restore again",
    )


def _type_at(restorer: Restorer, key: ContentKey) -> str:
    return type_label(restorer.now[key].type_name)


show = print_step


def _keys(app: Invocation, options: Options, at: str) -> dict[ContentKey, None]:
    """Returns the keys that arguments select, each once.

    A glob, or a key with keys below it, selects only keys with another state.
    """
    keys: dict[ContentKey, None] = {}
    for word in options.keys:
        pattern = KeyPattern.parse(word)
        key = ContentKey.parse(word)
        if pattern is not None:
            matches = pattern.matches_above if options.recursive else pattern.matches
            keys |= dict.fromkeys(_changed(app, at, word, pattern.keys, matches))
        elif options.recursive:
            keys |= dict.fromkeys(_changed(app, at, word, KeyRange(prefix=key), lambda _: True))
        else:
            keys[key] = None
    return keys


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
