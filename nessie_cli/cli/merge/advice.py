"""The command lines that resolve the conflicts of a merge, transplant or revert."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nessie_cli.cli.app.global_options import carried, command_position
from nessie_cli.cli.errors.resolutions import command_line
from nessie_cli.cli.merge.names import ContentName, key_and_file
from nessie_cli.errors import ReferenceConflict, Resolution
from nessie_cli.model import Conflict, ConflictType, Content, ContentKey, Namespace
from nessie_cli.render.text import visible

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
        error.resolutions = resolutions = MergeResolutions(app, branch, error.conflicts)
        if not all(conflict.type in BY_COMMIT for conflict in error.conflicts):
            error.resolver = resolutions.resolver or ""
        raise


class MergeResolutions:
    """Resolves a conflict by repeating the command with a decision.

    Decisions about `conflicts` are not repeated.
    """

    def __init__(self, app: Invocation, branch: str, conflicts: Collection[Conflict]) -> None:
        self._app = app
        self._branch = branch
        self._contested = {conflict.content_id for conflict in conflicts}
        words = [word for word in app.argv if word not in _NOT_REPEATED]
        self._again = list(_without_decisions(words, conflicts))

    def __call__(self, conflict: Conflict) -> Sequence[Resolution]:
        """Returns the command lines for a conflict."""
        return () if conflict.key is None else list(self._decide(conflict, conflict.key))

    @property
    def resolver(self) -> str | None:
        """Returns the command line that asks about each conflict, or None if this command does."""
        words = list(self._again)
        position = command_position(words)
        assert position is not None
        if words[position] == "resolve":
            return None
        return command_line(*words[:position], "resolve", *words[position:])

    def _decide(self, conflict: Conflict, key: ContentKey) -> Iterator[Resolution]:
        name = str(ContentName.of(conflict) or key)
        match conflict.type:
            case ConflictType.NAMESPACE_ABSENT:
                yield self._commit("put", [str(key)], f"add {key}", "--type", "namespace")
            case ConflictType.NOT_A_NAMESPACE:
                aside = self._free_key(key)
                yield self._commit("rename", [str(key), str(aside)], f"make room for {key}")
            case ConflictType.NAMESPACE_NOT_EMPTY:
                yield Resolution(command_line(*self._again, "--ours", name))
            case _:
                for option, effect in (
                    ("--theirs", self._effect_of_theirs(conflict, key)),
                    ("--ours", _effect_of_ours(conflict, key)),
                ):
                    yield Resolution(command_line(*self._again, option, name), effect)

    def _effect_of_theirs(self, conflict: Conflict, key: ContentKey) -> str:
        """Returns what happens on the branch if theirs is taken, beside taking its content."""
        where = f"{visible(str(key))} on {visible(self._branch)}"
        ours, theirs = conflict.actual, conflict.proposed
        if theirs is None:
            return f"deletes {where}" if ours else ""
        if ours is not None and ours.id != theirs.id:
            old = conflict.target_rename.old if conflict.target_rename else None
            if old is None:
                return f"deletes the present {where}"
            effect = f"renames the present {where} back to {visible(str(old))}"
            return "; ".join([effect, *self._displaced(old, ours)])
        arrives_at = conflict.theirs_key or key
        effects = []
        if ours is not None and arrives_at != key:
            effects.append(f"renames {where} to {visible(str(arrives_at))}")
        return "; ".join([*effects, *self._displaced(arrives_at, theirs)])

    def _displaced(self, key: ContentKey, content: Content) -> Iterator[str]:
        """Yields what happens to the other content that has a key to which a content moves.

        A content in conflict has its own decision, and two namespaces with one key are one.
        """
        present = self._app.repository().contents(self._branch, [key]).get(key)
        if present is None or present.id in (content.id, *self._contested):
            return
        if isinstance(present, Namespace) and isinstance(content, Namespace):
            return
        where = f"{visible(str(key))} on {visible(self._branch)}"
        yield f"deletes the present {where}, unless theirs has it under another key"

    def _free_key(self, key: ContentKey) -> ContentKey:
        """Returns a key beside another one that the branch does not have."""
        names = [f"{key.elements[-1]}_{number}" for number in range(1, 10)]
        keys = [ContentKey((*key.elements[:-1], name)) for name in names]
        existing = self._app.repository().contents(self._branch, keys)
        return next((free for free in keys if free not in existing), keys[-1])

    def _commit(self, verb: str, keys: Sequence[str], message: str, *options: str) -> Resolution:
        """Returns a command line that prepares the branch by a commit."""
        ref = self._app.options.ref
        here = [word for word in carried(self._app.options) if word not in (ref, "--ref")]
        return Resolution(
            command_line(
                *here, "--ref", self._branch, "content", verb, *keys, *options, "-m", message
            )
        )


def _effect_of_ours(conflict: Conflict, key: ContentKey) -> str:
    """Returns which content of theirs is left out if ours is kept."""
    ours, theirs = conflict.actual, conflict.proposed
    if ours is None or theirs is None or ours.id == theirs.id:
        return ""
    if conflict.source_rename is not None:
        return ""
    return f"leaves out the {visible(str(key))} of theirs"


def _without_decisions(words: Sequence[str], conflicts: Collection[Conflict]) -> Iterator[str]:
    """Yields the words of a command line without the options that decide about conflicts."""
    keys = {conflict.key for conflict in conflicts}
    ids = {conflict.content_id for conflict in conflicts if conflict.content_id}
    rest = iter(words)
    for word in rest:
        option, is_joined, text = word.partition("=")
        if option not in ("--ours", "--theirs", "--resolve"):
            yield word
            continue
        given = [word] if is_joined else [word, next(rest)]
        value = text or given[-1]
        name = (
            ContentName(key_and_file(value)[0])
            if option == "--resolve"
            else ContentName.parse(value)
        )
        if name.key not in keys and name.content_id not in ids:
            yield from given
