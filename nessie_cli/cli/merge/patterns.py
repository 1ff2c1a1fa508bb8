"""Globs in `--ours` and `--theirs`: they decide all conflicts whose keys match."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import chain, product
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec.structs import replace

from nessie_cli.cli.merge.options import Behavior
from nessie_cli.errors import InvalidInput, ReferenceConflict
from nessie_cli.inspection.decisions import options_of
from nessie_cli.inspection.merges import displaced_contents
from nessie_cli.model import (
    Conflict,
    ContentKey,
    KeyBehavior,
    MergeBehavior,
    MergeOption,
    MergeResult,
)
from nessie_cli.model.key_patterns import KeyPattern
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


def patterns_of(options: SideOptions, behavior: Behavior = Behavior.NORMAL) -> list[SidePattern]:
    """Returns the globs of `--ours` and `--theirs`.

    Raises `InvalidInput` for invalid ones, and with a `behavior` that leaves no conflicts which a
    glob could decide.
    """
    patterns = [
        SidePattern(pattern, side)
        for texts, side in (
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
    return patterns


def deciding(
    do: Callable[[MergeOptions], T], merging: MergeOptions, patterns: Sequence[SidePattern]
) -> T:
    """Performs a merge, transplant or revert, with decisions about the conflicts that match.

    Raises `ReferenceConflict` with the conflicts that are left, and `InvalidInput` if a decision
    about a key removes what a glob keeps. A decision can cause conflicts, and they are decided,
    too. All are about the state of the branch in the first attempt.
    """
    if patterns and merging.behaviors:
        undecided = _refuse_contradiction(do, merging, patterns)
        if undecided is not None:
            decided = _deciding(do, replace(merging, dry_run=True), patterns)
            _refuse_more_removals(undecided, decided, merging.behaviors, patterns)
    return _deciding(do, merging, patterns)


def _deciding(
    do: Callable[[MergeOptions], T], merging: MergeOptions, patterns: Sequence[SidePattern]
) -> T:
    """Performs a merge, transplant or revert with decisions about the conflicts that match."""
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
                and (decision := _decision(conflict, patterns)) is not None
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


def _refuse_contradiction(
    do: Callable[[MergeOptions], T], merging: MergeOptions, patterns: Sequence[SidePattern]
) -> T | None:
    """Raises `InvalidInput` if a decision removes a content that a glob of the other side names.

    The conflict that the glob is about does not appear, because the decision settles it. So the
    decisions are left out; in a transplant, those about the commits before are given. Returns the
    result of this dry run, None if conflicts are left.
    """
    earlier: dict[ConflictId, Sequence[KeyBehavior]] = {}
    for _ in range(MOST_ROUNDS):
        behaviors = list(chain.from_iterable(earlier.values()))
        try:
            return do(replace(merging, behaviors=behaviors, dry_run=True))
        except ReferenceConflict as error:
            conflicts = [each for each in error.conflicts if id_of(each) not in earlier]
        _refuse_removals(conflicts, merging.behaviors, patterns)
        more = {
            id_of(conflict): decisions
            for conflict in conflicts
            if (decisions := _decisions_in_commit(conflict, merging.behaviors, patterns))
        }
        if not more:
            break
        earlier |= more
    return None


def _refuse_removals(
    conflicts: Sequence[Conflict],
    decisions: Sequence[KeyBehavior],
    patterns: Sequence[SidePattern],
) -> None:
    """Raises `InvalidInput` if a decision about a conflict removes what a glob keeps."""
    # A key counts more than a glob.
    named = {decision.key for decision in decisions}
    for decision, conflict in product(decisions, conflicts):
        options = options_of(conflict) if _is_about(decision, conflict) else ()
        for option in options:
            if option.behavior is not decision.behavior:
                continue
            for key in removed_against(option, named, patterns):
                raise InvalidInput(
                    f"the decision about {decision.key} removes {key}, which a glob keeps",
                    hint="if this is meant, name keys instead of the glob",
                )


def removed_against(
    option: MergeOption, named: Collection[ContentKey], patterns: Sequence[SidePattern]
) -> list[ContentKey]:
    """Returns the keys that a decision removes, and that globs of the other side keep.

    `named` are the keys of decisions: these count more than globs.
    """
    removed = {*option.deletes, *option.leaves_out}.difference(named)
    return [key for key in removed if _sides(key, patterns) - {option.behavior}]


def _refuse_more_removals(
    undecided: object,
    decided: object,
    decisions: Sequence[KeyBehavior],
    patterns: Sequence[SidePattern],
) -> None:
    """Raises `InvalidInput` if decisions without a conflict remove what a glob keeps."""
    if not isinstance(undecided, MergeResult) or not isinstance(decided, MergeResult):
        return
    before = {(each.key, each.content.id) for each in displaced_contents(undecided)}
    named = {decision.key for decision in decisions}
    for key, content, is_ours in displaced_contents(decided):
        kept_by = MergeBehavior.DROP if is_ours else MergeBehavior.FORCE
        if key in named or (key, content.id) in before or _sides(key, patterns) != {kept_by}:
            continue
        names = ", ".join(sorted(map(str, named)))
        raise InvalidInput(
            f"the decision about {names} removes {key}, which a glob keeps",
            hint="if this is meant, name keys instead of the glob",
        )


def _decisions_in_commit(
    conflict: Conflict, decisions: Sequence[KeyBehavior], patterns: Sequence[SidePattern]
) -> Sequence[KeyBehavior]:
    """Returns the decisions about a conflict of a transplanted commit, for this commit only."""
    if conflict.key is None or conflict.commit is None:
        return ()
    given = [each for each in decisions if _is_about(each, conflict)]
    given = [each for each in given if each.commit is not None] or given
    if not given:
        decision = _decision(conflict, patterns)
        return () if decision is None else (decision,)
    content_id, commit = conflict.content_id, conflict.commit
    return [replace(each, key=conflict.key, content_id=content_id, commit=commit) for each in given]


def _is_about(decision: KeyBehavior, conflict: Conflict) -> bool:
    if decision.commit is not None and decision.commit != conflict.commit:
        return False
    if decision.content_id is not None:
        return decision.content_id == conflict.content_id
    return decision.key == conflict.key or decision.key in _other_keys(conflict)


def _decision(conflict: Conflict, patterns: Sequence[SidePattern]) -> KeyBehavior | None:
    """Returns the decision about a conflict, if its key matches a glob.

    There is none if other keys of the content match a glob of the other side, if the side cannot be
    taken, or if it would delete a content whose key does not match a glob of this side.
    """
    key = conflict.key
    if key is None or len(sides := _sides(key, patterns)) != 1:
        return None
    if any(_sides(other, patterns) - sides for other in _other_keys(conflict)):
        return None
    (behavior,) = sides
    deletes = next((o.deletes for o in options_of(conflict) if o.behavior is behavior), None)
    if deletes is None or any(_sides(deleted, patterns) != sides for deleted in deletes):
        return None
    return KeyBehavior(key, behavior, content_id=conflict.content_id, commit=conflict.commit)


def _sides(key: ContentKey, patterns: Sequence[SidePattern]) -> set[MergeBehavior]:
    """Returns the side of the longest glob that matches a key; both if two have this length."""
    matching = [each for each in patterns if each.pattern.matches(key)]
    longest = max((len(each.pattern.text) for each in matching), default=0)
    return {each.behavior for each in matching if len(each.pattern.text) == longest}


def _other_keys(conflict: Conflict) -> set[ContentKey]:
    """Returns the keys that the content in conflict has in other states, if it was renamed."""
    renames = (conflict.source_rename, conflict.target_rename)
    keys = {conflict.base_key, conflict.theirs_key, conflict.value_key}
    keys |= {key for rename in renames if rename for key in (rename.old, rename.new)}
    return {key for key in keys if key is not None}
