"""The rules of the original server for merge and transplant, key by key.

Both compare three states of a key: before and after the change of the source, and on the target.
Only keys that the source changed are read, so the cost depends on the differences. Our own clients
use the rules of `content_rules.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, structs

from nessie_cli.errors import InvalidInput
from nessie_cli.kernel import tree
from nessie_cli.kernel.committing import difference, parse_content_id
from nessie_cli.kernel.content_changes import MergeSides, ThreeWay, differing_keys, doubled_keys
from nessie_cli.kernel.forms import (
    content_id_of,
    decode_key,
    encode_key,
    is_namespace,
    with_content_id,
    with_value_of,
)
from nessie_cli.kernel.namespaces import conflicts_of_edits
from nessie_cli.kernel.objects import Objects
from nessie_cli.kernel.outcome import Detail, KeyConflict, Outcome
from nessie_cli.model import ConflictType, KeyBehavior, MergeBehavior, check_writable


class KeyChoice(Struct, frozen=True):
    """The behavior for a key, with the expected and resolved contents as records, if given."""

    behavior: MergeBehavior
    expected: bytes | None = None
    resolved: bytes | None = None


def read_choice(objects: Objects, given: KeyBehavior) -> KeyChoice:
    """Returns the choice of a behavior. Raises `InvalidInput` for a meaningless combination."""
    name = given.key.plain
    expected = resolved = None
    if given.resolved is not None:
        if given.behavior is not MergeBehavior.NORMAL:
            raise InvalidInput(
                "MergeKeyBehavior.resolvedContent must be null for"
                f" MergeBehavior.{given.behavior} for {name}"
            )
        if given.expected_target is None:
            raise InvalidInput(
                "MergeKeyBehavior.resolvedContent requires setting"
                f" MergeKeyBehavior.expectedTarget as well for key {name}"
            )
        if given.resolved.id is None:
            raise InvalidInput(
                f"Content to store must have a non-null content ID: the resolved content of {name}"
            )
    if given.expected_target is not None:
        if given.expected_target.id is None:
            raise InvalidInput(f"MergeKeyBehavior.expectedTarget for key {name} has no content ID")
        expected = objects.compared(
            given.expected_target, parse_content_id(given.expected_target.id)
        )
    if given.resolved is not None and given.resolved.id is not None:
        check_writable(given.resolved)
        resolved = objects.add_content(given.resolved, parse_content_id(given.resolved.id))
    return KeyChoice(given.behavior, expected, resolved)


class KeyRules:
    """The rules per key, with the behaviors of a merge or transplant.

    Raises `InvalidInput` for meaningless combinations.
    """

    def __init__(
        self, objects: Objects, behaviors: Iterable[KeyBehavior], default: MergeBehavior
    ) -> None:
        self._default = KeyChoice(default)
        self._by_key: dict[bytes, KeyChoice] = {}
        for behavior in behaviors:
            key = encode_key(behavior.key)
            if key in self._by_key:
                raise InvalidInput(f"Merge behavior for key {behavior.key.plain} is given twice")
            self._by_key[key] = read_choice(objects, behavior)

    def of(self, key: bytes) -> KeyChoice:
        """Returns the choice for a key, or the default."""
        return self._by_key.get(key, self._default)

    def check_used(self, outcome: Outcome, *, is_transplant: bool) -> None:
        """Raises `InvalidInput` for behaviors without an effect.

        That is a behavior for a key that the source of a merge did not change, and resolved content
        for a key that is not written.
        """
        if not is_transplant:
            self._check_all_used(outcome)
        if not outcome.conflicts:
            self._check_resolutions_used(outcome)

    def _check_all_used(self, outcome: Outcome) -> None:
        # DROP of a key that did not change is harmless.
        unused = [
            key
            for position, (key, choice) in enumerate(self._by_key.items())
            if position not in outcome.used and choice.behavior is not MergeBehavior.DROP
        ]
        if unused:
            keys = ", ".join(sorted(decode_key(key).plain for key in unused))
            raise InvalidInput(
                "Not all merge key behaviors specified in the request have been used."
                f" The following keys were not used: [{keys}]"
            )

    def _check_resolutions_used(self, outcome: Outcome) -> None:
        unresolved = [
            key
            for position, (key, choice) in enumerate(self._by_key.items())
            if choice.resolved and position in outcome.used - outcome.resolved
        ]
        for key in sorted(unresolved):
            raise InvalidInput(
                f"The merge behavior for key {decode_key(key).plain}"
                " has an unused resolvedContent attribute."
            )

    def apply(self, objects: Objects, sides: MergeSides, *, validate_namespaces: bool) -> Outcome:
        """Decides every changed key, then checks the namespaces of the keys to be written.

        A transplant has three rules of its own. DROP leaves out only keys that would conflict. The
        namespaces of dropped keys are checked as well. A key that a commit deleted and created
        again counts as an update, so it conflicts if the target has another content.
        """
        outcome = Outcome()
        for change in sides.changes:
            choice = self.of(change.key)
            if not _is_done(change, choice, transplant=sides.is_transplant):
                _decide(outcome, change, choice, transplant=sides.is_transplant)
        changed = {change.key: change.after for change in sides.changes}
        positions = {key: position for position, key in enumerate(self._by_key) if key in changed}
        outcome.used = frozenset(positions.values())
        outcome.resolved = frozenset(
            position
            for key, position in positions.items()
            if key in outcome.edits and changed[key] is not None and self._by_key[key].resolved
        )
        _refuse_doubles(objects, outcome, sides, self)
        if validate_namespaces:
            _check_namespaces(objects, outcome, sides)
        for key, detail in outcome.details.items():
            result = None if detail.conflict else outcome.edits.get(key, detail.target)
            outcome.details[key] = structs.replace(detail, result=result)
        return outcome


def _is_done(change: ThreeWay, choice: KeyChoice, *, transplant: bool) -> bool:
    """Returns whether the target made the same change, so that nothing remains to be done.

    In a transplant, only a creation can be done already. FORCE writes an update again.
    """
    if (
        choice.expected is not None
        or change.target != change.after
        or change.target == change.before
    ):
        return False
    if change.before is None:
        return transplant or choice.behavior is not MergeBehavior.DROP
    return choice.behavior is MergeBehavior.NORMAL and not transplant


def _decide(outcome: Outcome, change: ThreeWay, choice: KeyChoice, *, transplant: bool) -> None:
    key, before, target, after = change.key, change.before, change.target, change.after
    both_namespaces = (
        before is None and choice.expected is None and is_namespace(after) and is_namespace(target)
    )
    type_ = (
        None if both_namespaces else _conflict_type(change, choice.expected, transplant=transplant)
    )
    if choice.behavior is MergeBehavior.DROP and (
        not transplant or (type_ and choice.expected is None)
    ):
        outcome.details[key] = Detail(choice.behavior, after, target)
        return
    if choice.behavior is MergeBehavior.FORCE and choice.expected is None:
        type_ = None
    conflict = KeyConflict(type_, key, choice.expected or before, target, after) if type_ else None
    if not both_namespaces:
        outcome.details[key] = Detail(choice.behavior, after, target, conflict)
    if after is None and before is not None:
        outcome.removed[key] = before
    if conflict is None:
        outcome.edits[key] = _resolved(choice, after, target)


def _conflict_type(
    change: ThreeWay, expected: bytes | None, *, transplant: bool
) -> ConflictType | None:
    """Returns the conflict between a change and the target, or None.

    The target must have the type and id of the changed content, and its value before the change. A
    content that the caller expects on the target replaces the value before. Its type and id do not
    count, so that no expectation lets one content replace another.
    """
    seen = change.before if expected is None else expected
    if seen is None or change.target is None:
        return difference(seen, change.target)
    changed = change.after or change.before
    if (
        not transplant
        and change.before
        and change.after
        and content_id_of(change.before) != content_id_of(change.after)
    ):
        # Deleted, then created again: only the deletion can conflict.
        changed = change.before
    assert changed is not None
    return difference(with_value_of(changed, seen), change.target) or (
        difference(seen, change.target) and ConflictType.VALUE_DIFFERS
    )


def _resolved(choice: KeyChoice, after: bytes | None, target: bytes | None) -> bytes | None:
    if choice.resolved is None or after is None:
        return after
    return with_content_id(choice.resolved, content_id_of(target or after))


def _refuse_doubles(
    objects: Objects, outcome: Outcome, sides: MergeSides, choices: KeyRules
) -> None:
    """Makes it a conflict if the outcome would give a content a second key."""
    changed = {change.key: change for change in sides.changes}
    doubles = doubled_keys(
        outcome.edits_if_source_wins(),
        lambda key: changed[key].target,
        lambda: differing_keys(sides.changes, tree.diff(objects, sides.base, sides.target)),
    )
    for key, other in doubles.items():
        # A namespace of both sides has no detail.
        detail = outcome.details.get(key) or Detail(
            choices.of(key).behavior, changed[key].after, changed[key].target
        )
        conflict = detail.conflict or KeyConflict(
            ConflictType.KEY_EXISTS, key, None, detail.target, detail.source
        )
        outcome.edits.pop(key, None)
        outcome.details[key] = structs.replace(
            detail, conflict=structs.replace(conflict, other_key=other)
        )


def _check_namespaces(objects: Objects, outcome: Outcome, sides: MergeSides) -> None:
    """Checks the namespaces of the keys to be written.

    A namespace that was forced over other content of the target does not count as the parent of the
    source's keys.
    """
    contested = {t.key for t in sides.changes if t.before is None and t.target is not None}
    written = outcome.edits_if_source_wins()
    dropped = {
        key: d.source
        for key, d in outcome.details.items()
        if d.behavior is MergeBehavior.DROP and key not in written
    }
    for edits in [written | dropped, written] if sides.is_transplant and dropped else [written]:
        before = tree.get(objects, sides.target, contested)
        checked = {
            key: r
            for key, r in edits.items()
            if not (key in contested and is_namespace(r) and not is_namespace(before.get(key)))
        }
        outcome.namespace_conflicts = conflicts_of_edits(objects, sides.target, checked)
        if outcome.namespace_conflicts:
            return
