"""Creates a commit object: ancestry fields, time, metadata, and its list of operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.kernel import tree
from nessie_cli.kernel.commit_index import terms_of
from nessie_cli.kernel.commits import micros
from nessie_cli.kernel.edit import build
from nessie_cli.kernel.forms import NO_COMMIT, Id, Node, StoredCommit, encode_node
from nessie_cli.kernel.history import jump_of_child
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import CommitMeta
from nessie_cli.model.commits import lower_names

INLINE_OPERATIONS = 16
"""The most operations that a commit contains itself; more get a tree. Part of the format."""


class Stamp(Struct, frozen=True):
    """The committer and the commit time (microseconds since 1970)."""

    committer: str
    time: int


MOST_NAMES = 10_000
"""The most authors and the most properties of a commit. Each read of a log has all of them."""


def check_client_meta(meta: CommitMeta) -> None:
    """Raises `InvalidInput` for metadata that only the repository sets, or that is invalid.

    Invalid are text that is not valid Unicode, and too many authors or properties.
    """
    for names, what in (
        (meta.authors, "authors"),
        (meta.signed_off_by, "people who signed off"),
        (meta.properties, "properties"),
    ):
        if len(names) > MOST_NAMES:
            raise InvalidInput(f"the commit metadata has more than {MOST_NAMES:,} {what}")
    if meta.committer is not None:
        raise _set_by_server("committer")
    if meta.commit_time is not None:
        raise _set_by_server("commit time")
    if meta.hash is not None:
        raise _set_by_server("commit hash")
    if meta.parents:
        raise _set_by_server("parent commit hashes")
    texts = [meta.message, *meta.authors, *meta.signed_off_by]
    for name, values in meta.properties.items():
        texts += name, *values
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        raise InvalidInput("the commit metadata contains text that is not valid Unicode") from None
    if meta.author_time is not None and meta.author_time.tzinfo is None:
        raise InvalidInput(f"author time {meta.author_time} has no time zone")


def _set_by_server(what: str) -> InvalidInput:
    return InvalidInput(f"Cannot set the {what} on the client side. It is set by the server.")


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
            jump=jump_of_child(objects, parents[0]),
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
