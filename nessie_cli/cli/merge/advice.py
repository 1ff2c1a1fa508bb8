"""The command lines that resolve the conflicts of a merge, transplant or revert."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nessie_cli.cli.app.global_options import carried, command_position
from nessie_cli.cli.errors.resolutions import command_line
from nessie_cli.cli.merge.behaviors import key_and_file
from nessie_cli.cli.staging.resolutions import contents_below
from nessie_cli.errors import ReferenceConflict
from nessie_cli.model import Conflict, ConflictType, ContentKey

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation

BY_COMMIT = (ConflictType.NAMESPACE_ABSENT, ConflictType.NOT_A_NAMESPACE)
"""Conflicts of a merge that need a commit on the target first."""
_NOT_REPEATED = ("--dry-run", "--deep", "--json", "--jsonl")


@contextmanager
def conflicts_of_merge(app: Invocation, branch: str, source: str = "") -> Iterator[None]:
    """Adds resolutions to a conflict that the block raises, and names for its three states.

    `source` is the name of theirs.
    """
    try:
        yield
    except ReferenceConflict as error:
        error.is_merge = True
        error.source = source
        keys = [conflict.key for conflict in error.conflicts if conflict.key is not None]
        error.resolutions = found = MergeResolutions(app, branch, keys)
        if not all(conflict.type in BY_COMMIT for conflict in error.conflicts):
            error.resolver = found.resolver or ""
        raise


class MergeResolutions:
    """Resolves a conflict by repeating the command with a decision.

    Decisions about `keys`, which are in conflict, are not repeated.
    """

    def __init__(self, app: Invocation, branch: str, keys: Collection[ContentKey]) -> None:
        self._app = app
        self._branch = branch
        words = [word for word in app.argv if word not in _NOT_REPEATED]
        self._again = list(_without_decisions(words, keys))

    def __call__(self, conflict: Conflict) -> Sequence[str]:
        """Returns the command lines for a conflict."""
        return () if conflict.key is None else self._decide(conflict, conflict.key)

    @property
    def resolver(self) -> str | None:
        """Returns the command line that asks about each conflict, or None if this command does."""
        words = list(self._again)
        position = command_position(words)
        assert position is not None
        if words[position] == "resolve":
            return None
        return command_line(*words[:position], "resolve", *words[position:])

    def _decide(self, conflict: Conflict, key: ContentKey) -> list[str]:
        again = self._again
        match conflict.type:
            case ConflictType.NAMESPACE_ABSENT:
                return [self._commit("put", [key], f"add {key}", "--type", "namespace")]
            case ConflictType.NOT_A_NAMESPACE:
                return [
                    self._commit("replace", [key], f"make {key} a namespace", "--type", "namespace")
                ]
            case ConflictType.NAMESPACE_NOT_EMPTY:
                below = contents_below(self._app, self._branch, key)
                empty = [self._commit("delete", below, f"empty {key}")] if below else []
                # A transplant checks a namespace even if a commit's change to it is dropped.
                keep = (
                    []
                    if {"transplant", "cherry-pick"} & set(again)
                    else [command_line(*again, "--ours", str(key))]
                )
                return [*keep, *empty]
        name = conflict.content_id if conflict.is_ambiguous and conflict.content_id else str(key)
        return [command_line(*again, side, name) for side in ("--theirs", "--ours")]

    def _commit(self, verb: str, keys: Sequence[ContentKey], message: str, *options: str) -> str:
        """Returns a command line that prepares the branch by a commit."""
        ref = self._app.options.ref
        here = [word for word in carried(self._app.options) if word not in (ref, "--ref")]
        return command_line(
            *here, "--ref", self._branch, "content", verb, *map(str, keys), *options, "-m", message
        )


def _without_decisions(words: Sequence[str], keys: Collection[ContentKey]) -> Iterator[str]:
    """Yields the words of a command line without the options that decide about some keys."""
    rest = iter(words)
    for word in rest:
        option, is_joined, text = word.partition("=")
        if option not in ("--ours", "--theirs", "--resolve"):
            yield word
            continue
        given = [word] if is_joined else [word, next(rest)]
        value = text or given[-1]
        key = key_and_file(value)[0] if option == "--resolve" else ContentKey.parse(value)
        if key not in keys:
            yield from given
