"""The command lines that resolve the conflicts of a merge, transplant or revert."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from nessie_cli.cli.app.global_options import VALUED, carried, command_position
from nessie_cli.cli.errors.resolutions import command_line
from nessie_cli.cli.merge.effects import SEPARATOR, effect_of, effect_of_given
from nessie_cli.cli.merge.names import ContentName, key_and_file
from nessie_cli.cli.merge.patterns import SidePattern, removed_against
from nessie_cli.errors import ReferenceConflict, Resolution, WaysOut
from nessie_cli.inspection.decisions import options_of
from nessie_cli.inspection.text import short_hash, visible
from nessie_cli.model import (
    Conflict,
    ConflictType,
    ContentKey,
    MergeBehavior,
    MergeOption,
    Namespace,
)
from nessie_cli.model.key_patterns import KeyPattern
from nessie_cli.repository.draft import MERGE_ONLY, protecting

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.revisions import Revision

BY_COMMIT = (ConflictType.NAMESPACE_ABSENT, ConflictType.NOT_A_NAMESPACE)
"""Conflicts of a merge that need a commit on the target first."""
_OPTIONS = {MergeBehavior.FORCE: "--theirs", MergeBehavior.DROP: "--ours"}
_STARTS_OVER = "starts over, with the present state"
_ANEW = "starts over: with the decisions so far, neither side can be taken"
MOST_COMMITS = 20
"""The most conflicts for which the commit of theirs is looked up."""
_MOST_PREPARED = 100
"""The number of names that are tried for a branch."""
_VALUED = VALUED | {
    *("-m", "--message", "--into", "--onto", "-b", "--behavior", "--key", "--engine"),
    *("--rows-ours", "--rows-theirs", "--decisions", "--write-decisions"),
}
_NOT_REPEATED = ("--dry-run", "--deep", "--json", "--jsonl", "--")


@contextmanager
def conflicts_of_merge(
    app: Invocation,
    branch: str,
    source: str = "",
    commits: Sequence[str] = (),
    pinned: Mapping[str, str] = {},
) -> Iterator[None]:
    """Adds resolutions to a conflict that the block raises, and names for its three states.

    `source` is the name of theirs, and `commits` are those of a transplant. `pinned` replaces words
    of the command line that mean another commit after the branch has moved.
    """
    try:
        yield
    except ReferenceConflict as error:
        error.is_merge = True
        if error.source_hash is not None:
            pinned = {source: f"{source}@{short_hash(error.source_hash)}"}
        if source and not commits:
            theirs = app.revision(pinned.get(source, source))
            first, others = error.conflicts[:MOST_COMMITS], error.conflicts[MOST_COMMITS:]
            error.conflicts = (*(_with_commit(app, theirs, each) for each in first), *others)
        # A server that merges key by key names the branches, and not the store.
        line = command_line(*carried(app.options, ("store", "profile")), "--ref")
        error.message = error.message.replace("`nessie --ref ", f"`{line} ")
        error.ways_out = MergeResolutions(app, branch, error, source, commits, pinned=pinned)
        raise


def _with_commit(app: Invocation, theirs: Revision, conflict: Conflict) -> Conflict:
    """Returns a conflict about a table that does not combine, with the commit of theirs."""
    if not conflict.collisions or conflict.theirs_key is None:
        return conflict
    commit = app.repository().last_change(theirs, conflict.theirs_key)
    return replace(conflict, theirs_changed_by=commit)


class _Part(NamedTuple):
    """A part of a command line: a decision if it has a name, or the expected hash.

    `is_argument` is whether it is a command or an argument, not an option with its value.
    """

    arguments: Sequence[str]
    name: ContentName | None = None
    is_expected: bool = False
    is_argument: bool = False


class MergeResolutions(WaysOut):
    """Resolves a conflict by repeating the command with a decision.

    Decisions about `conflicts` are not repeated.
    """

    def __init__(
        self,
        app: Invocation,
        branch: str,
        error: ReferenceConflict,
        source: str = "",
        commits: Sequence[str] = (),
        *,
        pinned: Mapping[str, str] = {},
    ) -> None:
        self._app = app
        self._branch = branch
        self._commits = commits
        self._conflicts = error.conflicts
        self.source = source
        arguments = [argument for argument in app.argv if argument not in _NOT_REPEATED]
        parts = list(_parts(arguments, error.conflicts))
        # A merge asks again about what the source has become; another commit is another change.
        present = {} if source and not commits else pinned
        self._again = _joined(_pinned(parts, present))
        lasting = [part for part in parts if not part.is_expected]
        self._pinned = _joined(_pinned(lasting, pinned))
        anew = [part for part in lasting if not part.name]
        self._anew = _joined(_pinned(anew, present))
        undecided = [part for part in anew if not _is_default(part)]
        self._undecided = _joined(_pinned(undecided, present))
        self._decisions = [part for part in parts if part.name]
        self._patterns = list(_patterns(self._decisions))
        self._has_decided = any(part.name for part in _parts(arguments, ()))
        # A given hash may be the name of a branch. What counts is the state that is shown.
        given = _joined(part for part in parts if part.is_expected)
        self._expected = ["--expected-hash", short_hash(error.head)] if error.head else given
        self.effect_of_given = effect_of_given(error, branch)
        self.one_by_one = self._resolver()

    def of(self, conflict: Conflict) -> Sequence[Resolution]:
        """Returns the command lines for a conflict."""
        if conflict.type is ConflictType.UNEXPECTED_HASH:
            return [Resolution(command_line(*self._anew), _STARTS_OVER)]
        return () if conflict.key is None else list(self._decide(conflict, conflict.key))

    def together(self) -> Sequence[Resolution]:
        """Returns a command line for each side that decides all conflicts.

        It changes only the keys in conflict, otherwise there is none. So it needs no effect.
        """
        sides = (MergeBehavior.FORCE, MergeBehavior.DROP)
        return [Resolution(line) for side in sides if (line := self._all(side))]

    def _all(self, side: MergeBehavior) -> str:
        """Returns the command line that takes a side of all conflicts; "" if there is none."""
        arguments: list[str] = []
        for conflict in self._conflicts:
            name = ContentName.of(conflict)
            effects = [
                effect_of(option, conflict, self._branch)
                for option in options_of(conflict)
                if option.behavior is side
            ]
            if name is None or effects != [""] or self._scope(conflict) or self.effect_of_given:
                return ""
            arguments += [_OPTIONS[side], str(name)]
        return command_line(*self._pinned, *arguments, *self._expected)

    def _resolver(self) -> str:
        """Returns the command line that asks about each conflict.

        Returns "" if this command does, or if it has a default, which `resolve` does not take.
        """
        arguments = list(self._again)
        position = command_position(arguments)
        assert position is not None
        has_default = any(map(_is_default, _parts(arguments, ())))
        is_asking = arguments[position] == "resolve"
        # A value that is given waits for a key, and `resolve` does not ask for one.
        names = [part.name for part in self._decisions if part.name]
        has_value = any(name.decides(each) for name in names for each in self._conflicts)
        if (
            is_asking
            or has_default
            or has_value
            or not any(c.type in BY_COMMIT or options_of(c) for c in self._conflicts)
            or all(c.type in BY_COMMIT for c in self._conflicts)
        ):
            return ""
        return command_line(*arguments[:position], "resolve", *arguments[position:])

    def _decide(self, conflict: Conflict, key: ContentKey) -> Iterator[Resolution]:
        name = str(ContentName.of(conflict) or key)
        match conflict.type:
            case ConflictType.NAMESPACE_ABSENT | ConflictType.NOT_A_NAMESPACE if (
                earlier := self._earlier(conflict, key)
            ):
                yield self._apply(earlier)
            case ConflictType.NAMESPACE_ABSENT:
                yield from self._add_namespace(key)
            case ConflictType.NOT_A_NAMESPACE:
                aside = self._free_key(key)
                yield from self._commit("rename", [str(key), str(aside)], f"make room for {key}")
            case _:
                options = self._possible(conflict, key)
                if not options and (self._has_decided or self._undecided != self._anew):
                    # A default is one of the decisions so far.
                    yield Resolution(command_line(*self._undecided), _ANEW)
                elif not options and conflict.type is ConflictType.KEY_CONFLICT:
                    yield from self._rename_first(conflict, key)
                yield from self._merge_rows(conflict, key)
                for option in options:
                    # The decision is about the state that is shown.
                    decided = [*self._pinned, _OPTIONS[option.behavior], name, *self._expected]
                    line = command_line(*decided)
                    effect = effect_of(option, conflict, self._branch)
                    yield Resolution(line, self._joined(effect, self._scope(conflict)))

    def _merge_rows(self, conflict: Conflict, key: ContentKey) -> Iterator[Resolution]:
        """Yields the lines that merge the rows of a table, or decide only those in conflict."""
        if any(collision.rows for collision in conflict.collisions):
            for side in ("theirs", "ours"):
                line = [*self._pinned, f"--rows-{side}", str(key), *self._expected]
                yield Resolution(command_line(*line), f"{side} for the rows in conflict only")
        elif conflict.collisions and all(each.files for each in conflict.collisions):
            yield Resolution(command_line(*self._pinned, "--rows"), "merges the rows by their keys")

    def _possible(self, conflict: Conflict, key: ContentKey) -> Sequence[MergeOption]:
        """Returns the decisions that the globs of the command line allow."""
        # A content id in an option names no key.
        own = set() if conflict.is_ambiguous else {key}
        named = own | {part.name.key for part in self._decisions if part.name}
        return [
            option
            for option in options_of(conflict)
            if not removed_against(option, named, self._patterns)
        ]

    def _joined(self, *effects: str) -> str:
        """Returns effects, and those of the decisions that a command line repeats."""
        texts = [
            text for each in (*effects, self.effect_of_given) for text in each.split(SEPARATOR)
        ]
        return SEPARATOR.join(filter(None, dict.fromkeys(texts)))

    def _scope(self, conflict: Conflict) -> str:
        """Returns what a decision is for, unless it is for one commit.

        Servers without our extensions do not say which commit of a transplant is in conflict.
        """
        several = len(self._commits) > 1 and conflict.commit is None
        return f"in all {len(self._commits)} commits" if several else ""

    def _add_namespace(self, key: ContentKey) -> Iterator[Resolution]:
        """Yields the line that adds a namespace, or keeps the one that the merge moves away.

        If the merge moves another content away by a decision, the line starts over without it.
        """
        present = self._app.repository().contents(self._branch, [key]).get(key)
        if present is None:
            yield from self._commit("put", [str(key)], f"add {key}", "--type", "namespace")
        elif isinstance(present, Namespace):
            line = command_line(*self._pinned, "--ours", str(key), *self._expected)
            stays = f"{visible(str(key))} stays on {visible(self._branch)}"
            yield Resolution(line, self._joined(stays))
        elif self._has_decided or self._undecided != self._anew:
            yield Resolution(command_line(*self._undecided), _ANEW)

    def _rename_first(self, conflict: Conflict, key: ContentKey) -> Iterator[Resolution]:
        """Yields the line that gives a content its key of theirs.

        A server that merges key by key can take neither side of a content that both renamed. No
        line is yielded if the branch has another content there.
        """
        new = conflict.theirs_key
        if new is None or conflict.actual is None or conflict.blocking_namespace is not None:
            return
        keys = [each for each in (new, new.parent) if each is not None]
        present = self._app.repository().contents(self._branch, keys)
        if new in present:
            return
        if new.parent is not None and new.parent not in present:
            yield from self._add_namespace(new.parent)
        elif new.parent is None or isinstance(present[new.parent], Namespace):
            yield from self._commit("rename", [str(key), str(new)], "rename before the merge")

    def _free_key(self, key: ContentKey) -> ContentKey:
        """Returns a key beside another one that the branch does not have."""
        names = [f"{key.elements[-1]}_{number}" for number in range(1, 10)]
        keys = [ContentKey((*key.elements[:-1], name)) for name in names]
        existing = self._app.repository().contents(self._branch, keys)
        return next((free for free in keys if free not in existing), keys[-1])

    def _earlier(self, conflict: Conflict, key: ContentKey) -> Sequence[str]:
        """Returns the commits before that of a conflict, if they cause it.

        Then the branch has another content at the key, or none, and cannot be prepared.
        """
        if conflict.commit not in self._commits[1:]:
            return ()
        present = self._app.repository().contents(self._branch, [key]).get(key)
        is_free = conflict.type is ConflictType.NAMESPACE_ABSENT
        is_same = present is None if is_free else not isinstance(present, Namespace | None)
        return () if is_same else self._commits[: self._commits.index(conflict.commit)]

    def _apply(self, commits: Sequence[str]) -> Resolution:
        """Returns the command line that transplants only the first commits."""
        decisions = _joined(part for part in self._decisions if _is_for(part.name, commits))
        bound = self._expected if decisions else []
        line = ["transplant", *map(short_hash, commits), "--onto", self._branch, *decisions, *bound]
        effect = "writes the commits before this one; then prepare the branch for the others"
        return Resolution(
            command_line(*self._here, *line), self._joined(effect) if decisions else effect
        )

    def _commit(
        self, verb: str, keys: Sequence[str], message: str, *options: str
    ) -> Iterator[Resolution]:
        """Yields a command line that prepares the branch by a commit.

        A branch that changes only by merges is prepared by another branch, which is merged. No line
        is yielded if no other branch takes commits.
        """
        if staged := self._staged.intersection(keys):
            line = command_line(*self._here, "--ref", self._branch, "reset", *sorted(staged))
            yield Resolution(line, "unstages a change of this key; then try again")
            return
        commit = ["content", verb, *keys, *options, "-m", message]
        if not self._is_merge_only(self._branch):
            line = command_line(*self._here, "--ref", self._branch, *commit)
            yield Resolution(line, self._afterwards)
            return
        if (other := self._free_branch) is None:
            return
        lines = (
            ["branch", other, self._branch],
            ["--ref", other, *commit],
            ["merge", other, "--into", self._branch],
        )
        reason = f"{visible(self._branch)} changes only by merges"
        yield Resolution(
            " && ".join(command_line(*self._here, *line) for line in lines),
            "; ".join(filter(None, [reason, self._afterwards])),
        )

    @property
    def _afterwards(self) -> str:
        """What follows after a commit: decisions about the state before it are given again."""
        if not self._decisions:
            return ""
        again = f"then start over: {command_line(*self._anew)}"
        return self._joined(again) if self._undecided != self._anew else again

    @cached_property
    def _free_branch(self) -> str | None:
        """The name of a branch that does not exist, and that would take commits; or None."""
        existing = {reference.name for reference in self._app.repository().references()}
        names = (f"prepared-{number}" for number in range(1, _MOST_PREPARED))
        return next(
            (name for name in names if name not in existing and not self._is_merge_only(name)), None
        )

    @property
    def _here(self) -> list[str]:
        """The options of all commands, without the reference."""
        return carried(self._app.options, ("store", "profile"))

    @cached_property
    def _staged(self) -> frozenset[str]:
        """The keys that are staged for the branch: a commit of one key is refused for them."""
        app = self._app
        batch = app.batch_file().read() if app.workspace is not None else None
        if batch is None or batch.branch not in (None, self._branch):
            return frozenset()
        return frozenset(map(str, batch.keys))

    @cached_property
    def _settings(self) -> Mapping[str, str]:
        return self._app.repository().config().settings

    def _is_merge_only(self, branch: str) -> bool:
        return protecting(self._settings, branch, MERGE_ONLY) is not None


def _patterns(decisions: Iterable[_Part]) -> Iterator[SidePattern]:
    """Yields the globs among decisions about a side."""
    for (word, *rest), *_ in decisions:
        option, _, text = word.partition("=")
        sides = [side for side, name in _OPTIONS.items() if name == option]
        pattern = KeyPattern.parse(text or rest[0]) if sides else None
        if pattern is not None:
            yield SidePattern(pattern, sides[0])


def _joined(parts: Iterable[_Part]) -> list[str]:
    return [argument for part in parts for argument in part.arguments]


def _is_default(part: _Part) -> bool:
    return part.arguments[0].partition("=")[0] == "--behavior"


def _pinned(parts: Iterable[_Part], pinned: Mapping[str, str]) -> Iterator[_Part]:
    """Yields parts with the arguments replaced that mean another commit later."""
    is_command = True
    for part in parts:
        (word, *_) = part.arguments
        if part.is_argument and not is_command:
            yield _Part([pinned.get(word, word)])
            continue
        # A command follows: `resolve merge`.
        is_command = is_command and (not part.is_argument or word == "resolve")
        yield part


def _is_for(name: ContentName | None, commits: Sequence[str]) -> bool:
    """Returns whether a decision can be about one of these commits."""
    if name is None or name.commit is None:
        return name is not None
    return any(commit.startswith(name.commit) for commit in commits)


def _parts(arguments: Sequence[str], conflicts: Collection[Conflict]) -> Iterator[_Part]:
    """Yields the parts of a command line. Decisions about conflicts are left out."""
    rest = iter(arguments)
    for word in rest:
        option, is_joined, text = word.partition("=")
        if option in ("--expected-hash", "-c"):
            yield _Part([word] if is_joined else [word, *islice(rest, 1)], is_expected=True)
            continue
        if option in _VALUED:
            yield _Part([word] if is_joined else [word, *islice(rest, 1)])
            continue
        if option not in ("--ours", "--theirs", "--resolve"):
            yield _Part([word], is_argument=not word.startswith("-"))
            continue
        given = [word] if is_joined else [word, next(rest)]
        value = text or given[-1]
        name = (
            ContentName(key_and_file(value)[0])
            if option == "--resolve"
            else ContentName.parse(value)
        )
        # A value that is given stays: a side says beside it which key the content has.
        if option == "--resolve" or not any(map(name.decides, conflicts)):
            yield _Part(given, name)
