"""Reads a stored commit: its state, its operations, its metadata."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from nessie_cli.kernel import tree
from nessie_cli.kernel.forms import DELETED, NO_COMMIT, Id, StoredCommit, decode_node
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import CommitMeta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(when: datetime) -> int:
    """Returns the microseconds since 1970 of an aware datetime."""
    return (when - _EPOCH) // timedelta(microseconds=1)


def from_micros(time: int) -> datetime:
    """Returns the datetime in UTC of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=time)


def root_of(objects: Objects, commit: Id) -> Id:
    """Returns the root of a commit's state."""
    return tree.EMPTY if commit == NO_COMMIT else objects.commit(commit).root


def operations_of(objects: Objects, commit: StoredCommit) -> list[tuple[bytes, bytes]]:
    """Returns a commit's operations: key and record, which has the flag `DELETED` if deleted."""
    stored = commit.operations
    if not stored:
        return []
    if len(stored) == len(NO_COMMIT):
        return list(tree.scan(objects, stored))
    node = decode_node(stored)
    return [(key, node.slice(index)) for index, key in enumerate(node.keys)]


def operations_on(
    objects: Objects, commit: StoredCommit, keys: Sequence[bytes]
) -> dict[bytes, bytes]:
    """Returns a commit's operations on the given keys."""
    stored = commit.operations
    if len(stored) == len(NO_COMMIT):
        return tree.get(objects, stored, keys)
    return {key: record for key, record in operations_of(objects, commit) if key in keys}


def deletion(record: bytes) -> bytes:
    """Returns the record of an operation that deletes the content of `record`."""
    return bytes([record[0] | DELETED]) + record[1:]


def is_deletion(record: bytes) -> bool:
    """Returns whether the record of an operation is a deletion."""
    return bool(record[0] & DELETED)


def meta_of(commit_id: Id, commit: StoredCommit) -> CommitMeta:
    """Returns a commit's metadata for callers."""
    return CommitMeta(
        message=commit.message,
        authors=commit.authors,
        signed_off_by=commit.signed_off_by,
        author_time=from_micros(commit.author_time),
        properties=dict(commit.properties),
        committer=commit.committer,
        commit_time=from_micros(commit.time),
        hash=commit_id.hex(),
        parents=tuple(parent.hex() for parent in commit.parents),
    )
