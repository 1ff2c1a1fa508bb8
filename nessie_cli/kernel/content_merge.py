"""Three-way merge of contents: the key and the value of each are merged independently.

A content is found by its id, so it is one thing under whatever key: a rename on one side and a
change on the other combine, and a decision is for a content with all its keys.

Only two contents can claim one key, because each state has one content at a key: the *holder* has
the key on ours, and the *arrival* has it on theirs. This module has the rules and reads nothing;
`content_changes.py` finds the contents that theirs changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cached_property

from msgspec import Struct, structs

from nessie_cli.errors import InvalidInput
from nessie_cli.kernel.committing import difference
from nessie_cli.kernel.content_changes import ContentStates, OtherContents, Position
from nessie_cli.kernel.forms import (
    content_id_of,
    decode_key,
    format_content_id,
    is_namespace,
    payload_of,
    with_content_id,
)
from nessie_cli.kernel.outcome import KeyConflict
from nessie_cli.model import ConflictType, MergeBehavior


class Side(IntEnum):
    """The side that a content is taken from. The number is its index in `ContentStates`."""

    OURS = 1
    THEIRS = 2


SIDES = {MergeBehavior.DROP: Side.OURS, MergeBehavior.FORCE: Side.THEIRS}


class ContentChoice(Struct, frozen=True):
    """A decision about a content, which is named by one of its keys or by its id.

    FORCE takes it from theirs, DROP from ours. NORMAL with a record `resolved` stores that record.
    `expected` is the record on ours that the caller has seen; another one is a conflict.
    `is_of_commit` is whether it is for one transplanted commit, and not for all.
    """

    key: bytes
    behavior: MergeBehavior
    content_id: bytes | None = None
    expected: bytes | None = None
    resolved: bytes | None = None
    is_of_commit: bool = False

    def __str__(self) -> str:
        """Returns the name that the caller used."""
        return format_content_id(self.content_id) if self.content_id else _plain(self.key)


class Verdict(Struct, eq=False):
    """The outcome for one content.

    `conflict` is the conflict between its two sides, and `holder` the content that holds the key at
    which it arrives. With either of them, `result` is not final. `side` is set if a decision, or
    one about a content that claimed the same key, took it from one side. `is_resolved` is whether
    the caller supplied the value.
    """

    states: ContentStates
    result: Position | None
    conflict: ConflictType | None = None
    holder: Verdict | None = None
    side: Side | None = None
    is_resolved: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether `result` is final."""
        return self.conflict is None and self.holder is None

    @property
    def arrives(self) -> bool:
        """Whether the result is at a key that the content does not have on ours."""
        ours = self.states.ours
        return self.result is not None and (ours is None or ours.key != self.result.key)

    @property
    def conflict_key(self) -> bytes:
        """The key under which a conflict is reported."""
        return self.result.key if self.holder and self.result else self.states.key

    def decide(self, behavior: MergeBehavior) -> None:
        """Takes key and value from the side that a behavior means. NORMAL changes nothing."""
        if behavior is not MergeBehavior.NORMAL:
            self.take(SIDES[behavior])

    def take(self, side: Side) -> None:
        """Takes key and value from one side."""
        self.result, self.conflict, self.side = self.states[side], None, side

    def take_key(self, side: Side) -> None:
        """Takes the key from one side, and merges the value."""
        base, ours, theirs = self.states
        self.take(side)
        if ours and theirs and self.result:
            record = _merged(base and base.record, ours.record, theirs.record)
            self.result = Position(self.result.key, record or self.result.record)

    def give_way(self, side: Side) -> None:
        """Takes the key from one side, and keeps the merged value: it lost a claim.

        A content that this side does not have is absent.
        """
        position = self.states[side]
        if self.result is not None:
            self.result = position and Position(position.key, self.result.record)
        self.side = side


def merge_contents(
    changes: Sequence[ContentStates],
    others: OtherContents,
    choices: Collection[ContentChoice] = (),
    default: MergeBehavior = MergeBehavior.NORMAL,
    *,
    only_conflicts: bool = False,
    blocked: Collection[bytes] = (),
) -> ContentMerge:
    """Merges the contents that theirs changed. `default` decides those without a choice.

    With `only_conflicts`, DROP is only for contents in conflict, and for those at the keys
    `blocked`. A choice, and not the default, is also about a namespace that both sides created.
    Raises `InvalidInput` if a choice names two contents, if two choices name one content, if they
    give one key to two contents, or if a content with a new value is deleted.
    """
    undecided = ContentMerge(changes, others)
    undecided.settle()
    if not choices and default is MergeBehavior.NORMAL:
        return undecided
    merge = ContentMerge(changes, others)
    merge.decide(undecided, choices, default, only_conflicts=only_conflicts, blocked=blocked)
    merge.settle()
    merge.refuse_unused_values()
    return merge


class ContentMerge:
    """The verdicts about contents, those that others displaced included.

    `unused` are the choices that decide about no content that theirs changed. `given` are the
    decisions about those that theirs changed.
    """

    def __init__(self, changes: Sequence[ContentStates], others: OtherContents) -> None:
        self._others = others
        self.verdicts = [Verdict(states, *merge_states(states)) for states in changes]
        self.unused: list[ContentChoice] = []
        self.given: dict[ContentStates, ContentChoice] = {}
        self._changed = len(changes)
        self._undecided: ContentMerge | None = None
        self._at: list[dict[bytes, Verdict]] = [{}, {}, {}]
        for verdict in self.verdicts:
            for at, position in zip(self._at, verdict.states, strict=True):
                if position is not None:
                    at[position.key] = verdict

    @property
    def undecided(self) -> ContentMerge:
        """The same merge without decisions. One that referred to itself would be garbage."""
        return self if self._undecided is None else self._undecided

    # -- decisions -----------------------------------------------------------------------------

    def decide(
        self,
        undecided: ContentMerge,
        choices: Iterable[ContentChoice],
        default: MergeBehavior,
        *,
        only_conflicts: bool,
        blocked: Collection[bytes],
    ) -> None:
        """Applies decisions. `undecided` is the same merge without them, with its conflicts."""
        self._undecided = undecided
        by_index: dict[int, ContentChoice] = {}
        for given in choices:
            place = undecided.named(given)
            if place is None:
                self.unused.append(given)
            elif place not in by_index:
                by_index[place] = given
            else:
                by_index[place] = self._one_of(by_index[place], given)
        for index, (verdict, before) in enumerate(
            zip(list(self.verdicts), undecided.verdicts, strict=False)
        ):
            choice = by_index.get(index)
            behavior = choice.behavior if choice else default
            is_decided = (
                not before.is_settled
                or before.states.key in blocked
                or (choice is not None and choice.resolved is not None)
                or (choice is not None and undecided.shares_namespace(before))
            )
            if behavior is MergeBehavior.DROP and only_conflicts and not is_decided:
                continue
            if choice is None:
                verdict.decide(default)
            else:
                self.given[verdict.states] = choice
                self._apply(choice, verdict, before)

    def _one_of(self, first: ContentChoice, second: ContentChoice) -> ContentChoice:
        """Returns the choice that two choices about one content make.

        One can give its value, and the other one say which side's key it has. Of two others, that
        for this commit counts. Raises `InvalidInput` if both are for this commit, or for all.
        """
        value, side = (first, second) if first.resolved is not None else (second, first)
        if value.resolved is not None and side.resolved is None and side.behavior in SIDES:
            return structs.replace(value, behavior=side.behavior)
        if first.is_of_commit == second.is_of_commit:
            raise InvalidInput(f"{first} and {second} name the same content")
        self.unused.append(second if first.is_of_commit else first)
        return first if first.is_of_commit else second

    def named(self, choice: ContentChoice) -> int | None:
        """Returns the index of the content that a choice means; None if theirs did not change it.

        Raises `InvalidInput` if the choice has a key that does not name one content.
        """
        if choice.content_id is not None:
            return self._by_id.get(choice.content_id)
        same = self.named_by(choice.key)
        if len(same) > 1:
            first, second = (format_content_id(each.content_id) for each in same[:2])
            raise InvalidInput(
                f"{choice} is the key of two contents: {first} and {second}",
                hint="name one of them by its id in --ours or --theirs; `nessie resolve` also"
                " asks for its value",
            )
        return self.changed.get(same[0]) if same else None

    @cached_property
    def _by_id(self) -> Mapping[bytes, int]:
        """The indices of the contents that theirs changed, by id."""
        return {states.content_id: index for states, index in reversed([*self.changed.items()])}

    def named_by(self, key: bytes) -> list[ContentStates]:
        """Returns the content that a key names; several if they are in conflict or one of them is.

        It is the content in conflict that is reported with this key, otherwise the one that has it
        on ours, else on theirs, else at the base. A content in conflict that is reported with
        another key is not taken instead of that one, nor passed over.
        """
        same = self.with_key(key)
        contested = [verdict for verdict in same if not verdict.is_settled]
        if len(contested) != 1 or contested[0].conflict_key == key:
            changed = [verdict for verdict in same if verdict.states in self.changed]
            return [verdict.states for verdict in contested or changed[:1]]
        first = same[0].states
        if key not in self._at[Side.OURS] and (record := self._others.on_ours(key)) is not None:
            here = Position(key, record)
            first = ContentStates(here, here, here)
        return list(dict.fromkeys([first, contested[0].states]))

    def is_ambiguous(self, verdict: Verdict, key: bytes | None = None) -> bool:
        """Returns whether the key of a conflict does not name its content, or also another one.

        `key` is set if the conflict is not reported with that of the verdict. Contents that are
        decided count too: a further decision is given together with theirs.
        """
        named = self.undecided.named_by(key or verdict.conflict_key)
        return any(states != verdict.states for states in named)

    def with_key(self, key: bytes) -> list[Verdict]:
        """Returns the contents with a key: on ours, on theirs, at the base.

        The holder of a claimed key stands for the arrival, which carries the conflict.
        """
        by_side = (self._at[side].get(key) for side in (Side.OURS, Side.THEIRS, 0))
        arrival = self._at[Side.THEIRS].get(key)
        holder = arrival.holder if arrival is not None else None
        verdicts = [v if v is not holder else arrival for v in by_side if v is not None]
        return [v for i, v in enumerate(verdicts) if v is not None and v not in verdicts[:i]]

    def shares_namespace(self, verdict: Verdict) -> bool:
        """Returns whether a content is one of two namespaces with one key, before decisions."""
        result = verdict.result
        holder = self._at[Side.OURS].get(result.key) if result and verdict.arrives else verdict
        # Without decisions, only a namespace gives way.
        return holder is not None and holder.side is Side.THEIRS

    @property
    def contested(self) -> list[Verdict]:
        """The contents in conflict, in the order of the changes."""
        return [verdict for verdict in self.verdicts if not verdict.is_settled]

    def on_ours(self, key: bytes) -> Verdict | None:
        """Returns the content with a key on ours, if it was looked at."""
        return self._at[Side.OURS].get(key)

    def arriving(self, key: bytes) -> Verdict | None:
        """Returns the content that gets a key which it does not have on ours."""
        arrivals = (verdict for verdict in self.verdicts if verdict.is_settled and verdict.arrives)
        return next((v for v in arrivals if v.result is not None and v.result.key == key), None)

    def related(
        self, contents: Iterable[ContentStates], *, past_conflicts: bool = True
    ) -> list[ContentStates]:
        """Returns contents and those that share keys with them, also by way of others.

        Unless `past_conflicts`, not by way of an undecided content whose sides are in conflict: it
        claims no key.
        """
        related = dict.fromkeys(contents)
        reached: set[bytes] = set()
        keys = [key for states in related for key in states.keys]
        while keys:
            key = keys.pop()
            if key not in reached:
                reached.add(key)
                for each in self._sharing(key):
                    related[each] = None
                    if past_conflicts or self._may_claim(each):
                        keys += each.keys
        return list(related)

    def _may_claim(self, states: ContentStates) -> bool:
        verdicts = (self.verdict_of.get(states), self.undecided.verdict_of.get(states))
        return states in self.given or any(v is None or v.conflict is None for v in verdicts)

    def _sharing(self, key: bytes) -> Iterator[ContentStates]:
        """Yields the contents that have a key in one of the three states."""
        for verdicts in self._at:
            if (verdict := verdicts.get(key)) is not None:
                yield verdict.states
        if (displaced := self._displaced.get(key)) is not None:
            yield displaced
        if key not in self._at[Side.OURS] and (record := self._others.on_ours(key)) is not None:
            yield self.unchanged(Position(key, record))

    @cached_property
    def _displaced(self) -> Mapping[bytes, ContentStates]:
        """The contents that theirs did not change and that may have to move, by their key there."""
        others = [verdict.states for verdict in self.verdicts[self._changed :]]
        return {states.theirs.key: states for states in others if states.theirs is not None}

    @cached_property
    def verdict_of(self) -> Mapping[ContentStates, Verdict]:
        """The verdicts by content, after `settle`."""
        return {verdict.states: verdict for verdict in self.verdicts}

    @cached_property
    def changed(self) -> Mapping[ContentStates, int]:
        """The contents that theirs changed, with their indices."""
        return {v.states: index for index, v in enumerate(self.verdicts[: self._changed])}

    def _apply(self, choice: ContentChoice, verdict: Verdict, before: Verdict) -> None:
        """Applies a decision to a content. `before` is its verdict without decisions."""
        if choice.resolved is not None:
            self._refuse_value(choice, verdict.states)
            # A new value does not decide which of two contents has the key.
            if before.holder is None or choice.behavior in SIDES:
                self._store_value(choice, choice.resolved, verdict)
            return
        actual = verdict.states.ours.record if verdict.states.ours else None
        has_side = choice.behavior in SIDES
        if choice.expected is not None and choice.expected != actual:
            verdict.conflict = difference(choice.expected, actual)
        elif before.holder is not None and has_side:
            verdict.give_way(SIDES[choice.behavior])
        elif before.conflict is ConflictType.KEY_CONFLICT and has_side:
            verdict.take_key(SIDES[choice.behavior])
        else:
            verdict.decide(choice.behavior)

    @staticmethod
    def _store_value(choice: ContentChoice, resolved: bytes, verdict: Verdict) -> None:
        """Gives a content a new value. Which of two keys it has, only a side decides."""
        states, ours = verdict.states, verdict.states.ours
        if ours is None:
            verdict.conflict = ConflictType.KEY_DOES_NOT_EXIST
            return
        if payload_of(resolved) != payload_of(ours.record):
            raise InvalidInput(f"{choice}: the content to store has another type than ours")
        record = with_content_id(resolved, content_id_of(ours.record))
        # An earlier commit of a transplant can have stored the value.
        if choice.expected is not None and ours.record not in (choice.expected, record):
            verdict.conflict = difference(choice.expected, ours.record)
            return
        key = ours.key if states.theirs is None else _merged_key(states)
        verdict.result = Position(key or ours.key, record)
        verdict.conflict, verdict.is_resolved = None, True
        if choice.behavior in SIDES:
            verdict.give_way(SIDES[choice.behavior])
        elif key is None:
            verdict.conflict = ConflictType.KEY_CONFLICT

    def _refuse_value(self, choice: ContentChoice, states: ContentStates) -> None:
        """Raises `InvalidInput` for a value of another content, or of one that its side deletes."""
        present = self._others.on_ours(choice.key)
        if present is not None and content_id_of(present) != states.content_id:
            raise InvalidInput(
                f"{choice}: a new value cannot be stored, because ours and theirs have different"
                " contents with this key",
                hint="decide by --ours or --theirs which one stays, and change its value later",
            )
        side = SIDES.get(choice.behavior)
        if side is not None and states[side] is None:
            raise _value_of_deleted(choice, f"{side.name.lower()} deletes it")

    def refuse_unused_values(self) -> None:
        """Raises `InvalidInput` if a content with a new value is deleted by another decision."""
        for verdict in self.verdicts:
            if verdict.is_resolved and verdict.is_settled and verdict.result is None:
                choice = self.given[verdict.states]
                raise _value_of_deleted(choice, "another content of theirs takes its key")

    # -- keys that two contents claim ----------------------------------------------------------

    def settle(self, *, strict: bool = True) -> None:
        """Lets contents give way to decided ones that claim their key; marks the other claims.

        Each pass gives at least one more content a side, so this ends. If two decisions claim one
        key, raises `InvalidInput` if `strict`; otherwise ours has it.
        """
        is_stable = False
        while not is_stable:
            is_stable = True
            for arrival in list(self.verdicts):
                holder = self._rival(arrival)
                if holder is None:
                    continue
                if holder.side is Side.OURS:
                    if arrival.side is Side.THEIRS and strict:
                        raise _contradiction(arrival, holder)
                    arrival.give_way(Side.OURS)
                elif arrival.side is Side.THEIRS and holder.side is None:
                    holder.give_way(Side.THEIRS)
                elif _are_namespaces(arrival, holder):
                    # Two namespaces with one key are one.
                    holder.result, holder.side = None, Side.THEIRS
                else:
                    arrival.holder = holder
                is_stable = False

    def _rival(self, arrival: Verdict) -> Verdict | None:
        """Returns the content that holds the key at which a settled content arrives, or None."""
        if not arrival.is_settled or not arrival.arrives or arrival.result is None:
            return None
        holder = self._holder(arrival.result.key)
        if holder is None or not holder.is_settled or holder.result is None:
            return None
        return holder if holder.result.key == arrival.result.key else None

    def _holder(self, key: bytes) -> Verdict | None:
        """Returns the content with a key on ours."""
        holder = self._at[Side.OURS].get(key)
        if holder is None and (record := self._others.on_ours(key)) is not None:
            here = Position(key, record)
            holder = Verdict(self.unchanged(here), here)
            self._at[Side.OURS][key] = holder
            self.verdicts.append(holder)
        return holder

    def unchanged(self, here: Position) -> ContentStates:
        """Returns the states of a content on ours that theirs did not change."""
        there = self._others.on_theirs(content_id_of(here.record))
        return ContentStates(there, here, there)

    # -- results -------------------------------------------------------------------------------

    def conflict(self, verdict: Verdict) -> KeyConflict:
        """Returns the conflict about a content that is not settled."""
        base, ours, theirs = verdict.states
        holder, key, value_key = verdict.holder, verdict.conflict_key, None
        if holder is not None:
            assert verdict.result is not None
            if theirs and ours and theirs.record != verdict.result.record == ours.record:
                value_key = ours.key
            base_of_ours, ours = holder.states.base, holder.states.ours
            theirs = verdict.result
        else:
            base_of_ours = base
        return KeyConflict(
            verdict.conflict or ConflictType.KEY_EXISTS,
            key,
            base.record if base and holder is None else None,
            ours.record if ours else None,
            theirs.record if theirs else None,
            source_rename=_rename(base, theirs),
            target_rename=_rename(base_of_ours, ours),
            content_id=verdict.states.content_id,
            theirs_key=theirs.key if theirs else None,
            base_key=base.key if base and holder is None else None,
            value_key=value_key,
            is_ambiguous=self.is_ambiguous(verdict),
        )

    def edits(self) -> dict[bytes, bytes | None]:
        """Returns the changes of ours, by key, without those of contents in conflict."""
        settled = [verdict for verdict in self.verdicts if verdict.is_settled]
        edits: dict[bytes, bytes | None] = {}
        for verdict in settled:
            ours = verdict.states.ours
            if ours is not None and (verdict.result is None or verdict.arrives):
                edits[ours.key] = None
        for verdict in settled:
            if verdict.result is not None and verdict.result != verdict.states.ours:
                edits[verdict.result.key] = verdict.result.record
        return dict(sorted(edits.items()))

    def edits_if_theirs_win(self) -> Mapping[bytes, bytes | None]:
        """Returns the changes of ours if theirs is taken for each content in conflict."""
        if all(verdict.is_settled for verdict in self.verdicts):
            return self.edits()
        merge = ContentMerge([verdict.states for verdict in self.verdicts], self._others)
        for verdict, before in zip(merge.verdicts, self.verdicts, strict=True):
            if before.is_settled:
                verdict.result, verdict.conflict, verdict.side = before.result, None, before.side
            elif before.holder is not None:
                verdict.side = Side.THEIRS
            elif before.conflict is ConflictType.KEY_CONFLICT:
                verdict.take_key(Side.THEIRS)
            else:
                verdict.take(Side.THEIRS)
        merge.settle(strict=False)
        return merge.edits()


def merge_states(states: ContentStates) -> tuple[Position | None, ConflictType | None]:
    """Merges the key and the value of one content. In a conflict, the result is that of ours."""
    base, ours, theirs = states
    if theirs in (base, ours) or ours == base:
        return (ours if theirs in (base, ours) else theirs), None
    if ours is None or theirs is None:
        return ours, _deletion_conflict(base, ours)
    record = _merged(base and base.record, ours.record, theirs.record)
    if record is None:
        return ours, difference(theirs.record, ours.record)
    key = _merged_key(states)
    if key is None:
        return ours, ConflictType.KEY_CONFLICT
    return Position(key, record), None


def _deletion_conflict(base: Position | None, ours: Position | None) -> ConflictType:
    """Returns the conflict of a deletion on one side with a change on the other."""
    if ours is None:
        return ConflictType.KEY_DOES_NOT_EXIST
    assert base is not None
    return difference(base.record, ours.record) or ConflictType.KEY_CONFLICT


def _merged(base: bytes | None, ours: bytes, theirs: bytes) -> bytes | None:
    """Returns the three-way merge of keys or records; None for a conflict."""
    if theirs in (base, ours):
        return ours
    return theirs if ours == base else None


def _merged_key(states: ContentStates) -> bytes | None:
    """Returns the merged key of a content that both sides have; None for a conflict."""
    base, ours, theirs = states
    return ours and theirs and _merged(base and base.key, ours.key, theirs.key)


def _are_namespaces(arrival: Verdict, holder: Verdict) -> bool:
    results = (arrival.result, holder.result)
    return all(result is not None and is_namespace(result.record) for result in results)


def _rename(base: Position | None, side: Position | None) -> tuple[bytes, bytes] | None:
    return (base.key, side.key) if base and side and base.key != side.key else None


def _value_of_deleted(choice: ContentChoice, reason: str) -> InvalidInput:
    return InvalidInput(
        f"{choice}: a new value cannot be stored, because {reason}",
        hint="give the value, or the side that deletes the content, but not both",
    )


def _contradiction(arrival: Verdict, holder: Verdict) -> InvalidInput:
    assert arrival.result is not None
    first, second = (format_content_id(v.states.content_id) for v in (arrival, holder))
    return InvalidInput(
        f"the decisions contradict each other: theirs gives key {_plain(arrival.result.key)} to"
        f" content {first}, and ours keeps it for content {second}"
    )


def _plain(key: bytes) -> str:
    """Returns a key for messages."""
    return decode_key(key).plain
