"""A draft: a change worked out on one state of a repository, not visible to others.

A submitted change is drafted again if its branch has moved. Checks of the caller and the protection
of branches decide on a draft.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from nessie_cli.errors import InvalidInput, NessieError, ReferenceConflict, WriteRefused
from nessie_cli.kernel import history, tree
from nessie_cli.kernel.commits import is_deletion, operations_of
from nessie_cli.kernel.forms import (
    Id,
    content_id_of,
    decode_key,
    encode_key,
    new_content_id,
    type_name,
)
from nessie_cli.kernel.objects import DecodedObject, Objects, Values
from nessie_cli.model import Conflict, Content, ContentKey, Operation, ReferenceType
from nessie_cli.model.progress import Progress
from nessie_cli.model.references import MAX_NAME_LENGTH
from nessie_cli.repository.changes import Change, Commit, Merge, RenameReference, Transplant
from nessie_cli.store.base import View
from nessie_cli.store.records import StoredSettings, Write

if TYPE_CHECKING:
    from nessie_cli.kernel.committing import OperationBatch
    from nessie_cli.repository.snapshot import Context

A = TypeVar("A")


class LargeMerge(Exception):
    """A merge or transplant takes longer than the changes that its submission allows."""


class ChangeSubmission:
    """One submission of one change, over all its drafts.

    `request_id` is the client's id, or None. New content ids stay the same over all drafts, and
    operations are read once. `digest` represents the request if a repetition may create other
    operations. `most_changes` is the most changes of a merge or transplant; without it, there is
    no limit. `shows_contents` is whether answers and conflicts have their contents. A server does
    not send them, so it does not read them.
    """

    def __init__(
        self,
        request_id: str | None = None,
        digest: bytes | None = None,
        *,
        most_changes: int | None = None,
        shows_contents: bool = True,
    ) -> None:
        self.most_changes = most_changes
        self.shows_contents = shows_contents
        self.given = request_id is not None
        self.digest = digest
        self._id = request_id
        self._content_ids: Mapping[bytes, bytes] = {}
        self.chosen: frozenset[bytes] = frozenset()
        self._operations: Iterable[Operation] | None = None
        self._batch: OperationBatch | None = None
        self._values: Values = ({}, {})

    @property
    def request_id(self) -> str:
        """The client's request id, or an empty text."""
        return self._id if self.given and self._id is not None else ""

    def repetition(self) -> ChangeSubmission:
        """Returns the submission of the same change for drafting its recorded answer."""
        return ChangeSubmission(most_changes=self.most_changes, shows_contents=self.shows_contents)

    def check_size(self, changes: int) -> None:
        """Raises `LargeMerge` if a merge has too many changes."""
        if self.most_changes is not None and changes > self.most_changes:
            raise LargeMerge

    def write_id(self, context: Context) -> str:
        """Returns the id of the write. Every write has one, so that its outcome can be looked up.

        A generated id begins with the time, so that `find_request` knows where to start, and new
        ids are neighbours in a table.
        """
        if self._id is None:
            self._id = f"{context.clock():014x}{context.random(6).hex()}"
        return self._id

    def batch(
        self, objects: Objects, operations: Iterable[Operation], progress: Progress | None
    ) -> OperationBatch:
        """Returns the operations, read and validated once.

        `objects` contains their values afterwards.
        """
        # Commands that only read do not load the rules of commits.
        from nessie_cli.kernel.committing import OperationBatch

        if self._batch is None or self._operations is not operations:
            self._batch = OperationBatch(objects, operations, progress)
            self._operations, self._values = operations, objects.values()
        else:
            objects.add_values(self._values)
        return self._batch

    def content_ids(self, context: Context) -> Callable[[bytes], bytes]:
        """Returns a function that assigns new content ids: for a key the same in all drafts."""
        assigned = self._content_ids

        def content_id(key: bytes) -> bytes:
            return assigned.get(key) or new_content_id(context.random)

        return content_id

    def remember_content_ids(self, added: Mapping[bytes, bytes]) -> None:
        """Keeps the content ids that a draft assigned."""
        self._content_ids = added

    def choose_content_ids(self, chosen: Mapping[ContentKey, str]) -> None:
        """Chooses the content ids of new keys. They must be UUIDs that were never used."""
        from nessie_cli.kernel.committing import parse_content_id

        self._content_ids = {
            encode_key(key): parse_content_id(text) for key, text in chosen.items()
        }
        self.chosen = frozenset(self._content_ids)


class ReferenceChange(Struct, frozen=True):
    """A reference that a draft moves or reads, with its hashes before and after.

    None means that it does not exist, or for `after` that a server has yet to decide.
    """

    type: ReferenceType
    name: str
    before: str | None
    after: str | None


class PastChange(NamedTuple):
    """The change of a key by an existing commit. The type is None for a deletion."""

    key: ContentKey
    type: str | None
    content_id: bytes


class KeyChange:
    """A key that a draft changes. Types are known; contents are read on access."""

    __slots__ = ("_after", "_before", "_objects", "key")

    def __init__(
        self, objects: Objects, key: bytes, before: bytes | None, after: bytes | None
    ) -> None:
        self.key: ContentKey = decode_key(key)
        self._objects = objects
        self._before = before
        self._after = None if after is None or is_deletion(after) else after

    @property
    def type_before(self) -> str | None:
        """The type of the content before, or None."""
        return self._type(self._before)

    @property
    def type_after(self) -> str | None:
        """The type of the content after, or None."""
        return self._type(self._after)

    @property
    def same_content(self) -> bool:
        """Whether the contents before and after have the same content id."""
        return (
            self._before is not None
            and self._after is not None
            and content_id_of(self._before) == content_id_of(self._after)
        )

    @property
    def content_ids(self) -> list[bytes]:
        """The ids of the contents before and after."""
        return [content_id_of(side) for side in (self._before, self._after) if side is not None]

    @property
    def before(self) -> Content | None:
        """The content before, or None. Costs a read."""
        return self._content(self._before)

    @property
    def after(self) -> Content | None:
        """The content after, or None. Costs a read unless it is new."""
        return self._content(self._after)

    def _type(self, record: bytes | None) -> str | None:
        return (
            None
            if record is None
            else type_name(record, lambda: self._objects.contents([record])[0])
        )

    def _content(self, record: bytes | None) -> Content | None:
        return None if record is None else self._objects.contents([record])[0]


class DraftEffect(Struct, frozen=True):
    """The effect of a draft in the kernel's terms.

    `edits` are key edits of the tree at `root`; if there are conflicts, those by which the source
    wins. `parents` are the parents of the new head. `sources` are existing commits that become
    reachable from the changed reference.
    """

    objects: Objects
    root: Id = tree.EMPTY
    edits: Mapping[bytes, bytes | None] = {}
    parents: Sequence[Id] = ()
    sources: Sequence[Id] = ()


class Draft(Generic[A]):
    """A change worked out on one state of a repository.

    `write` is what the store commits. It is None on a server, and if nothing changes: for a
    refusal, a dry run, a merge of merged commits, or a repetition of a committed request
    (`repeated`). `exact` is whether committing the draft commits exactly what it shows; a server
    may decide on a newer state. `settings` are those of the state, or None if they were not read.
    """

    def __init__(
        self,
        change: Change[A],
        references: Sequence[ReferenceChange],
        *,
        answer: A | None = None,
        refuse: Callable[[], NessieError] | None = None,
        write: Write | None = None,
        effect: DraftEffect | None = None,
        sources: tuple[str, ...] = (),
        repeated: bool = False,
        exact: bool = True,
        settings: StoredSettings | None = None,
    ) -> None:
        self.change = change
        self.references = tuple(references)
        self.write = write
        self.repeated = repeated
        self.exact = exact
        self.effect = effect
        self.settings = settings
        self._sources = sources
        self.open_view: Callable[[Draft[A]], Any] | None = None
        self._answer = answer
        self._refuse = refuse

    @cached_property
    def refusal(self) -> NessieError | None:
        """The error that prevents the change, such as conflicts or a protected branch."""
        return None if self._refuse is None else self._refuse()

    def refused_by(self, refuse: Callable[[], NessieError]) -> Draft[A]:
        """Returns this draft with another refusal, so that it writes nothing."""
        return Draft(self.change, self.references, refuse=refuse, effect=self.effect)

    @property
    def refused(self) -> bool:
        """Whether there is a refusal. The error itself is created on access."""
        return self._refuse is not None

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The conflicts, as data."""
        return self.refusal.conflicts if isinstance(self.refusal, ReferenceConflict) else ()

    def answer(self) -> A:
        """Returns the result of the verb for a committed draft. Raises the refusal."""
        if self._refuse is not None:
            assert self.refusal is not None
            try:
                raise self.refusal
            finally:
                # The traceback of the error refers to this draft. If the draft also kept the error,
                # both would stay in memory until a full collection of garbage.
                del self.refusal
        assert self._answer is not None
        return self._answer

    @property
    def head(self) -> str | None:
        """The hash of the last of `references` after the change.

        None if that is deleted, if there is none, or if a server has yet to decide.
        """
        return self.references[-1].after if self.references else None

    @property
    def parents(self) -> tuple[str, ...]:
        """The parents of the new head, if there is a new commit."""
        return tuple(parent.hex() for parent in self.effect.parents) if self.effect else ()

    @property
    def decoded(self) -> Mapping[Id, DecodedObject]:
        """The decoded objects that the draft adds."""
        return self.effect.objects.added if self.effect else {}

    @property
    def view(self) -> Any:
        """The `Repository` as it will be, for reading; as it is now if `write` is None."""
        assert self.open_view is not None
        return self.open_view(self)

    def key_changes(self) -> Iterator[KeyChange]:
        """Yields the changed keys, on a server none. Cost: O(keys · log of all keys)."""
        if self.effect is None:
            return
        objects, edits = self.effect.objects, self.effect.edits
        before = tree.get(objects, self.effect.root, edits)
        for key, record in edits.items():
            yield KeyChange(objects, key, before.get(key), record)

    @property
    def sources(self) -> tuple[str, ...]:
        """The existing commits that the draft makes reachable, besides their ancestors."""
        return (
            tuple(source.hex() for source in self.effect.sources) if self.effect else self._sources
        )

    @property
    def targets(self) -> tuple[ReferenceChange, ...]:
        """The references from which `sources` become reachable: all but those that are deleted."""
        return tuple(reference for reference in self.references if reference.after is not None)

    def reached_commits(
        self, reachable: Sequence[str] = (), is_over: Callable[[], bool] | None = None
    ) -> Iterator[str]:
        """Yields the existing commits that the draft makes reachable.

        Those are `sources` and their ancestors, without those that the `targets` or the hashes
        `reachable` reach already. Costs a read for each, and for those of `targets` that are newer.
        Asks `is_over` before each read, and raises `TimeoutError` once it is.
        """
        if self.effect is None:
            return
        objects = self.effect.objects
        before = [target.before for target in self.targets if target.before is not None]
        excluded = list(
            objects.find_commits([bytes.fromhex(hash_) for hash_ in (*before, *reachable)])
        )
        for id_, _ in history.reachable(objects, self.effect.sources, excluded, is_over=is_over):
            yield id_.hex()

    def targets_contain(
        self, commits: Sequence[str], is_over: Callable[[], bool] | None = None
    ) -> bool:
        """Returns whether the `targets`, as they are before the draft, contain all these commits.

        Costs a read for each commit of the targets that is newer. Asks `is_over` before each, and
        raises `TimeoutError` once it is.
        """
        if self.effect is None:
            return False
        objects = self.effect.objects
        before = [target.before for target in self.targets if target.before is not None]
        if set(commits) <= set(before):
            return True
        stored = objects.find_commits([bytes.fromhex(hash_) for hash_ in (*commits, *before)])
        starts = [bytes.fromhex(hash_) for hash_ in commits]
        heads = [id_ for id_ in map(bytes.fromhex, before) if id_ in stored]
        return all(id_ in stored for id_ in starts) and not any(
            True for _ in history.reachable(objects, starts, heads, is_over=is_over)
        )

    def changes_of(
        self,
        commit: str,
        brought: Collection[ContentKey | bytes] | None = None,
        most: int | None = None,
    ) -> list[PastChange]:
        """Returns the changes of an existing commit, with `most` at most as many.

        With `brought`, only those of these keys and content ids. Costs a read, none for contents.
        """
        assert self.effect is not None
        objects = self.effect.objects
        changes = [
            (KeyChange(objects, key, None, record), content_id_of(record))
            for key, record in operations_of(objects, objects.commit(bytes.fromhex(commit)), most)
            if brought is None or decode_key(key) in brought or content_id_of(record) in brought
        ]
        return [PastChange(change.key, change.type_after, id_) for change, id_ in changes]


Check = Callable[[Draft[Any]], None]
"""A function that decides on a draft and raises an error to prevent it."""


class Guard(Protocol):
    """Decides on each change of `submit` before the commit, and is notified afterwards."""

    def check(self, draft: Draft[Any]) -> None:
        """Raise an error to prevent a draft. Called again if the change is drafted again."""

    def done(self, draft: Draft[Any], answer: Any) -> None:
        """React to a committed draft; `answer` is the result for the caller."""


# -- protected branches and tags -------------------------------------------------------------------

PROTECTION = "protect."
"""The beginning of the settings that protect branches and tags.

A value lists rules separated by commas: `no-delete` (neither deleted nor renamed), `no-rewind`
(assigned only to descendants), `merge-only` (changed only by merges of content that one of the two
branches has). The rest of the name is that of a branch or tag, or a glob such as `release/*`. All
matching settings apply.
"""
_MOST_WILDCARDS = 16
"""The most `*` and `[` of a pattern. The expression for thousands takes seconds to compile."""
NO_DELETE = "no-delete"
NO_REWIND = "no-rewind"
MERGE_ONLY = "merge-only"
RULES = (NO_DELETE, NO_REWIND, MERGE_ONLY)


class _Refusal(NamedTuple):
    """A rule that forbids a move, why, and what the caller can do instead."""

    rule: str
    reason: str
    hint: str = ""


_SUPPLIED = _Refusal(
    MERGE_ONLY,
    "a merge into it cannot contain content that the caller supplies",
    "commit the resolution to the source, and merge it",
)


def refuse_protected(
    draft: Draft[Any], view: View, is_ancestor: Callable[[Id, Id], bool]
) -> Callable[[], NessieError] | None:
    """Returns a function that creates the error if a rule forbids a draft, otherwise None.

    Judges the moves of references and the change, for every verb and API. `view` is the state of
    the draft. `is_ancestor` returns whether its first commit is an ancestor of its second.
    """
    for reference in () if draft.repeated else draft.references:
        for rule, reason, hint in _forbidding(draft.change, reference):
            settings = draft.settings or view.settings()
            setting = protecting(settings.values, reference.name, rule)
            if setting is None or (
                rule == NO_REWIND and is_ancestor(_id(reference.before), _id(reference.after))
            ):
                continue
            return partial(
                WriteRefused,
                f"{reference.type.lower()} '{reference.name}' is protected"
                f" ({setting} = {settings.values[setting]}): {reason}",
                hint=hint,
            )
    return None


def _forbidding(change: Change[Any], reference: ReferenceChange) -> list[_Refusal]:
    """Returns the rules that forbid a move. No rule forbids a new reference.

    `no-rewind` allows moves to descendants.
    """
    if reference.before is None:
        return []
    if reference.after is None:
        renamed = isinstance(change, RenameReference)
        return [_Refusal(NO_DELETE, f"it cannot be {'renamed' if renamed else 'deleted'}")]
    if isinstance(change, Merge):
        supplied = any(
            b.resolved is not None and not b.is_combined for b in change.options.behaviors
        )
        return [_SUPPLIED] if supplied else []
    forbidding = [_Refusal(MERGE_ONLY, "it changes only by merges")]
    if not isinstance(change, Commit | Transplant):
        forbidding.append(_Refusal(NO_REWIND, "it is only assigned to descendants of its HEAD"))
    return forbidding


def protecting(settings: Mapping[str, str], reference: str, rule: str) -> str | None:
    """Returns the name of a setting that applies a rule to a reference."""
    return next(
        (
            name
            for name, value in settings.items()
            if name.startswith(PROTECTION)
            and fnmatchcase(reference, name[len(PROTECTION) :])
            and rule in _rules(value)
        ),
        None,
    )


def check_protection(name: str, value: str | None) -> None:
    """Raises `InvalidInput` for a protection setting with a wrong rule or pattern.

    Each writer compares its reference with all patterns, so a pattern must not take long.
    """
    if not name.startswith(PROTECTION) or value is None:
        return
    if name == PROTECTION:
        raise InvalidInput(f"setting {name!r} names no branch; write {PROTECTION}main")
    pattern = name[len(PROTECTION) :]
    if len(pattern) > MAX_NAME_LENGTH or sum(map(pattern.count, "*[")) > _MOST_WILDCARDS:
        raise InvalidInput(
            f"setting {name[:100]!r}: the pattern has more than {MAX_NAME_LENGTH:,} characters,"
            f" or {_MOST_WILDCARDS} of * and [",
            hint="protect the branches with several shorter patterns",
        )
    unknown = [rule for rule in _rules(value) if rule not in RULES]
    if unknown or not _rules(value):
        raise InvalidInput(
            f"setting {name}: {value!r} is not a list of rules; choose from {', '.join(RULES)}"
        )


def _rules(value: str) -> list[str]:
    return [rule.strip() for rule in value.split(",") if rule.strip()]


def _id(hash_: str | None) -> Id:
    return bytes.fromhex(hash_ or "")
