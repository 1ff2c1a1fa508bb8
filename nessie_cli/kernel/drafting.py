"""Making a commit object from a new state: ancestry fields, time, metadata, and the list of its operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from nessie_cli.errors import InvalidInput
from nessie_cli.kernel import tree
from nessie_cli.kernel.edit import build
from nessie_cli.kernel.history import jump_of_child
from nessie_cli.kernel.objects import DELETED, NO_COMMIT, Commit, Id, Node, Objects, decode_node, encode_node
from nessie_cli.model import CommitMeta

INLINE_OPERATIONS = 16
"""Up to this many operations stand inside the commit, more in a tree of their own. Part of the format."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Stamp(NamedTuple):
    """Who commits and when (microseconds since 1970)."""

    committer: str
    time: int


def micros(when: datetime) -> int:
    """Microseconds since 1970 of an aware datetime."""
    return (when - _EPOCH) // timedelta(microseconds=1)


def from_micros(time: int) -> datetime:
    """The datetime in UTC of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=time)


def check_client_meta(meta: CommitMeta) -> None:
    """Refuse metadata that only the repository sets (reference 7.3)."""
    for value, name in ((meta.committer, "committer"), (meta.commit_time, "commit time"), (meta.hash, "commit hash")):
        if value is not None:
            raise InvalidInput(f"Cannot set the {name} on the client side. It is set by the server.")
    if meta.parents:
        raise InvalidInput("Cannot set the parent commit hashes on the client side. It is set by the server.")
    try:
        "".join(
            (meta.message, *meta.authors, *meta.signed_off_by, *(t for name, values in meta.properties.items() for t in (name, *values)))
        ).encode()
    except UnicodeEncodeError:
        raise InvalidInput("the commit's metadata holds text that is not valid Unicode") from None
    if meta.author_time is not None and meta.author_time.tzinfo is None:
        raise InvalidInput(f"author time {meta.author_time}: has no time zone")


def root_of(objects: Objects, commit: Id) -> Id:
    """The root of a commit's state."""
    return tree.EMPTY if commit == NO_COMMIT else objects.commit(commit).root


def draft_commit(objects: Objects, parents: Sequence[Id], root: Id, operations: Mapping[bytes, bytes], *, meta: CommitMeta, stamp: Stamp) -> Id:
    """Add a commit with this state and these operations; its time is later than those of all its parents. Returns its id."""
    known = [objects.commit(p) for p in parents if p != NO_COMMIT]
    time = max([stamp.time, *(p.time + 1 for p in known)])
    return objects.add_commit(
        Commit(
            parents=tuple(parents),
            height=1 + (objects.commit(parents[0]).height if parents[0] != NO_COMMIT else 0),
            generation=1 + max((p.generation for p in known), default=0),
            jump=jump_of_child(objects, parents[0]),
            root=root,
            operations=_encode_operations(objects, operations),
            operation_count=len(operations),
            time=time,
            author_time=micros(meta.author_time) if meta.author_time else time,
            message=meta.message,
            committer=stamp.committer,
            authors=tuple(meta.authors) or (stamp.committer,),
            signed_off_by=tuple(meta.signed_off_by),
            properties=tuple(sorted((name, tuple(values)) for name, values in meta.properties.items())),
        )
    )


def _encode_operations(objects: Objects, operations: Mapping[bytes, bytes]) -> bytes:
    items = sorted(operations.items())
    if not items:
        return b""
    if len(items) > INLINE_OPERATIONS:
        return build(objects, items)
    return encode_node(Node(0, [key for key, _ in items], b"".join(record for _, record in items)))


def operations_of(objects: Objects, commit: Commit) -> list[tuple[bytes, bytes]]:
    """A commit's own operations by key: the record put, or the one deleted with the mark `DELETED`."""
    stored = commit.operations
    if not stored:
        return []
    if len(stored) == len(NO_COMMIT):
        return list(tree.scan(objects, stored))
    node = decode_node(stored)
    return [(key, node.slice(index)) for index, key in enumerate(node.keys)]


def operations_on(objects: Objects, commit: Commit, keys: Sequence[bytes]) -> dict[bytes, bytes]:
    """Those of a commit's operations that are on the given keys."""
    stored = commit.operations
    if len(stored) == len(NO_COMMIT):
        return tree.get(objects, stored, keys)
    return {key: record for key, record in operations_of(objects, commit) if key in keys}


def deletion(record: bytes) -> bytes:
    """The record of an operation that deleted what this record says."""
    return bytes([record[0] | DELETED]) + record[1:]


def is_deletion(record: bytes) -> bool:
    """Whether an operation's record is that of a deletion."""
    return bool(record[0] & DELETED)


def meta_of(commit_id: Id, commit: Commit) -> CommitMeta:
    """A commit's metadata as callers see it."""
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
