"""Merges per content on servers that merge key by key.

For such a server a rename is a deletion and a creation, so a merge can lose a change of a renamed
content, or give it two keys. The original server (0.99.0, 0.108.5) even loses a content that the
source only renamed: it takes the unchanged value for no change. A merge in which contents moved is
therefore computed here, by the kernel's rules on the keys that differ. Its result is sent as
decisions per key. If that is not possible, it is refused before anything is written.

The server can move on between this and the merge: it has no compare-and-swap for merges.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from msgspec import structs

from nessie_cli.errors import MergeConflict, ReferenceConflict
from nessie_cli.kernel.committing import parse_content_id
from nessie_cli.kernel.content_changes import MergeSides, ThreeWay
from nessie_cli.kernel.content_rules import ContentRules
from nessie_cli.kernel.edit import build
from nessie_cli.kernel.forms import content_id_of, decode_key, encode_key, is_namespace
from nessie_cli.kernel.objects import Objects
from nessie_cli.kernel.outcome import Detail, Outcome, describe, joined, option_of
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    Conflict,
    Content,
    ContentKey,
    KeyBehavior,
    MergeBehavior,
    MergeDetail,
    MergeOption,
    MergeResult,
    Put,
    Reference,
    ReferenceType,
)
from nessie_cli.model.conflicts import merge_message
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.repository.remote.ancestry import Ancestry
from nessie_cli.repository.remote.contents import diff
from nessie_cli.repository.remote.history import commit_at, entries_of
from nessie_cli.repository.remote.server import Server
from nessie_cli.repository.remote.session import RestSession

NORMAL, FORCE, DROP = MergeBehavior.NORMAL, MergeBehavior.FORCE, MergeBehavior.DROP
Records = Mapping[bytes, bytes]
"""The records of the keys that exist."""


class Combination(NamedTuple):
    """A merge of one source, or a transplant of several, into a branch at `target.hash`.

    `source` is the reference of a merge.
    """

    target: Reference
    sources: Sequence[str]
    options: MergeOptions
    is_transplant: bool
    source: Reference | None = None


class KeyPlan(NamedTuple):
    """The options to send, and the details of the answer."""

    options: MergeOptions
    details: tuple[MergeDetail, ...]


def replayed(
    server: Server, combination: Combination, *, is_refused: bool = False
) -> KeyMergeReplay | None:
    """Returns a merge per content as done here; None if the server certainly does the same.

    Costs one diff, unless contents moved or only one side has them, decisions are given, or the
    server refused the merge already (`is_refused`).
    """
    session, options, sources = server.session, combination.options, combination.sources
    if options.per_key or sources[-1] == NO_ANCESTOR:
        return None
    has_decisions = bool(options.behaviors) or options.default_behavior is not NORMAL
    if not (is_refused or has_decisions or _has_moved(session, combination)):
        return None
    if combination.is_transplant:
        base = commit_at(session, sources[0]).parent
    else:
        base = Ancestry(session).merge_base(combination.target.hash, sources[-1])
        if base in (NO_ANCESTOR, sources[-1]):
            return None
    return KeyMergeReplay(server, combination, base)


def _has_moved(session: RestSession, combination: Combination) -> bool:
    """Returns whether a content can have different keys at the base, on target and source.

    That is a content that target and source have at different keys, or that only one of them has:
    the other one can have deleted it.
    """
    ours: defaultdict[str | None, set[ContentKey]] = defaultdict(set)
    theirs: defaultdict[str | None, set[ContentKey]] = defaultdict(set)
    for entry in diff(session, combination.target.hash, combination.sources[-1]):
        if entry.before is not None:
            ours[entry.before.id].add(entry.key)
        if entry.after is not None:
            theirs[entry.after.id].add(entry.key)
    if len(combination.sources) > 1:
        # A commit between can have had a content at another key than the last one.
        for commit in entries_of(session, combination.sources):
            for operation in commit.operations or ():
                if isinstance(operation, Put):
                    theirs[operation.content.id].add(operation.key)
    return ours.keys() != theirs.keys() or any(theirs[each] - ours[each] for each in ours)


class _Step(NamedTuple):
    """A merge, or one commit of a transplant: its changes, the states before, and the outcome."""

    source: str
    changes: Sequence[ThreeWay]
    base: Records
    ours: Records
    outcome: Outcome

    @property
    def after(self) -> Records:
        """The target afterwards."""
        return _edited(self.ours, self.outcome.edits_if_source_wins())


class KeyMergeReplay:
    """Merges the sources on those keys that differ, by the rules per content."""

    def __init__(self, server: Server, combination: Combination, base: str) -> None:
        self._server = server
        self._session = server.session
        self._combination = combination
        self._base = base
        self._objects = Objects(lambda _: {})
        self._keys: defaultdict[bytes, set[bytes]] = defaultdict(set)
        self._steps = list(self._replayed())

    def plan(self) -> KeyPlan | None:
        """Returns how to send the merge; None if the server needs no other options.

        Raises `MergeConflict` for conflicts of moved contents, and `ReferenceConflict` if the
        server cannot merge them.
        """
        options = self._combination.options
        has_moved = any(len(keys) > 1 for keys in self._keys.values())
        has_other_names = any(given.content_id or given.commit for given in options.behaviors)
        if not (has_moved or self._keeps_namespace or has_other_names):
            return None
        self._check_conflicts()
        return KeyPlan(
            structs.replace(options, behaviors=self._behaviors()), self._details(conflicts=())
        )

    @property
    def _keeps_namespace(self) -> bool:
        """Whether a decision keeps a namespace that a transplant on the server replaces."""
        return self._combination.is_transplant and any(
            detail.behavior is DROP and is_namespace(detail.source) and is_namespace(detail.target)
            for step in self._steps
            for detail in step.outcome.details.values()
        )

    @property
    def decided(self) -> MergeOption | None:
        """What the given decisions do to contents."""
        effect = reduce(joined, (step.outcome.effect for step in self._steps))
        return None if effect is None else option_of(effect)

    def _replayed(self) -> Iterator[_Step]:
        target, sources, options, is_transplant, _ = self._combination
        ours_changes = self._difference(self._base, target.hash)
        starts = [self._base, *sources[:-1]]
        differences = [self._difference(*pair) for pair in zip(starts, sources, strict=True)]
        before: dict[bytes, bytes | None] = {}
        for difference in (ours_changes, *differences):
            before = {key: pair[0] for key, pair in difference.items()} | before
        base: Records = _edited({}, before)
        ours: Records = _edited(base, {key: pair[1] for key, pair in ours_changes.items()})
        rules = ContentRules(self._objects, options.behaviors, options.default_behavior)
        total = Outcome()
        for source, difference in zip(sources, differences, strict=True):
            changes = [ThreeWay(k, old, ours.get(k), new) for k, (old, new) in difference.items()]
            sides = MergeSides(
                build(self._objects, sorted(base.items())),
                build(self._objects, sorted(ours.items())),
                changes,
                bytes.fromhex(target.hash),
                bytes.fromhex(source),
                is_transplant=is_transplant,
            )
            # The server checks the namespaces: those that did not change are not read here.
            outcome = rules.apply(self._objects, sides, validate_namespaces=False)
            total.used |= outcome.used
            step = _Step(source, changes, base, ours, outcome)
            yield step
            if outcome.conflicts:
                # They must be decided first: later commits are merged with the result.
                if not is_transplant:
                    rules.check_used(total, is_transplant=False)
                return
            base, ours = _edited(base, {c.key: c.after for c in changes}), step.after
        rules.check_used(total, is_transplant=is_transplant)

    def _difference(
        self, before: str, after: str
    ) -> dict[bytes, tuple[bytes | None, bytes | None]]:
        return {
            (key := encode_key(entry.key)): (
                self._record(key, entry.before),
                self._record(key, entry.after),
            )
            for entry in diff(self._session, before, after)
        }

    def _record(self, key: bytes, content: Content | None) -> bytes | None:
        if content is None:
            return None
        content_id = parse_content_id(content.id or "")
        self._keys[content_id].add(key)
        return self._objects.add_content(content, content_id)

    def _content(self, record: bytes | None) -> Content | None:
        return None if record is None else next(iter(self._objects.contents([record])))

    # -- conflicts and details -------------------------------------------------------------------

    def _check_conflicts(self) -> None:
        """Raises `MergeConflict` if contents are in conflict."""
        by_key = {c.key: c for step in self._steps for c in step.outcome.conflicts}
        if not by_key:
            return
        keys = {decode_key(key) for key in by_key}
        for conflict in by_key.values():
            renames = (conflict.source_rename, conflict.target_rename)
            keys |= {decode_key(rename[1]) for rename in renames if rename}
        head, source = self._combination.target.hash, self._combination.sources[-1]
        ours = self._steps[0].ours
        now = {
            key: content for key in keys if (content := self._content(ours.get(encode_key(key))))
        }
        on_ours = self._server.changes_since(keys, self._base, head, now)
        on_theirs = self._server.last_changes(source, keys, since=self._base)

        def changed_on(side: Mapping[ContentKey, CommitMeta], key: bytes) -> CommitMeta | None:
            return side.get(decode_key(key))

        conflicts = describe(
            self._objects,
            list(by_key.values()),
            lambda key: changed_on(on_theirs, key),
            lambda key: changed_on(on_ours, key),
        )
        conflicts = tuple(map(self._with_options_per_key, conflicts))
        options = self._combination.options
        result = MergeResult(
            target_branch=self._combination.target.name,
            effective_target_hash=head,
            resultant_hash=None,
            common_ancestor=None if self._combination.is_transplant else self._base,
            expected_hash=options.expected_hash,
            applied=False,
            successful=False,
            details=self._details(conflicts),
            decided=self.decided,
        )
        raise MergeConflict(merge_message(conflicts), conflicts, result)

    def _with_options_per_key(self, conflict: Conflict) -> Conflict:
        """Returns a conflict with those options that decisions per key can carry out."""
        step = self._steps[-1]
        changed = {decode_key(change.key) for each in self._steps for change in each.changes}
        own_keys = {conflict.key, conflict.base_key, conflict.theirs_key}
        own = [change for change in step.changes if decode_key(change.key) in own_keys]
        at_base = _by_id(step.base)

        def is_possible(option: MergeOption) -> bool:
            return changed.issuperset(option.deletes) and all(
                self._choices(
                    change, change.after if option.behavior is FORCE else change.target, at_base
                )
                for change in own
            )

        options = [each for each in conflict.options if not each.renames and is_possible(each)]
        return structs.replace(conflict, options=tuple(options))

    def _details(self, conflicts: Iterable[Conflict]) -> tuple[MergeDetail, ...]:
        """Returns the keys that change, those that a decision keeps, and those in conflict."""
        by_key = {conflict.key: conflict for conflict in conflicts}
        before, after = self._steps[0].ours, self._steps[-1].after
        last: dict[bytes, Detail] = {}
        for step in self._steps:
            last |= step.outcome.details
        details = []
        for raw, detail in sorted(last.items()):
            key, target = decode_key(raw), before.get(raw)
            conflict = by_key.get(key)
            result = None if conflict else after.get(raw)
            if conflict is None and target == result and detail.behavior is not DROP:
                continue
            details.append(
                MergeDetail(
                    key,
                    detail.behavior,
                    conflict,
                    self._content(detail.source),
                    self._content(target),
                    self._content(result),
                )
            )
        return tuple(details)

    # -- decisions per key -----------------------------------------------------------------------

    def _behaviors(self) -> list[KeyBehavior]:
        """Returns the decisions per key with the same result.

        Raises `ReferenceConflict` if there are none.
        """
        allowed: dict[bytes, list[KeyBehavior]] = {}
        decided: dict[bytes, MergeBehavior] = {}
        for step in self._steps:
            self._check_other_keys(step)
            decided |= {key: d.behavior for key, d in step.outcome.details.items()}
            at_base = _by_id(step.base)
            for change in step.changes:
                choices = self._choices(change, step.after.get(change.key), at_base)
                if not choices:
                    raise self._refusal(step, change.key)
                earlier = allowed.get(change.key, choices)
                allowed[change.key] = [choice for choice in choices if choice in earlier]
                if not allowed[change.key]:
                    raise self._one_by_one(change.key)
        default = self._combination.options.default_behavior
        chosen = []
        for key, choices in allowed.items():
            preferred = (decided.get(key), default, NORMAL, DROP, FORCE)
            chosen.append(min(choices, key=lambda choice: preferred.index(choice.behavior)))
        return [each for each in chosen if each.behavior is not default or each.resolved]

    def _choices(
        self,
        change: ThreeWay,
        result: bytes | None,
        at_base: Mapping[bytes, tuple[bytes, bytes]],
    ) -> list[KeyBehavior]:
        """Returns the decisions about a changed key with a result.

        `at_base` are the keys and records of contents at the base, by content id.
        """
        name = decode_key(change.key)
        before, ours, theirs = change.before, change.target, change.after
        are_namespaces = before is None and is_namespace(ours) and is_namespace(theirs)
        is_clean = ours == before or are_namespaces
        choices = []
        origin = at_base.get(content_id_of(theirs)) if theirs is not None else None
        is_renamed = origin is not None and origin[0] != change.key
        if result == theirs:
            if is_clean and not is_renamed:
                choices.append(KeyBehavior(name, NORMAL))
            if not (is_renamed and origin and origin[1] == theirs):
                choices.append(KeyBehavior(name, FORCE))
        # A transplant drops only keys in conflict.
        if result == ours and not (self._combination.is_transplant and is_clean):
            choices.append(KeyBehavior(name, DROP))
        if (
            not choices
            and result is not None
            and ours is not None
            and theirs is not None
            and content_id_of(result) == content_id_of(ours) == content_id_of(theirs)
        ):
            contents = (self._content(ours), self._content(result))
            choices.append(KeyBehavior(name, NORMAL, *contents))
        return choices

    def _check_other_keys(self, step: _Step) -> None:
        """Checks that no key changes that the source did not change."""
        changed = {change.key for change in step.changes}
        for key, record in step.outcome.edits.items():
            if key not in changed and record != step.ours.get(key):
                raise self._refusal(step, key)

    def _refusal(self, step: _Step, key: bytes) -> ReferenceConflict:
        """Returns the error for a content at a key, with the rename to make first."""
        sides = [step.after, step.ours, {change.key: change.after for change in step.changes}]
        ids = [content_id_of(r) for side in sides if (r := side.get(key)) is not None]
        for content_id in dict.fromkeys(ids):
            result, ours, theirs = (_key_of(side, content_id) for side in sides)
            if ours and (line := self._rename_line(sides, result, ours, theirs)):
                return self._error(
                    (
                        f"it cannot merge {decode_key(ours).plain}, which has another key on the"
                        " other branch"
                    ),
                    hint=f"give it the same key first: {line}",
                )
        return self._error(
            f"it cannot give {decode_key(key).plain} the result of this merge",
            hint="make this change by a commit first, then try again",
        )

    def _rename_line(
        self,
        sides: Sequence[Mapping[bytes, bytes | None]],
        result: bytes | None,
        ours: bytes,
        theirs: bytes | None,
    ) -> str | None:
        """Returns the command that renames a content to one key on both sides, or None.

        There is none for a namespace with contents, because they have to move in the same commit.
        """
        target, _, _, is_transplant, source = self._combination
        _, on_ours, on_theirs = sides
        if result is not None and ours != result:
            state, branch, old, new = on_ours, target.name, ours, result
        elif theirs is None or theirs == ours:
            return None
        elif is_transplant:
            state, branch, old, new = on_ours, target.name, ours, theirs
        else:
            state, branch, old, new = on_theirs, _branch_name(source), theirs, ours
        if state.get(new) is not None or _has_contents(state, old):
            return None
        return _renaming(branch, old, new)

    def _one_by_one(self, key: bytes) -> ReferenceConflict:
        picks = "; ".join(
            f"`nessie --ref {self._combination.target.name} transplant {step.source[:12]}`"
            for step in self._steps
        )
        return self._error(
            f"one transplant cannot have different decisions about {decode_key(key).plain}",
            hint=f"transplant one commit after the other: {picks}",
        )

    def _error(self, reason: str, *, hint: str) -> ReferenceConflict:
        return ReferenceConflict(
            f"server {self._session.transport.url} merges key by key, so {reason}",
            reference=self._combination.target.name,
            head=self._combination.target.hash,
            hint=hint,
        )


def _edited(state: Records, edits: Mapping[bytes, bytes | None]) -> dict[bytes, bytes]:
    return {key: r for key, r in {**state, **edits}.items() if r is not None}


def _by_id(state: Records) -> dict[bytes, tuple[bytes, bytes]]:
    """Returns the keys and records of a state by content id."""
    return {content_id_of(record): (key, record) for key, record in state.items()}


def _key_of(state: Mapping[bytes, bytes | None], content_id: bytes) -> bytes | None:
    matching = (key for key, r in state.items() if r and content_id_of(r) == content_id)
    return next(matching, None)


def _has_contents(state: Mapping[bytes, bytes | None], namespace: bytes) -> bool:
    """Returns whether a state has keys below a key."""
    above = decode_key(namespace)
    present = (key for key, record in state.items() if record is not None and key != namespace)
    return any(decode_key(key).starts_with(above) for key in present)


def _branch_name(source: Reference | None) -> str:
    is_branch = source is not None and source.name and source.type is ReferenceType.BRANCH
    return source.name if source and is_branch else "BRANCH"


def _renaming(branch: str, old: bytes, new: bytes) -> str:
    line = ["nessie", "--ref", branch, "content", "rename", *map(str, map(decode_key, (old, new)))]
    return f"`{shlex.join(line)} -m 'rename before the merge'`"
