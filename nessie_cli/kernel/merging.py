"""The rules of merge and transplant: apply the changes of a source to a target, key by key.

Both compare three states of a key: before and after the change of the source, and on the target.
Only keys that the source changed are read, so the cost depends on the differences.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.kernel import tree
from nessie_cli.kernel.committing import parse_content_id
from nessie_cli.kernel.conflicts import KeyConflict, difference
from nessie_cli.kernel.decisions import Detail, Outcome, ThreeWay
from nessie_cli.kernel.forms import Id, content_id_of, with_content_id, with_value_of
from nessie_cli.kernel.keys import decode_key, encode_key
from nessie_cli.kernel.namespaces import is_namespace, namespace_conflicts
from nessie_cli.kernel.objects import Objects
from nessie_cli.kernel.renames import Renames
from nessie_cli.model import ConflictType, KeyBehavior, MergeBehavior, check_writable


class KeyChoice(Struct, frozen=True):
    """The behavior for a key, with the expected and resolved contents as records, if given."""

    behavior: MergeBehavior
    expected: bytes | None = None
    resolved: bytes | None = None


class KeyChoices:
    """The behaviors of a merge or transplant.

    Raises `InvalidInput` for meaningless combinations.
    """

    def __init__(
        self, objects: Objects, behaviors: Iterable[KeyBehavior], default: MergeBehavior
    ) -> None:
        self._default = KeyChoice(default)
        self._by_key: dict[bytes, KeyChoice] = {}
        self._objects = objects
        for behavior in behaviors:
            self._add(behavior)
        # DROP of a key that did not change is harmless.
        self.unused = {
            key for key, choice in self._by_key.items() if choice.behavior is not MergeBehavior.DROP
        }
        self.unresolved = {key for key, choice in self._by_key.items() if choice.resolved}

    def _add(self, wanted: KeyBehavior) -> None:
        key = encode_key(wanted.key)
        if key in self._by_key:
            raise InvalidInput(f"Merge behavior for key {wanted.key.plain} is given twice")
        if wanted.resolved is not None and wanted.behavior is not MergeBehavior.NORMAL:
            raise InvalidInput(
                "MergeKeyBehavior.resolvedContent must be null for"
                f" MergeBehavior.{wanted.behavior} for {wanted.key.plain}"
            )
        if wanted.resolved is not None and wanted.expected_target is None:
            raise InvalidInput(
                "MergeKeyBehavior.resolvedContent requires setting"
                f" MergeKeyBehavior.expectedTarget as well for key {wanted.key.plain}"
            )
        expected = resolved = None
        if wanted.resolved is not None and wanted.resolved.id is None:
            raise InvalidInput(
                "Content to store must have a non-null content ID:"
                f" the resolved content of {wanted.key.plain}"
            )
        if wanted.expected_target is not None:
            if wanted.expected_target.id is None:
                raise InvalidInput(
                    f"MergeKeyBehavior.expectedTarget for key {wanted.key.plain} has no content ID"
                )
            expected = self._objects.compared(
                wanted.expected_target, parse_content_id(wanted.expected_target.id)
            )
        if wanted.resolved is not None and wanted.resolved.id is not None:
            check_writable(wanted.resolved)
            resolved = self._objects.add_content(
                wanted.resolved, parse_content_id(wanted.resolved.id)
            )
        self._by_key[key] = KeyChoice(wanted.behavior, expected, resolved)

    def of(self, key: bytes) -> KeyChoice:
        """Returns the choice for a key, or the default."""
        self.unused.discard(key)
        return self._by_key.get(key, self._default)

    def check_all_used(self) -> None:
        """Raises `InvalidInput` if a behavior is for a key that the source did not change."""
        if self.unused:
            keys = ", ".join(sorted(decode_key(key).plain for key in self.unused))
            raise InvalidInput(
                "Not all merge key behaviors specified in the request have been used."
                f" The following keys were not used: [{keys}]"
            )

    def check_resolutions_used(self) -> None:
        """Raises `InvalidInput` if resolved content was given for a key that is not written."""
        for key in sorted(self.unresolved - self.unused):
            raise InvalidInput(
                f"The merge behavior for key {decode_key(key).plain}"
                " has an unused resolvedContent attribute."
            )


def combine(
    objects: Objects,
    changes: Sequence[ThreeWay],
    target: Id,
    choices: KeyChoices,
    renames: Renames,
    *,
    follow_renames: bool = False,
    transplant: bool = False,
    validate_namespaces: bool = True,
) -> Outcome:
    """Decides every changed key, then checks the namespaces of the keys to be written.

    A transplant has three rules of its own. DROP leaves out only keys that would conflict. The
    namespaces of dropped keys are checked as well. A key that a commit deleted and created again
    counts as an update, so it conflicts if the target has another content.
    """
    outcome = Outcome()
    moved = renames.source.keys() | renames.target.keys()
    for change in changes:
        choice = choices.of(change.key)
        if not _is_done(change, choice, transplant=transplant, moved=change.key in moved):
            _decide(outcome, change, choice, choices, transplant=transplant)
    renames.explain(outcome)
    if follow_renames:
        renames.follow(outcome)
    if validate_namespaces:
        contested = {t.key for t in changes if t.before is None and t.target is not None}
        _check_namespaces(objects, outcome, target, contested, with_dropped=transplant)
    return outcome


def _is_done(change: ThreeWay, choice: KeyChoice, *, transplant: bool, moved: bool) -> bool:
    """Returns whether the target made the same change, so that nothing remains to be done.

    In a transplant, only a creation can be done already. FORCE writes an update again. A key that
    is missing on both sides because one of them renamed it (`moved`) was not deleted by both.
    """
    if (
        choice.expected is not None
        or change.target != change.after
        or change.target == change.before
    ):
        return False
    if change.before is None:
        return transplant or choice.behavior is not MergeBehavior.DROP
    return choice.behavior is MergeBehavior.NORMAL and not transplant and not moved


def _decide(
    outcome: Outcome, change: ThreeWay, choice: KeyChoice, choices: KeyChoices, *, transplant: bool
) -> None:
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
        outcome.edits[key] = _resolved(choice, after, target, key, choices)


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


def _resolved(
    choice: KeyChoice, after: bytes | None, target: bytes | None, key: bytes, choices: KeyChoices
) -> bytes | None:
    if choice.resolved is None or after is None:
        return after
    choices.unresolved.discard(key)
    return with_content_id(choice.resolved, content_id_of(target or after))


def _check_namespaces(
    objects: Objects,
    outcome: Outcome,
    target: Id,
    contested: Collection[bytes],
    *,
    with_dropped: bool,
) -> None:
    """Checks the namespaces of the keys to be written.

    `contested` are keys that both sides created. A namespace that was forced over other content of
    the target does not count as the parent of the source's keys.
    """
    written = outcome.edits_if_source_wins()
    dropped = {
        key: d.source
        for key, d in outcome.details.items()
        if d.behavior is MergeBehavior.DROP and key not in written
    }
    for edits in [written | dropped, written] if with_dropped and dropped else [written]:
        outcome.namespace_conflicts = _namespace_conflicts(objects, edits, target, contested)
        if outcome.namespace_conflicts:
            return


def _namespace_conflicts(
    objects: Objects, edits: Mapping[bytes, bytes | None], target: Id, contested: Collection[bytes]
) -> list[KeyConflict]:
    before = tree.get(objects, target, edits)
    edits = {
        key: r
        for key, r in edits.items()
        if not (key in contested and is_namespace(r) and not is_namespace(before.get(key)))
    }
    created = [
        key
        for key, record in edits.items()
        if record is not None
        and (key not in before or content_id_of(before[key]) != content_id_of(record))
    ]
    removed = [
        key
        for key, record in edits.items()
        if is_namespace(before.get(key)) and not is_namespace(record)
    ]
    gone = {key for key, record in edits.items() if record is None}
    return namespace_conflicts(objects, target, edits, created=created, removed=removed, gone=gone)
