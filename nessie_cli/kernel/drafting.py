"""Making a commit object from a new state: ancestry fields, time, metadata, and the list of its operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.kernel import tree
from nessie_cli.kernel.commits import micros, root_of
from nessie_cli.kernel.edit import build
from nessie_cli.kernel.history import jump_of_child
from nessie_cli.kernel.keylog import marks_of
from nessie_cli.kernel.objects import NO_COMMIT, Commit, Id, Node, Objects, encode_node
from nessie_cli.model import CommitMeta

INLINE_OPERATIONS = 16
"""Up to this many operations stand inside the commit, more in a tree of their own. Part of the format."""


class Stamp(Struct, frozen=True):
    """Who commits and when (microseconds since 1970)."""

    committer: str
    time: int


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


def draft_commit(objects: Objects, parents: Sequence[Id], root: Id, operations: Mapping[bytes, bytes], *, meta: CommitMeta, stamp: Stamp) -> Id:
    """Add a commit with this state and these operations; its time is later than those of all its parents. Returns its id."""
    known = [objects.commit(p) for p in parents if p != NO_COMMIT]
    time = max([stamp.time, *(p.time + 1 for p in known)])
    id_ = objects.add_commit(
        Commit(
            parents=tuple(parents),
            height=1 + (objects.commit(parents[0]).height if parents[0] != NO_COMMIT else 0),
            generation=1 + max((p.generation for p in known), default=0),
            jump=jump_of_child(objects, parents[0]),
            root=root,
            operations=_encode_operations(objects, operations, root if root_of(objects, parents[0]) == tree.EMPTY else None),
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
    objects.marks[id_] = marks_of(operations, parents)
    return id_


def _encode_operations(objects: Objects, operations: Mapping[bytes, bytes], first_state: Id | None) -> bytes:
    """`first_state` is the new state where the one before was empty: the operations that made it are the same map, and need no tree again."""
    if first_state is not None and len(operations) > INLINE_OPERATIONS and tree.count(objects, first_state) == len(operations):
        return first_state
    items = sorted(operations.items())
    if not items:
        return b""
    if len(items) > INLINE_OPERATIONS:
        return build(objects, items)
    return encode_node(Node(0, tuple(key for key, _ in items), b"".join(record for _, record in items)))
