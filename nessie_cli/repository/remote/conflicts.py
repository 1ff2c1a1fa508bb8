"""Applies the commit rules on the client, and adds the details of conflicts.

The server sends the type, key and message of a conflict. The expected, current and proposed
contents, and the commit that changed the key, are read afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from nessie_cli.errors import ReferenceConflict
from nessie_cli.kernel.commits import Stamp, draft_commit
from nessie_cli.kernel.committing import AppliedBatch, OperationBatch, apply_batch, parse_content_id
from nessie_cli.kernel.edit import build
from nessie_cli.kernel.forms import NO_COMMIT, Id, decode_key, encode_key, new_content_id
from nessie_cli.kernel.objects import Objects
from nessie_cli.kernel.outcome import describe
from nessie_cli.kernel.restored import MOST_COMPARED
from nessie_cli.model import (
    CommitMeta,
    Conflict,
    ConflictType,
    Content,
    ContentKey,
    Delete,
    KeyRange,
    Namespace,
    Operation,
    Put,
    RestoredFrom,
)
from nessie_cli.model.conflicts import MOST_REPORTED, commit_message
from nessie_cli.repository.changes import Commit
from nessie_cli.repository.remote import references
from nessie_cli.repository.remote.contents import contents, entries
from nessie_cli.repository.remote.server import Server
from nessie_cli.repository.remote.session import RestSession

State = Mapping[ContentKey, Content]
Changes = Mapping[ContentKey, CommitMeta]


def with_details(
    conflicts: Iterable[Conflict],
    expected: State,
    actual: State,
    proposed: State,
    changed_by: Changes,
) -> tuple[Conflict, ...]:
    """Returns the conflicts with their contents and changes.

    Renamed contents are under the keys that they have now.
    """

    def completed(conflict: Conflict, key: ContentKey) -> Conflict:
        here = conflict.target_rename.new if conflict.target_rename else key
        there = conflict.source_rename.new if conflict.source_rename else key
        return structs.replace(
            conflict,
            expected=expected.get(key),
            actual=actual.get(here),
            proposed=proposed.get(there),
            changed_by=changed_by.get(key),
        )

    return tuple(
        conflict if conflict.key is None else completed(conflict, conflict.key)
        for conflict in conflicts
    )


def with_namespaces(
    conflicts: Iterable[Conflict], actual: State, changed_by: Changes
) -> tuple[Conflict, ...]:
    """Returns conflicts of namespaces with the current contents. They have no proposed content."""

    def completed(conflict: Conflict, key: ContentKey) -> Conflict:
        current = actual.get(key)
        expected = current if conflict.type is ConflictType.NAMESPACE_NOT_EMPTY else None
        return structs.replace(
            conflict, expected=expected, actual=current, changed_by=changed_by.get(key)
        )

    return tuple(
        conflict if conflict.key is None else completed(conflict, conflict.key)
        for conflict in conflicts
    )


def keys_of(conflicts: Iterable[Conflict]) -> list[ContentKey]:
    """Returns the keys of conflicts, and those that contents were renamed to."""
    keys: dict[ContentKey, None] = {}
    for conflict in conflicts:
        renames = (conflict.source_rename, conflict.target_rename)
        keys |= dict.fromkeys(
            key
            for key in (conflict.key, *(rename.new for rename in renames if rename))
            if key is not None
        )
    return list(keys)


def diagnosed(server: Server, conflict: ReferenceConflict, change: Commit) -> ReferenceConflict:
    """Returns the conflict of a commit with its details, by a check against the current HEAD."""
    if not conflict.conflicts:
        return conflict
    head = references.get(server.session, change.branch).hash
    operations, expected = list(change.operations), change.expected_hash or head
    check = check_commit(server, operations, expected, head)
    if check.conflicts:
        return check.refusal(change.branch, head, expected)
    return ReferenceConflict(
        conflict.message,
        _with_states(server, conflict, operations, expected, head),
        reference=change.branch,
        head=head,
        expected_hash=expected,
    )


def _with_states(
    server: Server,
    conflict: ReferenceConflict,
    operations: Sequence[Operation],
    expected: str,
    head: str,
) -> tuple[Conflict, ...]:
    keys = [each.key for each in conflict.conflicts if each.key is not None]
    before, state = contents(server.session, expected, keys), contents(server.session, head, keys)
    proposed = {
        operation.key: operation.content for operation in operations if isinstance(operation, Put)
    }
    changed_by = server.changes_since(keys, expected, head, state)
    return with_details(conflict.conflicts, before, state, proposed, changed_by)


# -- the commit rules ----------------------------------------------------------------------------


class CommitCheck(NamedTuple):
    """The outcome of the commit rules: the changes, or the conflicts with their details.

    `more` is the number of conflicts that are not listed.
    """

    applied: AppliedBatch
    conflicts: tuple[Conflict, ...]
    more: int

    def refusal(self, branch: str, head: str, expected: str) -> ReferenceConflict:
        """Returns the error for the conflicts with the head of a branch."""
        return ReferenceConflict(
            commit_message(self.conflicts, self.more),
            self.conflicts,
            reference=branch,
            head=head,
            expected_hash=expected,
            more=self.more,
        )


def check_commit(
    server: Server, operations: Sequence[Operation], expected: str, head: str
) -> CommitCheck:
    """Applies the kernel's commit rules to the relevant keys of the server's states."""
    session, objects = server.session, Objects(lambda _: {})
    operations, came_back = _with_origins(server, objects, operations, head)
    keys = {key for operation in operations for key in _with_ancestors(operation.key)}
    at_head = contents(session, head, keys)
    at_expected = at_head if expected == head else contents(session, expected, keys)
    children = _children(session, operations, at_head, head)
    head_root = _root(objects, {**came_back, **at_head, **children})
    applied = apply_batch(
        objects,
        OperationBatch(objects, operations),
        _root(objects, at_expected),
        head_root,
        lambda _: new_content_id(session.random),
    )
    reported = applied.conflicts[:MOST_REPORTED]
    changes = server.changes_since(
        [decode_key(conflict.key) for conflict in reported], expected, head, at_head
    )

    def changed_by(key: bytes) -> CommitMeta | None:
        return changes.get(decode_key(key))

    conflicts = describe(objects, reported, changed_by, changed_by)
    return CommitCheck(applied, conflicts, len(applied.conflicts) - len(reported))


def _with_origins(
    server: Server, objects: Objects, operations: Sequence[Operation], head: str
) -> tuple[Sequence[Operation], State]:
    """Returns the operations with local commits as origins of the restored contents.

    Also returns these contents by the keys that they have at HEAD, and those of their earlier keys.
    """
    restored = [put for put in operations if isinstance(put, Put) and put.restored_from is not None]
    ids = {put.content.id for put in restored}
    keys_by_hash: dict[str, set[ContentKey]] = {}
    for put in restored:
        if put.restored_from is not None:
            keys_by_hash.setdefault(put.restored_from.hash, set()).add(put.restored_from.key)
    places: dict[RestoredFrom, RestoredFrom] = {}
    for hash_, keys in keys_by_hash.items():
        root, meta = _root(objects, contents(server.session, hash_, keys)), CommitMeta(hash_)
        commit = draft_commit(objects, [NO_COMMIT], root, {}, meta=meta, stamp=Stamp("", 0))
        places |= {RestoredFrom(hash_, key): RestoredFrom(commit.hex(), key) for key in keys}
    came_back = {
        key: content for key, content in _new_at(server, keys_by_hash, head) if content.id in ids
    }
    came_back |= contents(server.session, head, set().union(*keys_by_hash.values()))

    def placed(operation: Operation) -> Operation:
        if not isinstance(operation, Put) or operation.restored_from is None:
            return operation
        return structs.replace(operation, restored_from=places[operation.restored_from])

    return list(map(placed, operations)), came_back


def _new_at(
    server: Server, hashes: Collection[str], head: str
) -> Iterator[tuple[ContentKey, Content]]:
    """Yields the contents at HEAD that differ from earlier commits, or all if these are many."""
    if len(hashes) > MOST_COMPARED:
        for entry in entries(server.session, head, content=True):
            if entry.content is not None:
                yield entry.key, entry.content
        return
    for hash_ in hashes:
        for change in server.diff(hash_, head, KeyRange()):
            if change.after is not None:
                yield change.key, change.after


def _children(
    session: RestSession, operations: Sequence[Operation], at_head: State, head: str
) -> dict[ContentKey, Content]:
    """Returns the contents below the namespaces that are deleted."""
    children: dict[ContentKey, Content] = {}
    for operation in operations:
        if isinstance(operation, Delete) and isinstance(at_head.get(operation.key), Namespace):
            below = entries(session, head, KeyRange(prefix=operation.key), content=True)
            children |= {entry.key: entry.content for entry in below if entry.content is not None}
    return children


def _root(objects: Objects, state: State) -> Id:
    items = [
        (encode_key(key), objects.add_content(content, parse_content_id(content.id or "")))
        for key, content in state.items()
    ]
    return build(objects, sorted(items))


def _with_ancestors(key: ContentKey) -> Iterator[ContentKey]:
    for length in range(1, len(key.elements) + 1):
        yield ContentKey(key.elements[:length])
