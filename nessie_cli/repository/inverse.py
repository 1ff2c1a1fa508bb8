"""The inverse of commits, as a three-way merge of contents.

The base is the state after the commits, theirs is the state before them, and ours is HEAD. This
module reads the changes of the commits, and their keys on HEAD. It reads the difference between the
base and HEAD only if a changed content is not under one of these keys there: then it has been
renamed, deleted or created again since.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from msgspec import Struct, structs

from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.kernel.committing import parse_content_id
from nessie_cli.kernel.content_changes import ContentChanges, ContentStates, MergeSides, ThreeWay
from nessie_cli.kernel.content_merge import ContentChoice, ContentMerge, merge_contents
from nessie_cli.kernel.content_rules import (
    HasContents,
    choice_of,
    conflicts_of,
    effect_of_decisions,
)
from nessie_cli.kernel.edit import build
from nessie_cli.kernel.forms import Id, decode_key, encode_key, format_content_id
from nessie_cli.kernel.objects import Objects
from nessie_cli.kernel.outcome import KeyConflict, describe, option_of
from nessie_cli.model import (
    NAMESPACE_VALIDATION,
    CommitMeta,
    Conflict,
    ConflictType,
    Content,
    ContentKey,
    DiffEntry,
    KeyBehavior,
    KeyRange,
    MergeBehavior,
    MergeOption,
    RestoredFrom,
)
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.revisions import Revision

State = dict[ContentKey, Content]
Edits = dict[ContentKey, Content | None]


class InvertedCommits(NamedTuple):
    """The commits to revert: the hash after the last one, and the hash before the first one."""

    last: str
    before: str


class Inverse(Struct, frozen=True):
    """The changes of HEAD that revert commits, or the conflicts.

    `edits` has the new content of each key that changes, None for a deletion. A content with an id
    that HEAD does not have is restored from its place in `origins`, or created. `state` has the
    current contents of these keys. `if_theirs` are the edits if theirs is taken for each conflict.
    `judged` are the keys in conflict, or about which a behavior decided, and `decided_ids` the ids
    of the contents about which one decided. `decided` is what these decisions do to contents, None
    without any. `is_empty` is whether the commits changed nothing.
    """

    edits: Edits
    if_theirs: Edits
    state: State
    origins: Mapping[str | None, RestoredFrom]
    conflicts: Sequence[Conflict]
    judged: Collection[ContentKey]
    decided_ids: Collection[str]
    decided: MergeOption | None
    is_empty: bool


class UnusedDecision(InvalidInput):
    """A decision names a content that the commits did not change."""

    def __init__(self, behavior: KeyBehavior) -> None:
        super().__init__(f"{_name(behavior)}: the commit did not change this key")
        self.behavior = behavior


def invert(
    repository: ReadableRepository,
    commits: InvertedCommits,
    head: str,
    behaviors: Sequence[KeyBehavior] = (),
) -> Inverse:
    """Returns the inverse of commits, relative to the hash `head`.

    `behaviors` decide about contents: FORCE takes the state before the commits, DROP keeps that of
    HEAD, NORMAL stores `resolved`. A behavior names a content by its key on HEAD, else before the
    commits, else after them, or by its id. Raises `UnusedDecision`, and `InvalidInput` if a key
    names two contents.
    """
    states = _read(repository, commits, head)
    merge, conflicts, resolved, judged, ids = _merged(
        states, behaviors, partial(_has_contents, repository, head)
    )
    edits, if_theirs = states.contents(merge.edits()), states.contents(merge.edits_if_theirs_win())
    edits |= resolved
    effect = effect_of_decisions(merge)
    conflicts = [_with_occupant(conflict, states) for conflict in conflicts]
    return Inverse(
        edits,
        if_theirs,
        states.on_head,
        {
            entry.before.id: RestoredFrom(commits.before, entry.key)
            for entry in states.changes
            if entry.before is not None
        },
        _described(repository, states, conflicts, head),
        judged,
        ids,
        None if effect is None else option_of(effect),
        not states.changes,
    )


# -- states ----------------------------------------------------------------------------------------


class _States:
    """The parts of the three states that matter, as contents and as key trees."""

    def __init__(self, changes: Sequence[DiffEntry], at_base: State, on_head: State) -> None:
        self.objects = Objects(lambda _: {})
        self.on_head = on_head
        self.changes = _with_present_ids(changes, at_base, on_head)
        self._base = at_base | {e.key: e.after for e in self.changes if e.after is not None}

    def sides(self) -> MergeSides:
        """Returns the sides of the merge."""
        changes = [
            ThreeWay(
                encode_key(entry.key),
                self._record(entry.after),
                self._record(self.on_head.get(entry.key)),
                self._record(entry.before),
            )
            for entry in self.changes
        ]
        return MergeSides(self._root(self._base), self._root(self.on_head), changes, b"", b"")

    def record_on_head(self, key: bytes) -> bytes | None:
        """Returns the record of a key on HEAD."""
        return self._record(self.on_head.get(decode_key(key)))

    def contents(self, edits: Mapping[bytes, bytes | None]) -> Edits:
        """Returns edits in terms of the model."""
        records = [record for record in edits.values() if record is not None]
        contents = dict(zip(records, self.objects.contents(records), strict=True))
        return {
            decode_key(key): contents[record] if record is not None else None
            for key, record in edits.items()
        }

    def _record(self, content: Content | None) -> bytes | None:
        if content is None:
            return None
        return self.objects.add_content(content, parse_content_id(content.id or ""))

    def _root(self, state: State) -> Id:
        items = [(encode_key(key), self._record(content) or b"") for key, content in state.items()]
        return build(self.objects, sorted(items))


def _read(repository: ReadableRepository, commits: InvertedCommits, head: str) -> _States:
    before, last, now = (Revision(None, hash_) for hash_ in (commits.before, commits.last, head))
    changes = list(repository.diff(before, last, whole=True))
    on_head = dict(repository.contents(now, [entry.key for entry in changes]))
    at_base = {entry.key: entry.after for entry in changes if entry.after is not None}
    if not _are_in_place(changes, on_head):
        for entry in repository.diff(last, now, whole=True):
            if entry.before is not None:
                at_base[entry.key] = entry.before
            if entry.after is not None:
                on_head[entry.key] = entry.after
    return _States(changes, at_base, on_head)


def _are_in_place(changes: Iterable[DiffEntry], on_head: State) -> bool:
    """Returns whether HEAD has exactly the changed contents under the changed keys."""
    ids = {side.id for entry in changes for side in (entry.before, entry.after) if side}
    return ids == {content.id for content in on_head.values()}


def _with_present_ids(
    changes: Sequence[DiffEntry], at_base: State, on_head: State
) -> list[DiffEntry]:
    """Returns the changes with the present ids of contents that were created again since.

    Such a content has the key and the value that it had before or after the commits, and another
    id. So a commit can be reverted after the creation itself was reverted twice.
    """
    ids = {side.id for entry in changes for side in (entry.before, entry.after) if side}
    taken = ids | {content.id for content in at_base.values()}
    present = {content.id for content in on_head.values()}
    again: dict[str | None, str | None] = {}
    sides = [(e.key, e.before) for e in changes] + [(e.key, e.after) for e in changes]
    for key, old in sides:
        new = on_head.get(key)
        if old is None or new is None or old.id in present or old.id in again:
            continue
        if new.id not in taken and new.with_id(old.id) == old:
            again[old.id] = new.id
            taken.add(new.id)

    def renewed(content: Content | None) -> Content | None:
        if content is None or content.id not in again:
            return content
        return content.with_id(again[content.id])

    return [structs.replace(e, before=renewed(e.before), after=renewed(e.after)) for e in changes]


# -- decisions -------------------------------------------------------------------------------------


def _merged(
    states: _States, behaviors: Sequence[KeyBehavior], has_contents: HasContents
) -> tuple[ContentMerge, list[KeyConflict], State, set[ContentKey], set[str]]:
    """Returns the merge, its conflicts, contents for keys of other contents, and judged keys.

    Judged are the keys in conflict, and those of contents about which a behavior decides. The last
    part of the result are the ids of these contents.
    """
    changes = ContentChanges(states.objects, states.sides())

    def merged(contents: Sequence[ContentStates], choices: Sequence[ContentChoice]) -> ContentMerge:
        return merge_contents(contents, changes.others, choices)

    undecided = merged(changes.states, ())
    choices: list[ContentChoice] = []
    resolved: State = {}
    judged: set[bytes] = set()
    ids: set[str] = set()
    for behavior in behaviors:
        choice = choice_of(states.objects, behavior)[1]
        index = undecided.named(choice)
        if index is None:
            raise UnusedDecision(behavior)
        verdict = undecided.verdicts[index]
        ids.add(format_content_id(verdict.states.content_id))
        judged |= {position.key for position in verdict.states if position is not None}
        if behavior.resolved and verdict.states.ours is None and verdict.holder is None:
            # The key is that of another content, which the commits did not change.
            resolved[behavior.key] = behavior.resolved
            choice = ContentChoice(choice.key, MergeBehavior.DROP, choice.content_id)
        choices.append(choice)
    merge = merged(changes.states, choices)
    conflicts = conflicts_of(merge, merged, has_contents)
    judged |= {conflict.key for conflict in conflicts}
    return merge, conflicts, resolved, set(map(decode_key, judged)), ids


def _has_contents(
    repository: ReadableRepository,
    head: str,
    namespace: bytes,
    is_deleted: Callable[[bytes], bool],
) -> bool:
    """Returns whether a namespace on HEAD cannot be removed: a key below it is not deleted."""
    if repository.config().settings.get(NAMESPACE_VALIDATION) == "false":
        return False
    below = repository.entries(Revision(None, head), KeyRange(prefix=decode_key(namespace)))
    keys = (encode_key(entry.key) for entry in below)
    return any(key != namespace and not is_deleted(key) for key in keys)


def _name(behavior: KeyBehavior) -> str:
    return behavior.content_id or str(behavior.key)


# -- conflicts -------------------------------------------------------------------------------------


def _with_occupant(conflict: KeyConflict, states: _States) -> KeyConflict:
    """Returns a conflict of a content that HEAD does not have, with the one that has its key."""
    occupant = states.record_on_head(conflict.key)
    if conflict.actual is not None or conflict.proposed is None or occupant is None:
        return conflict
    return structs.replace(conflict, type=ConflictType.CONTENT_ID_DIFFERS, actual=occupant)


def _described(
    repository: ReadableRepository, states: _States, conflicts: Sequence[KeyConflict], head: str
) -> Sequence[Conflict]:
    def changed_by(key: bytes) -> CommitMeta | None:
        # A conflict is also reported to callers who may not list the commits of the branch.
        with suppress(NotAllowed):
            return repository.last_change(Revision(None, head), decode_key(key))
        return None

    ordered = sorted(conflicts, key=lambda conflict: (conflict.key, conflict.content_id or b""))
    return describe(states.objects, ordered, lambda _: None, changed_by)
