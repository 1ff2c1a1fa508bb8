"""Globs in `--ours` and `--theirs`: they decide all conflicts whose keys match."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec.structs import replace

from nessie_cli.cli.app.key_patterns import KeyPattern
from nessie_cli.cli.merge.effects import options_of
from nessie_cli.cli.merge.options import Behavior
from nessie_cli.errors import InvalidInput, ReferenceConflict
from nessie_cli.model import Conflict, ContentKey, KeyBehavior, MergeBehavior
from nessie_cli.repository.changes import MergeOptions

if TYPE_CHECKING:
    from nessie_cli.cli.merge.options import SideOptions

T = TypeVar("T")

ConflictId = tuple[str | None, str | None, ContentKey | None]
"""Identifies a conflict: the transplanted commit, the content id, and the key."""

MOST_ROUNDS = 10_000
"""The most rounds: each commit of a transplant can have conflicts, a decision can cause one."""


def id_of(conflict: Conflict) -> ConflictId:
    """Returns what identifies a conflict among those of one merge."""
    return conflict.commit, conflict.content_id, conflict.key


class SidePattern(NamedTuple):
    """A glob of keys, and the side that it takes."""

    pattern: KeyPattern
    behavior: MergeBehavior

    def decision(self, conflict: Conflict) -> KeyBehavior | None:
        """Returns the decision about a conflict, if the glob takes a side of it.

        It does not if that would delete a content whose key the glob does not match.
        """
        key = conflict.key
        if key is None or not self.pattern.matches(key):
            return None
        for option in options_of(conflict):
            if option.behavior is self.behavior and all(map(self.pattern.matches, option.deletes)):
                return KeyBehavior(
                    key, self.behavior, content_id=conflict.content_id, commit=conflict.commit
                )
        return None


def patterns_of(options: SideOptions, behavior: Behavior = Behavior.NORMAL) -> list[SidePattern]:
    """Returns the globs of `--ours` and `--theirs`, the longest first.

    It counts if several match. Raises `InvalidInput` for invalid ones, and with a `behavior` that
    leaves no conflicts which a glob could decide.
    """
    patterns = [
        SidePattern(pattern, behavior)
        for texts, behavior in (
            (options.ours, MergeBehavior.DROP),
            (options.theirs, MergeBehavior.FORCE),
        )
        for text in texts or ()
        if (pattern := KeyPattern.parse(text)) is not None
    ]
    if patterns and behavior is not Behavior.NORMAL:
        raise InvalidInput(
            f"--behavior {behavior.value} and a glob cannot be used together: there is no conflict"
            " that the glob could decide",
            hint="name the keys",
        )
    return sorted(patterns, key=lambda pattern: -len(pattern.pattern.text))


def deciding(
    do: Callable[[MergeOptions], T], merging: MergeOptions, patterns: Sequence[SidePattern]
) -> T:
    """Performs a merge, transplant or revert, with decisions about the conflicts that match.

    Raises `ReferenceConflict` with the conflicts that are left. A decision can cause conflicts, and
    they are decided, too. All are about the state of the branch in the first attempt.
    """
    decided: dict[ConflictId, KeyBehavior] = {}
    options = merging
    for _ in range(MOST_ROUNDS):
        try:
            return do(options)
        except ReferenceConflict as error:
            more = {
                id_of(conflict): decision
                for conflict in error.conflicts
                if id_of(conflict) not in decided
                for decision in _decisions(conflict, patterns)
            }
            if not more:
                raise
            decided |= more
            options = replace(
                merging,
                behaviors=[*merging.behaviors, *decided.values()],
                expected_hash=options.expected_hash or error.head,
            )
    return do(options)


def _decisions(conflict: Conflict, patterns: Sequence[SidePattern]) -> Iterator[KeyBehavior]:
    """Yields the decision of the first glob that takes a side of a conflict, if there is one."""
    decisions = (pattern.decision(conflict) for pattern in patterns)
    yield from list(filter(None, decisions))[:1]
