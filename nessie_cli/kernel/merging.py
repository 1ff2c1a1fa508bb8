"""Merge and transplant: applies net changes of a source to the state of a target, key by key.

Both decide by three states of a key: before and after the change of the source, and on the target. Only keys that the
source changed are read, so the cost is that of the differences.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

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
from nessie_cli.model import ConflictType, KeyBehavior, MergeBehavior


class KeyChoice(Struct, frozen=True):
    """The behavior that the caller chose for a key, with the expected and resolved contents as records (None if not given)."""

    behavior: MergeBehavior
    expected: bytes | None = None
    resolved: bytes | None = None


class KeyChoices:
    """The behaviors of a merge or transplant; raises `InvalidInput` for combinations that have no meaning."""

    def __init__(self, objects: Objects, behaviors: Iterable[KeyBehavior], default: MergeBehavior) -> None:
        self._default = KeyChoice(default)
        self._by_key: dict[bytes, KeyChoice] = {}
        self._objects = objects
        for behavior in behaviors:
            self._add(behavior)
        # Leaving out what is not there leaves out nothing.
        self.unused = {key for key, choice in self._by_key.items() if choice.behavior is not MergeBehavior.DROP}
        self.unresolved = {key for key, choice in self._by_key.items() if choice.resolved}

    def _add(self, wanted: KeyBehavior) -> None:
        key = encode_key(wanted.key)
        if key in self._by_key:
            raise InvalidInput(f"Merge behavior for key {wanted.key.plain} is given twice")
        if wanted.resolved is not None and wanted.behavior is not MergeBehavior.NORMAL:
            raise InvalidInput(f"MergeKeyBehavior.resolvedContent must be null for MergeBehavior.{wanted.behavior} for {wanted.key.plain}")
        if wanted.resolved is not None and wanted.expected_target is None:
            raise InvalidInput(
                f"MergeKeyBehavior.resolvedContent requires setting MergeKeyBehavior.expectedTarget as well for key {wanted.key.plain}"
            )
        expected = resolved = None
        if wanted.resolved is not None and wanted.resolved.id is None:
            raise InvalidInput(f"Content to store must have a non-null content ID: the resolved content of {wanted.key.plain}")
        if wanted.expected_target is not None:
            if wanted.expected_target.id is None:
                raise InvalidInput(f"MergeKeyBehavior.expectedTarget for key {wanted.key.plain} has no content ID")
            expected = self._objects.compared(wanted.expected_target, parse_content_id(wanted.expected_target.id))
        if wanted.resolved is not None and wanted.resolved.id is not None:
            resolved = self._objects.add_content(wanted.resolved, parse_content_id(wanted.resolved.id))
        self._by_key[key] = KeyChoice(wanted.behavior, expected, resolved)

    def of(self, key: bytes) -> KeyChoice:
        """The choice for a key, or the default."""
        self.unused.discard(key)
        return self._by_key.get(key, self._default)

    def check_all_used(self) -> None:
        """Raise `InvalidInput` if a behavior was chosen for a key that the source did not change."""
        if self.unused:
            keys = ", ".join(sorted(decode_key(key).plain for key in self.unused))
            raise InvalidInput(f"Not all merge key behaviors specified in the request have been used. The following keys were not used: [{keys}]")

    def check_resolutions_used(self) -> None:
        """Raise `InvalidInput` if resolved content was given for a key that is not written."""
        for key in sorted(self.unresolved - self.unused):
            raise InvalidInput(f"The merge behavior for key {decode_key(key).plain} has an unused resolvedContent attribute.")


def combine(
    objects: Objects,
    changes: Sequence[ThreeWay],
    target: Id,
    choices: KeyChoices,
    renames: Renames,
    *,
    follow_renames: bool = False,
    transplant: bool = False,
) -> Outcome:
    """Decide every changed key, then judge the namespaces of what is left to write.

    A transplant has two rules of its own: DROP leaves out only what would conflict, and a key that a commit deleted and created
    again is taken for an update, so that it conflicts wherever the content that it updates is not the one that it brings.
    """
    outcome = Outcome()
    for change in changes:
        _decide(outcome, change, choices, transplant=transplant)
    renames.explain(outcome)
    if follow_renames:
        renames.follow(outcome)
    _judge_namespaces(objects, outcome, target, {t.key for t in changes if t.before is None and t.target is not None})
    return outcome


def _decide(outcome: Outcome, change: ThreeWay, choices: KeyChoices, *, transplant: bool) -> None:
    key, before, target, after = change.key, change.before, change.target, change.after
    choice = choices.of(key)
    type_ = _transplanted(change) if transplant else difference(before, target)
    if before is None and target is not None and target == after and (choice.behavior is not MergeBehavior.DROP or transplant):
        return
    both_namespaces = before is None and is_namespace(after) and is_namespace(target)
    if both_namespaces:
        type_ = None
    if choice.behavior is MergeBehavior.DROP and (type_ or not transplant):
        outcome.details[key] = Detail(choice.behavior, after, target)
        return
    if choice.expected is not None:
        type_ = _with_expectation(choice, change)
    elif choice.behavior is MergeBehavior.FORCE:
        type_ = None
    conflict = KeyConflict(type_, key, choice.expected or before, target, after) if type_ else None
    if not both_namespaces or conflict:
        outcome.details[key] = Detail(choice.behavior, after, target, conflict)
    if after is None and before is not None:
        outcome.removed[key] = before
    if conflict is None:
        outcome.edits[key] = _resolved(choice, after, target, key, choices)


def _transplanted(change: ThreeWay) -> ConflictType | None:
    """The conflict of one key of a transplanted commit: its type and content id are those that the commit brings, its value the one from before."""
    before, target, after = change.before, change.target, change.after
    if before is None or after is None or content_id_of(before) == content_id_of(after):
        return difference(before, target)
    return difference(with_value_of(after, before), target) or ConflictType.VALUE_DIFFERS


def _with_expectation(choice: KeyChoice, change: ThreeWay) -> ConflictType | None:
    """An expected target takes the place of the base, under every behavior; only FORCE puts one content in the place of another."""
    type_ = difference(choice.expected, change.target)
    both_created = change.before is None and change.after is not None and change.target is not None
    if type_ is None and both_created and choice.behavior is MergeBehavior.NORMAL:
        assert change.after is not None
        assert change.target is not None
        return ConflictType.CONTENT_ID_DIFFERS if content_id_of(change.after) != content_id_of(change.target) else None
    return type_


def _resolved(choice: KeyChoice, after: bytes | None, target: bytes | None, key: bytes, choices: KeyChoices) -> bytes | None:
    if choice.resolved is None or after is None:
        return after
    choices.unresolved.discard(key)
    return with_content_id(choice.resolved, content_id_of(target or after))


def _judge_namespaces(objects: Objects, outcome: Outcome, target: Id, contested: Collection[bytes]) -> None:
    """`contested` are the keys that both sides created: a namespace forced over the target's content does not serve the source's keys below it."""
    edits = outcome.edits_if_source_wins()
    before = tree.get(objects, target, edits)
    edits = {key: r for key, r in edits.items() if not (key in contested and is_namespace(r) and not is_namespace(before.get(key)))}
    created = [
        key for key, record in edits.items() if record is not None and (key not in before or content_id_of(before[key]) != content_id_of(record))
    ]
    removed = [key for key, record in edits.items() if is_namespace(before.get(key)) and not is_namespace(record)]
    gone = {key for key, record in edits.items() if record is None}
    outcome.namespace_conflicts = namespace_conflicts(objects, target, edits, created=created, removed=removed, gone=gone)
