"""The rules of our own clients for merge and transplant, content by content.

Each conflict has the decisions that are possible about it. A decision gives a content a key. The
content that has this key on ours gives way, and may take the key of a third one. Contents affect
each other only if they share a key, so a decision is tried on these contents alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial

from msgspec import structs

from nessie_cli.errors import InvalidInput
from nessie_cli.kernel.committing import parse_content_id
from nessie_cli.kernel.content_changes import ContentChanges, ContentStates, MergeSides, Position
from nessie_cli.kernel.content_merge import (
    ContentChoice,
    ContentMerge,
    Side,
    Verdict,
    merge_contents,
)
from nessie_cli.kernel.forms import (
    Id,
    content_id_of,
    decode_key,
    encode_key,
    has_metadata_file,
    is_namespace,
)
from nessie_cli.kernel.key_merge import read_choice
from nessie_cli.kernel.namespaces import Edits, conflicts_of_edits, has_others_below
from nessie_cli.kernel.objects import Objects
from nessie_cli.kernel.outcome import Detail, KeyConflict, KeyOption, Outcome
from nessie_cli.model import ConflictType, KeyBehavior, MergeBehavior, Namespace, metadata_file

_BEHAVIORS = {
    None: MergeBehavior.NORMAL,
    Side.OURS: MergeBehavior.DROP,
    Side.THEIRS: MergeBehavior.FORCE,
}


class ContentRules:
    """The rules per content, with the decisions of a merge or transplant.

    A decision is for one transplanted commit, or for all. Raises `InvalidInput` for meaningless
    combinations.
    """

    def __init__(
        self, objects: Objects, behaviors: Iterable[KeyBehavior], default: MergeBehavior
    ) -> None:
        self._default = default
        self._choices = [choice_of(objects, behavior) for behavior in behaviors]

    def apply(self, objects: Objects, sides: MergeSides, *, validate_namespaces: bool) -> Outcome:
        """Merges the contents that the source changed, then checks the namespaces.

        In a transplant, DROP is only for contents in conflict: those that differ on both sides, and
        namespaces that the target still needs. A decision is also about a namespace that both sides
        created.
        """
        changes = ContentChanges(objects, sides)
        choices = [c for commit, c in self._choices if commit in (None, sides.source)]

        def merged(
            states: Sequence[ContentStates],
            choices: Sequence[ContentChoice],
            blocked: Collection[bytes],
        ) -> ContentMerge:
            merge = merge_contents(
                states,
                changes.others,
                choices,
                self._default,
                only_conflicts=sides.is_transplant,
                blocked=blocked,
            )
            _name_namespaces(objects, merge)
            return merge

        def checked(edits: Edits) -> tuple[list[KeyConflict], Mapping[bytes, bytes]]:
            namespaces = edits if validate_namespaces else {}
            missing = conflicts_of_edits(objects, sides.target, namespaces)
            return missing, changes.doubled_keys(edits)

        merge = merged(changes.states, choices, ())
        edits = merge.edits()
        missing, doubles = checked(edits)
        second = _second_entries(objects, merge, changes)
        blocked = [c.key for c in missing if c.type is ConflictType.NAMESPACE_NOT_EMPTY]
        blocked += doubles
        blocked += [verdict.states.key for verdict, _ in second]
        if blocked and sides.is_transplant:
            merge = merged(changes.states, choices, blocked)
            edits = merge.edits()
            missing, doubles = checked(edits)
            second = _second_entries(objects, merge, changes)
        unused = set(map(id, merge.unused))
        used = (
            position
            for position, (commit, choice) in enumerate(self._choices)
            if commit in (None, sides.source) and id(choice) not in unused
        )

        def has_contents(namespace: bytes, is_deleted: Callable[[bytes], bool]) -> bool:
            return validate_namespaces and has_others_below(
                objects, sides.target, namespace, is_deleted
            )

        decisions = _Decisions(merge, partial(merged, blocked=blocked), has_contents)
        conflicts = [
            *decisions.conflicts(),
            *(_of_namespace(decisions, conflict) for conflict in missing),
            *_of_doubles(edits, doubles, changes),
            *_of_second_entries(merge, second, changes),
        ]
        as_repeated = merge
        if needed := _needed(conflicts):
            # A decision that removes a namespace with contents is not repeated.
            with suppress(InvalidInput):
                keeping = _keeping(needed, choices, merge.undecided)
                as_repeated = merged(changes.states, keeping, blocked)
        return Outcome(
            edits=edits,
            details=dict(sorted(dict(_details(merge, edits, changes, conflicts, sides)).items())),
            if_source_wins=merge.edits_if_theirs_win(),
            decided=frozenset(key for states in merge.given for key in states.keys),
            decided_ids=frozenset(states.content_id for states in merge.given),
            effect=effect_of_decisions(as_repeated),
            used=frozenset(used),
        )

    def possible(
        self, on_target: Mapping[bytes, bytes], commits: Mapping[Id, Sequence[tuple[bytes, bytes]]]
    ) -> frozenset[int]:
        """Returns the positions of decisions that can be about a change of transplanted commits.

        `commits` are the keys that each commit changed, with their records before and after, and
        `on_target` the records of `keys`.
        """
        ids = {id_: {content_id_of(record) for _, record in of} for id_, of in commits.items()}
        keys = {id_: {key for key, _ in of} for id_, of in commits.items()}
        possible = set()
        for position, (commit, choice) in enumerate(self._choices):
            content_id = choice.content_id
            if content_id is None and (record := on_target.get(choice.key)) is not None:
                content_id = content_id_of(record)
            meant = commits if commit is None else [commit]
            if any(choice.key in keys[i] or content_id in ids[i] for i in meant if i in ids):
                possible.add(position)
        return frozenset(possible)

    @property
    def keys(self) -> list[bytes]:
        """The keys of all decisions."""
        return [choice.key for _, choice in self._choices]

    def check_used(self, outcome: Outcome, *, is_transplant: bool) -> None:
        """Raises `InvalidInput` for a decision about a content that the source did not change."""
        unused = [choice for n, (_, choice) in enumerate(self._choices) if n not in outcome.used]
        if unused:
            names = ", ".join(sorted(map(str, unused)))
            is_named_twice = is_transplant and any(choice.content_id for choice in unused)
            other = ", or another decision names the same content" if is_named_twice else ""
            raise InvalidInput(f"the source does not change {names}{other}")


def choice_of(objects: Objects, given: KeyBehavior) -> tuple[Id | None, ContentChoice]:
    """Returns the transplanted commit and the choice of a behavior. Raises `InvalidInput`."""
    choice = read_choice(objects, given)
    return (
        bytes.fromhex(given.commit) if given.commit else None,
        ContentChoice(
            encode_key(given.key),
            choice.behavior,
            parse_content_id(given.content_id) if given.content_id else None,
            choice.expected,
            choice.resolved,
            is_of_commit=given.commit is not None,
        ),
    )


def _needed(conflicts: Iterable[KeyConflict]) -> list[bytes]:
    """Returns the ids of contents that would remove or replace a namespace with contents."""
    not_empty = (c for c in conflicts if c.type is ConflictType.NAMESPACE_NOT_EMPTY)
    return [each.content_id for each in not_empty if each.content_id is not None]


def _of_namespace(decisions: _Decisions, conflict: KeyConflict) -> KeyConflict:
    """Returns a conflict of a namespace with the content that it is about.

    A namespace that is still needed can be kept, if theirs deleted or renamed it, or if a content
    of theirs took its key. Theirs is the state of the namespace, or the content that took its key.
    """
    if conflict.type is not ConflictType.NAMESPACE_NOT_EMPTY:
        return conflict
    merge = decisions.merge
    verdict, arrival = merge.on_ours(conflict.key), merge.arriving(conflict.key)
    if verdict is not None and verdict.states not in merge.changed:
        verdict = arrival
    if verdict is None:
        return conflict
    base, ours, theirs = verdict.states
    present = theirs or (arrival and arrival.states.theirs)
    conflict = structs.replace(
        conflict,
        expected=base and base.record,
        proposed=present and present.record,
        content_id=verdict.states.content_id,
        base_key=base and base.key,
        theirs_key=theirs and theirs.key,
        value_key=ours.key if ours and ours.key != conflict.key else None,
        is_ambiguous=merge.is_ambiguous(verdict, conflict.key),
    )
    return decisions.about(conflict, verdict.states, [MergeBehavior.DROP])


def _of_doubles(
    edits: Edits, doubles: Mapping[bytes, bytes], changes: ContentChanges
) -> Iterator[KeyConflict]:
    """Yields a conflict for each key that would add a key to a content id. Ours can be kept."""
    for key, other in doubles.items():
        yield KeyConflict(
            ConflictType.KEY_EXISTS,
            key,
            actual=changes.others.on_ours(key),
            proposed=edits[key],
            theirs_key=key,
            other_key=other,
            options=(KeyOption(MergeBehavior.DROP, leaves_out=(key,)),),
        )


def _second_entries(
    objects: Objects, merge: ContentMerge, changes: ContentChanges
) -> list[tuple[Verdict, bytes]]:
    """Returns the contents that arrive with the metadata file of a content that stays on ours.

    Each is returned with the key of that content. A table that was created again with its metadata
    file is another content. If the other side renamed the first one, a merge would have one table
    under two keys, and dropping one of them could delete the files of both.

    Contents that theirs has and ours does not are compared with those that theirs does not have, or
    not with this value: theirs has all others together. Reads the values if there are any of both.
    """
    arriving = [
        (verdict, verdict.result)
        for verdict in merge.verdicts
        if verdict.is_settled
        and verdict.states.ours is None
        and verdict.result is not None
        and has_metadata_file(verdict.result.record)
    ]
    if not arriving:
        return []
    staying = [p for p in _not_on_theirs(merge, changes) if has_metadata_file(p.record)]
    if not staying:
        return []
    contents = objects.each_content([position.record for position in staying])
    keys = {
        metadata_file(content): position.key
        for position, content in zip(staying, contents, strict=True)
    }
    contents = objects.each_content([result.record for _, result in arriving])
    return [
        (verdict, keys[file])
        for (verdict, _), content in zip(arriving, contents, strict=True)
        if (file := metadata_file(content)) in keys
    ]


def _not_on_theirs(merge: ContentMerge, changes: ContentChanges) -> Iterator[Position]:
    """Yields the results of contents that ours has and theirs does not have, or not so."""
    compared = {verdict.states.content_id for verdict in merge.verdicts}
    for verdict in merge.verdicts:
        _, ours, theirs = verdict.states
        result = verdict.result if verdict.is_settled and ours is not None else None
        if result is not None and (theirs is None or theirs.record != result.record):
            yield result
    for position in changes.values_of_ours():
        if content_id_of(position.record) not in compared:
            yield position


def _of_second_entries(
    merge: ContentMerge, second: Iterable[tuple[Verdict, bytes]], changes: ContentChanges
) -> Iterator[KeyConflict]:
    """Yields a conflict for each content with the metadata file of another one on ours."""
    for verdict, other in second:
        base, _, theirs = verdict.states
        assert verdict.result is not None
        key = verdict.result.key
        yield KeyConflict(
            ConflictType.KEY_EXISTS,
            key,
            base and base.record,
            changes.others.on_ours(key),
            verdict.result.record,
            content_id=verdict.states.content_id,
            base_key=base and base.key,
            theirs_key=theirs and theirs.key,
            is_ambiguous=merge.is_ambiguous(verdict),
            same_file_key=other,
            options=(KeyOption(MergeBehavior.DROP, leaves_out=(key,)),),
        )


def _name_namespaces(objects: Objects, merge: ContentMerge) -> None:
    """Gives each namespace of the caller the elements of the key that it gets.

    Raises `InvalidInput` if its elements are those of no key that it has in one of the states.
    """
    for verdict in merge.verdicts:
        result = verdict.result
        if not verdict.is_resolved or result is None or not is_namespace(result.record):
            continue
        (content,) = objects.contents([result.record])
        key = decode_key(result.key)
        if not isinstance(content, Namespace) or content.elements == key.elements:
            continue
        if content.elements not in (decode_key(each).elements for each in verdict.states.keys):
            raise InvalidInput(
                f"{key.plain}: the elements of the namespace to store are not its key",
                hint=f"its elements are {list(key.elements)}",
            )
        renamed = structs.replace(content, elements=key.elements)
        record = objects.add_content(renamed, verdict.states.content_id)
        verdict.result = Position(result.key, record)


def _details(
    merge: ContentMerge,
    edits: Edits,
    changes: ContentChanges,
    conflicts: Iterable[KeyConflict],
    sides: MergeSides,
) -> Iterator[tuple[bytes, Detail]]:
    """Yields the keys that change, those that a decision keeps, and those in conflict."""
    on_ours = changes.others.on_ours
    resolved = {verdict.states.content_id for verdict in merge.verdicts if verdict.is_resolved}
    commit = sides.source if sides.is_transplant else None
    for verdict in merge.verdicts:
        if verdict.is_settled:
            yield from _settled(verdict, changes, edits, sides)
    for conflict in conflicts:
        yield (
            conflict.key,
            Detail(
                MergeBehavior.NORMAL,
                conflict.proposed,
                on_ours(conflict.key),
                structs.replace(_placed(conflict, resolved, sides), commit=commit),
            ),
        )


def _placed(conflict: KeyConflict, resolved: Collection[bytes], sides: MergeSides) -> KeyConflict:
    """Returns a conflict with the places of its contents, and the key that ours changed.

    The caller supplied the values of the contents with the ids `resolved`.
    """
    actual_at = None if conflict.actual is None else (sides.head, conflict.key)
    if conflict.proposed is None or conflict.content_id in resolved:
        proposed_at = None
    elif conflict.value_key is not None:
        proposed_at = (sides.head, conflict.value_key)
    else:
        proposed_at = (sides.source, conflict.theirs_key or conflict.key)
    is_gone = conflict.actual is None and conflict.base_key is not None
    merged_base = None
    if sides.contested is not None and conflict.content_id is not None:
        merged_base = sides.contested.get(conflict.content_id, conflict.expected)
    return structs.replace(
        conflict,
        actual_at=actual_at,
        proposed_at=proposed_at,
        changed_key=conflict.base_key if is_gone else conflict.key,
        merged_base=merged_base,
    )


def _settled(
    verdict: Verdict,
    changes: ContentChanges,
    edits: Edits,
    sides: MergeSides,
) -> Iterator[tuple[bytes, Detail]]:
    base, ours, theirs = verdict.states
    result = verdict.result
    behavior = MergeBehavior.NORMAL if verdict.is_resolved else _BEHAVIORS[verdict.side]
    if result == ours:
        is_kept = verdict.side is Side.OURS or verdict.is_resolved
        if is_kept and theirs != base and verdict.states.key not in edits:
            yield verdict.states.key, _kept_on_ours(verdict.states, changes, sides)
        return
    if ours is not None and edits.get(ours.key, ours.record) is None:
        yield ours.key, Detail(behavior, None, ours.record)
    if result is None:
        return
    source_at = (sides.source, theirs.key) if theirs else None
    result_at = None
    if verdict.is_resolved:
        result_at = None
    elif theirs is not None and result.record == theirs.record:
        result_at = source_at
    elif ours is not None and result.record == ours.record:
        result_at = (sides.head, ours.key)
    source, target = theirs and theirs.record, changes.others.on_ours(result.key)
    yield (
        result.key,
        Detail(
            behavior,
            source,
            target,
            None,
            result.record,
            source_at,
            result_at,
            verdict.is_resolved,
        ),
    )


def _kept_on_ours(states: ContentStates, changes: ContentChanges, sides: MergeSides) -> Detail:
    """Returns the detail of a key whose content a decision leaves as it is on ours.

    A content that ours does not have is reported under its key on theirs, which can be that of
    another content on ours.
    """
    theirs = states.theirs
    record = changes.others.on_ours(states.key)
    return Detail(
        MergeBehavior.DROP,
        theirs and theirs.record,
        record,
        None,
        record,
        (sides.source, theirs.key) if theirs else None,
        (sides.head, states.key) if record else None,
    )


# -- possible decisions ----------------------------------------------------------------------------

MergeAgain = Callable[[Sequence[ContentStates], Sequence[ContentChoice]], ContentMerge]
"""Merges some of the contents with other decisions."""
HasContents = Callable[[bytes, Callable[[bytes], bool]], bool]
"""Returns whether ours has contents below a namespace, without the keys that are deleted."""


def conflicts_of(
    merge: ContentMerge, again: MergeAgain, has_contents: HasContents
) -> list[KeyConflict]:
    """Returns the conflicts of a merge with their options, in the order of the changes."""
    return _Decisions(merge, again, has_contents).conflicts()


class _Decisions:
    """The decisions that are possible about the conflicts of a merge."""

    def __init__(self, merge: ContentMerge, again: MergeAgain, has_contents: HasContents) -> None:
        self.merge = merge
        self._again = again
        self._has_contents = has_contents

    def conflicts(self) -> list[KeyConflict]:
        """Returns the conflicts of contents, in the order of the changes."""
        return [self.about(self.merge.conflict(v), v.states) for v in self.merge.contested]

    def about(
        self,
        conflict: KeyConflict,
        states: ContentStates,
        behaviors: Sequence[MergeBehavior] = (MergeBehavior.FORCE, MergeBehavior.DROP),
    ) -> KeyConflict:
        """Returns a conflict with the decisions that do not contradict the others of the merge.

        One that removes a namespace with contents is not possible. Costs one merge of the contents
        that share keys for each behavior.
        """
        if states not in self.merge.changed:
            return conflict
        related = self.merge.related([states], past_conflicts=False)
        related = [each for each in related if each in self.merge.changed]
        others = [c for each in related if each != states and (c := self.merge.given.get(each))]
        options, blocking = [], None
        choice = ContentChoice(states.key, MergeBehavior.NORMAL, states.content_id)
        if (given := self.merge.given.get(states)) is not None and given.resolved is not None:
            # A side is given beside the new value.
            choice = structs.replace(given, content_id=states.content_id, expected=None)
        for behavior in behaviors:
            choice = structs.replace(choice, behavior=behavior)
            try:
                tried = self._again(related, [*others, choice])
            except InvalidInput:
                continue
            if not tried.verdict_of[states].is_settled:
                continue
            namespace = self._blocking_namespace(tried)
            if namespace is None:
                options.append(_option(behavior, self.merge, tried))
            elif behavior is MergeBehavior.FORCE:
                blocking = namespace
        return structs.replace(conflict, options=tuple(options), blocking_namespace=blocking)

    def _blocking_namespace(self, tried: ContentMerge) -> bytes | None:
        """Returns a namespace with contents that a decision removes, but not this merge."""
        edits = tried.edits()
        stays = {
            verdict.states.ours.key: edits.get(verdict.states.ours.key, b"") is not None
            for verdict in tried.verdicts
            if verdict.is_settled and verdict.states.ours is not None
        }

        def is_deleted(key: bytes) -> bool:
            return not stays[key] if key in stays else key in self._possibly_deleted

        for verdict in tried.verdicts:
            ours = verdict.states.ours
            if ours is None or not is_namespace(ours.record):
                continue
            key = ours.key
            is_removed = key in edits and not is_namespace(edits[key])
            if is_removed and key not in self._removed and self._has_contents(key, is_deleted):
                return key
        return None

    @cached_property
    def _removed(self) -> Collection[bytes]:
        """The keys that do not have a namespace after the merge without further decisions."""
        return {key for key, record in self.merge.edits().items() if not is_namespace(record)}

    @cached_property
    def _possibly_deleted(self) -> Collection[bytes]:
        """The keys that the merge deletes, and those of contents in conflict."""
        deleted = {key for key, record in self.merge.edits().items() if record is None}
        return deleted | {v.states.ours.key for v in self.merge.contested if v.states.ours}


def effect_of_decisions(merge: ContentMerge) -> KeyOption | None:
    """Returns what the decisions of a merge change, compared with the same merge without them.

    Returns None without decisions.
    """
    if merge.undecided is merge:
        return None
    return _option(MergeBehavior.NORMAL, merge.undecided, merge)


def _keeping(
    needed: Collection[bytes], choices: Sequence[ContentChoice], undecided: ContentMerge
) -> list[ContentChoice]:
    """Returns decisions without those about some contents, and these contents kept on ours."""
    verdicts = undecided.verdicts
    named = ((choice, undecided.named(choice)) for choice in choices)
    others = (
        choice
        for choice, index in named
        if index is None or verdicts[index].states.content_id not in needed
    )
    return [*others, *(ContentChoice(b"", MergeBehavior.DROP, id_) for id_ in needed)]


def _option(behavior: MergeBehavior, merge: ContentMerge, tried: ContentMerge) -> KeyOption:
    """Returns what a decision changes, compared with the merge in which it is open."""
    deletes, renames, leaves_out = [], [], []
    for verdict in tried.verdicts:
        _, ours, theirs = verdict.states
        earlier = merge.verdict_of.get(verdict.states)
        was = _result(earlier) if earlier else ours
        now = _result(verdict)
        if ours is not None:
            if now is None and was is not None:
                deletes.append(ours.key)
            elif now is not None and now.key not in (ours.key, was and was.key):
                renames.append((ours.key, now.key))
        elif theirs is not None and verdict.states.base is None and verdict.is_settled:
            is_open = earlier is not None and not earlier.is_settled
            if now is None and (was is not None or is_open):
                leaves_out.append(theirs.key)
    return KeyOption(behavior, tuple(deletes), tuple(renames), tuple(leaves_out))


def _result(verdict: Verdict) -> Position | None:
    """Returns the position after the merge; of a content in conflict, that on ours."""
    return verdict.result if verdict.is_settled else verdict.states.ours
