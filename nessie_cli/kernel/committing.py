"""The commit rules: from operations to a new state, or to all conflicts at once.

There are two steps. `OperationBatch` reads the operations once, validates them and adds their
values. It may be a stream of millions, and keeps a few dozen bytes for each. `apply_batch` compares
the batch with the expected state and HEAD. After a lost race, only that step is repeated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct, structs

from nessie_cli.errors import InvalidInput
from nessie_cli.kernel import tree
from nessie_cli.kernel.commits import deletion
from nessie_cli.kernel.edit import edit
from nessie_cli.kernel.forms import (
    NO_ID,
    Id,
    content_id_of,
    decode_key,
    encode_key,
    format_content_id,
    is_namespace,
    payload_of,
    with_content_id,
)
from nessie_cli.kernel.namespaces import namespace_conflicts
from nessie_cli.kernel.objects import Objects
from nessie_cli.kernel.outcome import KeyConflict
from nessie_cli.kernel.restored import Origin, RestoredContents
from nessie_cli.model import (
    ConflictType,
    Content,
    Delete,
    Operation,
    Put,
    Unchanged,
    check_writable,
)
from nessie_cli.model.progress import Progress, with_progress

NewId = Callable[[bytes], bytes]
"""Maps an encoded key to its new content id (16 bytes), always the same for a key."""

_UUID_LENGTH = 36
_HASH = re.compile(r"[0-9a-fA-F]{64}")


def parse_content_id(text: str) -> bytes:
    """Returns the 16 bytes of a content id. Raises `InvalidInput` if it is not a UUID."""
    try:
        raw = bytes.fromhex(text.replace("-", ""))
    except ValueError:
        raw = b""
    # `fromhex` ignores spaces; the length excludes them.
    if len(raw) != len(NO_ID) or len(text) != _UUID_LENGTH or text[8:24:5] != "----":
        raise InvalidInput(f"content id {text!r} is not a UUID")
    return raw


class Action(IntEnum):
    """The effect of a batch on a key. RECREATE: deleted and put again in one commit."""

    PUT = 0
    DELETE = 1
    UNCHANGED = 2
    RECREATE = 3


# Looking an enum member up takes longer than what is done with it.
_PUT, _DELETE, _UNCHANGED, _RECREATE = Action


class BatchChange(Struct, frozen=True, gc=False):
    """The change of one key by a batch.

    `record` is the new content, `has_id` whether it came with a content id, `expected` the expected
    content, `origin` where a content was that comes back.
    """

    action: Action
    record: bytes | None = None
    expected: bytes | None = None
    has_id: bool = False
    origin: Origin | None = None

    def frees(self, state: bytes) -> bool:
        """Returns whether the content of a record leaves the key, so that another may have its id.

        A Put does so if it has another id and an expected content. `apply_batch` accepts such a Put
        only if that id leaves another key.
        """
        if self.action is _PUT:
            return (
                self.expected is not None
                and self.record is not None
                and self.has_id
                and content_id_of(self.record) != content_id_of(state)
            )
        return self.action is not _UNCHANGED


class OperationBatch:
    """Validated operations, reduced to records. Their values are pending in `objects`."""

    def __init__(
        self, objects: Objects, operations: Iterable[Operation], progress: Progress | None = None
    ) -> None:
        self._objects = objects
        self.changes: dict[bytes, BatchChange] = {}
        # Each operation is read now and checked later.
        total = (
            2 * len(operations) if progress is not None and isinstance(operations, Sized) else None
        )
        for operation in with_progress(operations, progress, total):
            self._add(operation)
        if not self.changes:
            raise InvalidInput("Commit operations must not be empty")

    def _add(self, operation: Operation) -> None:
        if not operation.key.elements:
            raise InvalidInput("Content key must not be empty")
        key = encode_key(operation.key)
        earlier = self.changes.get(key)
        if isinstance(operation, Put):
            change = self._put(operation)
            if earlier is not None:
                created = not change.has_id or change.origin is not None
                if earlier.action is not _DELETE or not created:
                    raise InvalidInput(f"Duplicate key in commit operations: {operation.key.plain}")
                change = structs.replace(change, action=_RECREATE, expected=None)
                # The change takes the position of its Put.
                del self.changes[key]
        elif earlier is not None:
            raise InvalidInput(f"Duplicate key in commit operations: {operation.key.plain}")
        elif isinstance(operation, Delete):
            change = BatchChange(_DELETE)
        elif isinstance(operation, Unchanged):
            change = BatchChange(_UNCHANGED)
        else:
            raise InvalidInput(f"not an operation: {operation!r}")
        self.changes[key] = change

    def in_order(self) -> Iterator[tuple[bytes, BatchChange]]:
        """Yields the changes in the order in which the original server reports conflicts."""
        for action in (_DELETE, _UNCHANGED, _RECREATE, _PUT):
            for key, change in self.changes.items():
                if change.action is action:
                    yield key, change

    def _put(self, operation: Put) -> BatchChange:
        content, expected = operation.content, operation.expected_content
        check_writable(content)
        seen = self._objects.compared(expected, _id_of(expected)) if expected is not None else None
        record = self._objects.add_content(content, _id_of(content))
        return BatchChange(_PUT, record, seen, content.id is not None, _origin_of(operation))


def _id_of(content: Content) -> bytes:
    return parse_content_id(content.id) if content.id is not None else NO_ID


def _origin_of(put: Put) -> Origin | None:
    """Returns where the content of a Put was, if the Put restores it."""
    place = put.restored_from
    if place is None:
        return None
    if put.content.id is None:
        raise InvalidInput(f"Restored content of key '{put.key.plain}' must have a content ID")
    if not _HASH.fullmatch(place.hash):
        raise InvalidInput(f"Key '{put.key.plain}' is restored from '{place.hash}', not a hash")
    return Origin(bytes.fromhex(place.hash), encode_key(place.key))


def difference(expected: bytes | None, actual: bytes | None) -> ConflictType | None:
    """Returns the conflict between an expected and an actual record, or None if they are equal."""
    if expected == actual:
        return None
    if expected is None:
        return ConflictType.KEY_EXISTS
    if actual is None:
        return ConflictType.KEY_DOES_NOT_EXIST
    if payload_of(expected) != payload_of(actual):
        return ConflictType.PAYLOAD_DIFFERS
    return (
        ConflictType.CONTENT_ID_DIFFERS
        if content_id_of(expected) != content_id_of(actual)
        else ConflictType.VALUE_DIFFERS
    )


def difference_if_required(expected: bytes | None, actual: bytes | None) -> ConflictType | None:
    """Returns `difference` for an operation that requires the key to exist (Delete, Unchanged)."""
    if expected is None:
        return ConflictType.KEY_DOES_NOT_EXIST if actual is None else ConflictType.PAYLOAD_DIFFERS
    return difference(expected, actual)


class AppliedBatch(NamedTuple):
    """The result of a batch: the new state and the operations of the commit, or the conflicts.

    `added` maps each created key to its content id.
    """

    root: Id
    operations: Mapping[bytes, bytes]
    added: Mapping[bytes, bytes]
    conflicts: list[KeyConflict]


class _BatchCheck:
    """Compares a batch with an expected state and HEAD."""

    def __init__(
        self,
        objects: Objects,
        batch: OperationBatch,
        expected: Id,
        head: Id,
        new_id: NewId,
        *,
        demand_expected: bool,
        validate_namespaces: bool,
    ) -> None:
        self._objects = objects
        self._batch, self._changes = batch, batch.changes
        self._head = head
        self._expected_state = tree.get(objects, expected, batch.changes)
        self._head_state = (
            self._expected_state if expected == head else tree.get(objects, head, batch.changes)
        )
        self._new_id = new_id
        self._demand_expected = demand_expected
        self._validate_namespaces = validate_namespaces
        # Contents that leave their keys. Each may be put under one other key.
        self._freed = {
            content_id_of(state): state
            for key, state in self._expected_state.items()
            if batch.changes[key].frees(state)
        }
        self._ids_put: set[bytes] = set()
        self._created: list[bytes] = []
        self.edits: dict[bytes, bytes | None] = {}
        self.operations: dict[bytes, bytes] = {}
        self.added: dict[bytes, bytes] = {}
        self.conflicts: list[KeyConflict] = []

    @cached_property
    def _restored(self) -> RestoredContents:
        origins = [
            (content_id_of(change.record), change.origin)
            for change in self._changes.values()
            if change.record is not None and change.origin is not None
        ]
        return RestoredContents(self._objects, self._head, origins)

    def run(self, progress: Progress | None) -> None:
        self._refuse_recreation_after_rename()
        rules = {
            _PUT: self._put,
            _DELETE: self._delete,
            _UNCHANGED: self._unchanged,
            _RECREATE: self._recreate,
        }
        for key, change in with_progress(
            self._batch.in_order(), progress, 2 * len(self._changes), len(self._changes)
        ):
            rules[change.action](
                key, change, self._expected_state.get(key), self._head_state.get(key)
            )
        if not self._validate_namespaces:
            return
        spaces = [key for key in self.edits if is_namespace(self._head_state.get(key))]
        if self._created or spaces:
            gone = {
                key
                for key, change in self._changes.items()
                if change.action in (_DELETE, _RECREATE)
            }
            removed = [key for key in spaces if key in gone or not is_namespace(self.edits[key])]
            self.conflicts[:0] = namespace_conflicts(
                self._objects,
                self._head,
                self.edits,
                created=self._created,
                removed=removed,
                gone=gone,
            )

    def _refuse_recreation_after_rename(self) -> None:
        """Refuses to create a key again that was renamed away before.

        A Put that takes the content id of a deleted key over makes the deletion a rename.
        """
        if not any(change.action is _RECREATE for change in self._changes.values()):
            return
        taken: set[bytes] = set()
        for key, change in self._changes.items():
            expected = self._expected_state.get(key)
            if (
                change.action is _PUT
                and change.has_id
                and change.record is not None
                and expected is None
            ):
                taken.add(content_id_of(change.record))
            elif (
                change.action is _RECREATE
                and expected is not None
                and content_id_of(expected) in taken
            ):
                raise InvalidInput(
                    f"New value to update existing key '{_plain(key)}' has no content ID"
                )

    def _conflict(
        self,
        type_: ConflictType | None,
        key: bytes,
        expected: bytes | None,
        actual: bytes | None,
        proposed: bytes | None,
        *,
        other_key: bytes | None = None,
    ) -> None:
        """Adds the conflict of a key, if there is one. Another key of its content is one."""
        if other_key is not None:
            type_ = ConflictType.KEY_EXISTS
        if type_ is not None:
            self.conflicts.append(
                KeyConflict(type_, key, expected, actual, proposed, other_key=other_key)
            )

    def _write(self, key: bytes, record: bytes) -> None:
        self.edits[key] = self.operations[key] = record

    def _create(self, key: bytes, record: bytes, content_id: bytes) -> None:
        """Writes a new key with this content id."""
        self._created.append(key)
        self._write(key, with_content_id(record, content_id))

    def _assign_id(self, key: bytes, record: bytes) -> None:
        content_id = self._new_id(key)
        self.added[key] = content_id
        self._create(key, record, content_id)

    def _put(
        self, key: bytes, change: BatchChange, expected: bytes | None, head: bytes | None
    ) -> None:
        record = change.record
        assert record is not None
        content_id = content_id_of(record)
        self._refuse_second_put(key, change, content_id)
        if expected is None:
            other = self._put_new(key, change, record)
            self._compare(key, change, record, None, head, other_key=other)
        elif not change.has_id:
            raise InvalidInput(
                f"New value to update existing key '{_plain(key)}' has no content ID"
            )
        elif content_id == content_id_of(expected):
            self._update(key, change, record, expected, head)
        elif change.expected is not None and (
            content_id in self._freed or change.origin is not None
        ):
            other = self._put_new(key, change, record)
            self._compare(key, change, record, expected, head, other_key=other)
        else:
            raise InvalidInput(
                f"Key '{_plain(key)}' already exists with content ID"
                f" {format_content_id(content_id_of(expected))}, which is different from the"
                f" content ID {format_content_id(content_id)} in the operation"
            )

    def _refuse_second_put(self, key: bytes, change: BatchChange, content_id: bytes) -> None:
        if not change.has_id:
            return
        if content_id in self._ids_put:
            raise InvalidInput(
                f"content id {format_content_id(content_id)} is put under two keys,"
                f" the second is '{_plain(key)}'"
            )
        self._ids_put.add(content_id)

    def _put_new(self, key: bytes, change: BatchChange, record: bytes) -> bytes | None:
        """Gives a key a content that it does not have: a new, a moved or a restored one.

        Returns another key that a restored content has at HEAD, which is a conflict.
        """
        if not change.has_id:
            self._assign_id(key, record)
        elif content_id_of(record) in self._freed:
            self._take_over(key, record)
        elif change.origin is not None:
            return self._restore(key, record, change.origin)
        else:
            raise InvalidInput(f"New value for key '{_plain(key)}' must not have a content ID")
        return None

    def _restore(self, key: bytes, record: bytes, origin: Origin) -> bytes | None:
        """Writes a content that was deleted, under its id. Returns another key of it at HEAD."""
        self.added[key] = content_id_of(record)
        self._create(key, record, self.added[key])
        place = self._restored.key_at_head(key, record, origin, self._same_type)
        return None if place == key else place

    def _take_over(self, key: bytes, record: bytes) -> None:
        """Writes a content with an id that leaves another key. Its type must be the same."""
        content_id = content_id_of(record)
        if not self._same_type(record, self._freed[content_id]):
            raise InvalidInput(
                f"Key '{_plain(key)}' cannot take over content ID"
                f" {format_content_id(content_id)}: the types are different"
            )
        self._create(key, record, content_id)

    def _update(
        self, key: bytes, change: BatchChange, record: bytes, expected: bytes, head: bytes | None
    ) -> None:
        if change.expected is None and self._demand_expected:
            raise InvalidInput(
                f"Put of existing key '{_plain(key)}' must have expectedContent"
                " (repository setting require-expected-content)"
            )
        if not self._same_type(record, expected):
            raise InvalidInput(
                f"Key '{_plain(key)}' already exists with a different type than"
                " the content in the operation"
            )
        self._compare(key, change, record, expected, head)
        self._write(key, record)

    def _same_type(self, record: bytes, existing: bytes) -> bool:
        payload = payload_of(record)
        if payload != payload_of(existing) or payload:
            return payload == payload_of(existing)
        # Unknown types share a payload number; their values contain the name.
        new, old = self._objects.contents([record, existing])
        return new.type_name == old.type_name

    def _compare(
        self,
        key: bytes,
        change: BatchChange,
        record: bytes,
        expected: bytes | None,
        head: bytes | None,
        *,
        other_key: bytes | None = None,
    ) -> None:
        """Compares HEAD with the content that a Put names, or else with the expected state.

        The key must have the content id of the expected state in any case. Otherwise that id could
        be under another key at HEAD, and the commit would add a second key for it.
        """
        seen = change.expected
        moved = expected and head and content_id_of(expected) != content_id_of(head)
        if seen is None or moved:
            type_ = difference(expected, head)
            self._conflict(type_, key, expected, head, record, other_key=other_key)
            return
        compared = seen
        if head is not None and content_id_of(seen) == NO_ID:
            compared = with_content_id(seen, content_id_of(head))
        type_ = difference(compared, head)
        self._conflict(type_, key, seen, head, record, other_key=other_key)

    def _recreate(
        self, key: bytes, change: BatchChange, expected: bytes | None, head: bytes | None
    ) -> None:
        assert change.record is not None
        self._refuse_second_put(key, change, content_id_of(change.record))
        other = self._put_new(key, change, change.record)
        type_ = difference_if_required(expected, head)
        self._conflict(type_, key, expected, head, change.record, other_key=other)

    def _delete(
        self, key: bytes, _: BatchChange, expected: bytes | None, head: bytes | None
    ) -> None:
        self._conflict(difference_if_required(expected, head), key, expected, head, None)
        self.edits[key] = None
        if head is not None:
            self.operations[key] = deletion(head)

    def _unchanged(
        self, key: bytes, _: BatchChange, expected: bytes | None, head: bytes | None
    ) -> None:
        self._conflict(difference_if_required(expected, head), key, expected, head, expected)


def _plain(key: bytes) -> str:
    return decode_key(key).plain


def apply_batch(
    objects: Objects,
    batch: OperationBatch,
    expected: Id,
    head: Id,
    new_id: NewId,
    *,
    demand_expected: bool = False,
    validate_namespaces: bool = True,
    progress: Progress | None = None,
) -> AppliedBatch:
    """Compares a batch with the expected state and HEAD, given by their roots.

    Drafts the new state if there are no conflicts. Raises `InvalidInput` for operations that no
    state of the branch could make valid. The draft adds no second key for a content id: a key keeps
    its id, gets a new one, takes over an id that leaves another key, at HEAD as well as in the
    expected state, or gets back the id of a content that has no key at HEAD.
    O(operations · log keys), and for restored contents the keys that differ between HEAD and the
    commits that they come from, at most all keys at HEAD.
    """
    check = _BatchCheck(
        objects,
        batch,
        expected,
        head,
        new_id,
        demand_expected=demand_expected,
        validate_namespaces=validate_namespaces,
    )
    check.run(progress)
    root = head if check.conflicts else edit(objects, head, check.edits)
    return AppliedBatch(root, check.operations, check.added, check.conflicts)
