"""Creates the drafts of a change and their `Write`: objects, moves, settings, requirements.

Drafts of a branch begin with its commit and the one that the caller expects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from msgspec import json

from nessie_cli.errors import CommitNotFound, InvalidInput, NessieError, ReferenceMoved
from nessie_cli.kernel import history, tree
from nessie_cli.kernel.commits import root_of
from nessie_cli.kernel.forms import NO_COMMIT, Id, content_id_of, decode_key
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import (
    NAMESPACE_VALIDATION,
    SETTING_PREFIX,
    Reference,
    ReferenceType,
    ReflogType,
)
from nessie_cli.repository.changes import Change
from nessie_cli.repository.draft import ChangeSubmission, Draft, DraftEffect, ReferenceChange
from nessie_cli.repository.expected import changed_since
from nessie_cli.repository.requests import (
    Recorded,
    RecordedMove,
    encode_result,
    recorded,
    reused,
)
from nessie_cli.repository.snapshot import (
    Context,
    StoreSnapshot,
    reference_not_found,
    stored_objects,
)
from nessie_cli.store.records import Move, RequestRecord, StoredReference, StoredSettings, Write

A = TypeVar("A")


_BRANCH = ReferenceType.BRANCH  # looking a member up takes longer than a comparison


class WriteMaker:
    """Creates the write of one draft. All of its moves and its request have one time."""

    def __init__(self, context: Context, submission: ChangeSubmission, operation: str) -> None:
        self._who = context.who
        self._submission = submission
        self._operation = operation
        self._time = context.clock()
        self._id = submission.write_id(context)

    def move(
        self, reference: StoredReference, before: Id | None, after: Id | None, message: str = ""
    ) -> Move:
        """Returns a move of a reference, with its reflog entry."""
        return Move(
            reference.name,
            reference.kind,
            before,
            after,
            self._time,
            self._who,
            self._operation,
            message,
            self._id,
        )

    def setting_change(self, name: str, before: str | None, after: str | None) -> Move:
        """Returns the reflog entry of a changed setting: it moves no reference.

        `message` holds both values.
        """
        values = json.encode((before, after)).decode()
        setting = StoredReference(SETTING_PREFIX + name, ReflogType.SETTING, b"")
        return self.move(setting, None, None, values)

    def request(
        self,
        digest: Callable[[], bytes],
        moves: Sequence[Move],
        settings: Mapping[str, str | None] = {},
    ) -> RequestRecord:
        """Returns the record of the request. A generated id needs no digest and no result."""
        if not self._submission.given:
            return RequestRecord(self._id, "", b"", b"", self._time)
        done = Recorded(
            self._operation,
            tuple(
                RecordedMove(move.name, ReferenceType(move.kind), move.before, move.after)
                for move in moves
            ),
            settings,
        )
        return RequestRecord(self._id, self._who, digest(), encode_result(done), self._time)


UNVALIDATED = StoredSettings({NAMESPACE_VALIDATION: "false"})
"""Settings for drafting a recorded change again, which was validated when it was committed."""


class BranchDrafts(Generic[A]):
    """The drafts that a change of a branch can have: refused, unchanged, or with a write."""

    def __init__(
        self,
        at: StoreSnapshot,
        change: Change[A],
        branch: StoredReference,
        settings: StoredSettings,
    ) -> None:
        self.at = at
        self.change = change
        self.branch = branch
        self.settings = settings

    @property
    def validates_namespaces(self) -> bool:
        """Whether keys need their namespace, and only empty namespaces can be deleted."""
        return self.settings.values.get(NAMESPACE_VALIDATION) != "false"

    def refused(self, refuse: Callable[[], NessieError], effect: DraftEffect) -> Draft[A]:
        """Returns a draft with a refusal, such as conflicts."""
        return self._draft([unmoved(self.branch)], effect, refuse=refuse)

    def unchanged(self, answer: A, effect: DraftEffect | None = None) -> Draft[A]:
        """Returns a draft that writes nothing: of a dry run, or because nothing changes."""
        return self._draft([unmoved(self.branch)], effect, answer=answer)

    def moved(
        self,
        submission: ChangeSubmission,
        operation: str,
        head: Id,
        *,
        answer: A,
        effect: DraftEffect,
        digest: Callable[[], bytes],
        required: Sequence[Id] = (),
    ) -> Draft[A]:
        """Returns a draft that moves the branch to a new commit.

        `digest` is only called for a client's request id. `required` are existing commits.
        """
        maker = WriteMaker(self.at.context, submission, operation)
        moves = [maker.move(self.branch, self.branch.target, head)]
        write = Write(
            request=maker.request(digest, moves),
            objects=stored_objects(effect.objects.pending, effect.objects.index_terms),
            moves=moves,
            required=required,
            settings_version=self.settings.version,
        )
        return self._draft(reference_changes(moves), effect, answer=answer, write=write)

    def _draft(
        self, references: Sequence[ReferenceChange], effect: DraftEffect | None, **more: Any
    ) -> Draft[A]:
        return Draft(self.change, references, effect=effect, settings=self.settings, **more)


def repeated_draft(
    at: StoreSnapshot,
    change: Change[A],
    request: RequestRecord,
    digest: bytes,
    answer: Callable[[Recorded], A],
) -> Draft[A]:
    """Returns the draft of a change whose request id was committed before.

    It has the answer to the recorded request, or a refusal if that was another change. Then it has
    no references, whose names the caller may not be allowed to know.
    """
    done = recorded(at.view, request)
    refuse = reused(request, at.context.who, digest)
    return Draft(
        change,
        [] if refuse else reference_changes(done.moves),
        answer=None if refuse else answer(done),
        refuse=refuse,
        repeated=True,
    )


def reference_changes(moves: Sequence[Move | RecordedMove]) -> list[ReferenceChange]:
    """Returns moves as values for callers."""
    return [
        ReferenceChange(
            ReferenceType(move.kind),
            move.name,
            None if move.before is None else move.before.hex(),
            None if move.after is None else move.after.hex(),
        )
        for move in moves
    ]


def unmoved(reference: StoredReference) -> ReferenceChange:
    """Returns a reference that a draft reads and does not move."""
    target = reference.target.hex()
    return ReferenceChange(ReferenceType(reference.kind), reference.name, target, target)


# -- branches --------------------------------------------------------------------------------------


def existing_branch(name: str, reference: StoredReference | None, verb: str) -> StoredReference:
    """Returns a stored branch. Raises an error if there is none, or if it is a tag."""
    if reference is None:
        raise reference_not_found(name)
    if reference.kind != _BRANCH:
        raise InvalidInput(f"Reference to {verb} into must be a branch.")
    return reference


def expected_commit(objects: Objects, branch: StoredReference, hash_: str | None) -> Id:
    """Returns the id of the expected hash, or HEAD.

    Raises `CommitNotFound` unless it is on the branch.
    """
    if hash_ is None:
        return branch.target
    id_ = _parse_hash(hash_)
    if id_ in (branch.target, NO_COMMIT):
        return id_
    if objects.find_commit(id_) is None or not history.on_first_parents(
        objects, id_, branch.target
    ):
        raise CommitNotFound(
            f"Could not find commit '{hash_}' in reference '{branch.name}'.", hash_
        )
    return id_


def refuse_changed(
    objects: Objects,
    branch: StoredReference,
    expected: Id,
    keys: Collection[bytes],
    ids: Collection[bytes] = (),
) -> Callable[[], ReferenceMoved] | None:
    """Returns the error if any of these keys or contents has changed since a commit, or None.

    A decision is about the state that its caller has seen: it must not delete what came later. The
    key of a content at that time is not among the keys if it was renamed or deleted since. O(keys
    log N); with ids also the difference of the two states.
    """
    if expected == branch.target:
        return None
    roots = [root_of(objects, commit) for commit in (expected, branch.target)]
    if ids:
        keys = {*keys, *_keys_of(objects, roots, ids)}
    before, after = (tree.get(objects, root, keys) for root in roots)
    changed = [decode_key(key) for key in keys if before.get(key) != after.get(key)]
    if not changed:
        return None
    return partial(changed_since, branch.name, expected.hex(), branch.target.hex(), changed)


def _keys_of(objects: Objects, roots: Sequence[Id], ids: Collection[bytes]) -> Iterator[bytes]:
    """Yields the keys at which contents differ in two states."""
    for key, before, after in tree.diff(objects, roots[0], roots[1]):
        if any(record is not None and content_id_of(record) in ids for record in (before, after)):
            yield key


def _parse_hash(text: str) -> Id:
    try:
        id_ = bytes.fromhex(text)
    except ValueError:
        id_ = b""
    if not id_:
        raise InvalidInput(f"Hash must consist of the hex representation of 4-32 bytes: {text!r}")
    return id_


def branch_at(name: str, head: Id) -> Reference:
    """Returns a branch at a commit."""
    return Reference(_BRANCH, name, head.hex())
