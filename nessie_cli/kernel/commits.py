"""Commits: reads a stored one, creates one, and finds those that changed a key.

The commit index finds the commits that changed a key, and merges, without a walk. A commit is
stored with one index term for each key that it has an operation on, 8 bytes of the key's hash. A
term is a hint: the commit that it leads to is checked. A commit of more than `INDEXED_OPERATIONS`
operations has one term for all of them instead. A commit with merge parents has one more term.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from heapq import merge
from itertools import islice
from typing import Any

from msgspec import Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.kernel import tree
from nessie_cli.kernel.edit import build
from nessie_cli.kernel.forms import (
    DELETED,
    NO_COMMIT,
    Id,
    Node,
    StoredCommit,
    decode_key,
    decode_node,
    encode_key,
    encode_node,
    jump_height,
)
from nessie_cli.kernel.history import ancestor_at
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import CommitMeta, Content, ContentKey
from nessie_cli.model.commits import lower_names

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


def contents_at(
    objects: Objects, commit: Id, keys: Iterable[ContentKey]
) -> Iterator[tuple[ContentKey, Content]]:
    """Yields the contents of those keys that exist at a commit, ascending by key."""
    state = tree.get(objects, root_of(objects, commit), [encode_key(key) for key in keys])
    records = sorted(state.items())
    contents = objects.each_content([record for _, record in records])
    for (key, _), content in zip(records, contents, strict=True):
        yield decode_key(key), content


def operations_of(
    objects: Objects, commit: StoredCommit, most: int | None = None
) -> list[tuple[bytes, bytes]]:
    """Returns a commit's operations: key and record, which has the flag `DELETED` if deleted.

    With `most`, returns only the first ones of many, without reading the others.
    """
    stored = commit.operations
    if not stored:
        return []
    if len(stored) == len(NO_COMMIT):
        return list(islice(tree.scan(objects, stored), most))
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


# -- creating --------------------------------------------------------------------------------------

INLINE_OPERATIONS = 16
"""The most operations that a commit contains itself; more get a tree. Part of the format."""


class Stamp(Struct, frozen=True):
    """The committer and the commit time (microseconds since 1970)."""

    committer: str
    time: int


MOST_NAMES = 10_000
"""The most authors and the most properties of a commit. Each read of a log has all of them."""
MOST_BYTES = 1 << 20
"""The most bytes of text in the metadata of a commit."""


def check_client_meta(meta: CommitMeta) -> None:
    """Raises `InvalidInput` for metadata that only the repository sets, or that is invalid.

    Invalid are text that is not valid Unicode, too much text, and too many authors or properties.
    """
    for names, kind in (
        (meta.authors, "authors"),
        (meta.signed_off_by, "people who signed off"),
        (meta.properties, "properties"),
    ):
        if len(names) > MOST_NAMES:
            raise InvalidInput(f"the commit metadata has more than {MOST_NAMES:,} {kind}")
    if meta.committer is not None:
        raise _set_by_server("committer")
    if meta.commit_time is not None:
        raise _set_by_server("commit time")
    if meta.hash is not None:
        raise _set_by_server("commit hash")
    if meta.parents:
        raise _set_by_server("parent commit hashes")
    try:
        text = "".join(meta.texts).encode()
    except UnicodeEncodeError:
        raise InvalidInput("the commit metadata contains text that is not valid Unicode") from None
    if len(text) > MOST_BYTES:
        raise InvalidInput(f"the commit metadata has more than {MOST_BYTES:,} bytes of text")
    if meta.author_time is not None and meta.author_time.tzinfo is None:
        raise InvalidInput(f"author time {meta.author_time} has no time zone")


def _set_by_server(field: str) -> InvalidInput:
    return InvalidInput(f"Cannot set the {field} on the client side. It is set by the server.")


def draft_commit(
    objects: Objects,
    parents: Sequence[Id],
    root: Id,
    operations: Mapping[bytes, bytes],
    *,
    meta: CommitMeta,
    stamp: Stamp,
) -> Id:
    """Adds a commit with this state and these operations. Returns its id.

    Its time is later than the times of all its parents.
    """
    existing = [objects.commit(parent) for parent in parents if parent != NO_COMMIT]
    first = existing[0] if parents[0] != NO_COMMIT else None
    time, generation = stamp.time, 1
    for parent in existing:
        time = max(time, parent.time + 1)
        generation = max(generation, parent.generation + 1)
    id_ = objects.add_commit(
        StoredCommit(
            parents=tuple(parents),
            height=first.height + 1 if first else 1,
            generation=generation,
            jump=_jump_of_child(objects, parents[0]),
            root=root,
            operations=_encode_operations(
                objects, operations, root if first is None or first.root == tree.EMPTY else None
            ),
            operation_count=len(operations),
            time=time,
            author_time=micros(meta.author_time) if meta.author_time else time,
            message=meta.message,
            committer=stamp.committer,
            authors=tuple(meta.authors) or (stamp.committer,),
            signed_off_by=tuple(meta.signed_off_by),
            properties=tuple(sorted(lower_names(meta.properties).items()))
            if meta.properties
            else (),
        )
    )
    objects.index_terms[id_] = terms_of(operations, parents)
    return id_


def _jump_of_child(objects: Objects, parent: Id) -> Id:
    """Returns the jump pointer of a commit whose first parent is `parent`. Reads two commits."""
    if parent == NO_COMMIT:
        return NO_COMMIT
    commit = objects.commit(parent)
    if jump_height(commit.height + 1) == commit.height:
        return parent
    return NO_COMMIT if commit.jump == NO_COMMIT else objects.commit(commit.jump).jump


def _encode_operations(
    objects: Objects, operations: Mapping[bytes, bytes], first_state: Id | None
) -> bytes:
    """Encodes operations for a commit.

    `first_state` is the new state if the one before was empty. If the operations are the same map,
    they share its tree.
    """
    if (
        first_state is not None
        and len(operations) > INLINE_OPERATIONS
        and tree.count(objects, first_state) == len(operations)
    ):
        return first_state
    items = sorted(operations.items())
    if not items:
        return b""
    if len(items) > INLINE_OPERATIONS:
        return build(objects, items)
    keys, records = zip(*items, strict=True)
    return encode_node(Node(0, keys, b"".join(records)))


# -- the index -------------------------------------------------------------------------------------

IndexLookup = Callable[[bytes, int | None, int], list[tuple[int, Id]]]
"""Looks up a term: (term, numbers below this or None, limit) -> commits, last written first."""

INDEXED_OPERATIONS = 1000
LARGE_COMMIT = bytes(8)
"""The term of a commit of more operations than `INDEXED_OPERATIONS`."""

MERGE_COMMIT = bytes(7) + b"\x01"
"""The term of a commit with merge parents."""

_PAGE, _LONGEST_PAGE = 16, 1024
_FIRST = 2
"""The size of the first page: most callers need only the last commit of a key."""


@cache
def _hasher() -> Any:
    try:
        # hashlib loads OpenSSL, which a command that only reads does not need.
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b

    return blake2b(digest_size=8, person=b"nessie key")


def term_of(key: bytes) -> bytes:
    """Returns the term of commits with an operation on a key."""
    hasher = _hasher().copy()
    hasher.update(key)
    digest: bytes = hasher.digest()
    return digest


def terms_of(keys: Collection[bytes], parents: Sequence[Id]) -> tuple[bytes, ...]:
    """Returns the terms of a commit with operations on these keys and with these parents."""
    of_keys = (LARGE_COMMIT,) if len(keys) > INDEXED_OPERATIONS else tuple(map(term_of, keys))
    return (*of_keys, MERGE_COMMIT) if len(parents) > 1 else of_keys


def commits_of_key(
    objects: Objects, lookup: IndexLookup, head: Id, key: bytes
) -> Iterator[tuple[Id, StoredCommit]]:
    """Yields the commits with an operation on a key, from `head` on, newest first.

    O(log commits) for each commit that has the term, including those elsewhere in history.
    """
    candidates = merge(
        *(indexed(lookup, term, _FIRST) for term in (term_of(key), LARGE_COMMIT)), reverse=True
    )
    for _, id_ in candidates:
        if head == NO_COMMIT:
            return
        height = objects.commit(head).height
        commit = objects.find_commit(id_)
        if (
            commit is None
            or commit.height > height
            or ancestor_at(objects, head, commit.height) != id_
        ):
            continue
        # Ancestors of a commit are always written before it, so the search only goes down.
        head = id_
        if key in operations_on(objects, commit, [key]):
            yield id_, commit


def indexed(lookup: IndexLookup, term: bytes, size: int = _PAGE) -> Iterator[tuple[int, Id]]:
    """Yields the commits with a term, each with its number, last written first.

    Reads pages of growing size, beginning with `size`.
    """
    before = None
    while page := lookup(term, before, size):
        yield from page
        before, size = page[-1][0], min(2 * size, _LONGEST_PAGE)
