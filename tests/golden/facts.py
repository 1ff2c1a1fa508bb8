"""The facts in the golden files: bytes and ids of objects, and all data of a repository."""

from __future__ import annotations

from itertools import chain
from typing import Any

from nessie_cli.kernel import tree
from nessie_cli.kernel.edit import build
from nessie_cli.kernel.forms import (
    NO_COMMIT,
    RECORD_SIZE,
    Kind,
    Node,
    StoredCommit,
    encode_commit,
    encode_key,
    encode_node,
    encode_value,
    object_id,
)
from nessie_cli.kernel.objects import Cache, Objects
from nessie_cli.model import Content, Delete, Operation, Put
from nessie_cli.repository.base import Repository
from tests.golden.story import CONTENTS, KEYS


def record(number: int) -> bytes:
    return b"\x01" + number.to_bytes(RECORD_SIZE - 1, "big")


def stored(kind: Kind, data: bytes) -> dict[str, str]:
    return {"bytes": data.hex(), "id": object_id(kind, data).hex()}


COMMIT = StoredCommit(
    parents=(NO_COMMIT, b"\x01" * 32),
    height=7,
    generation=300,
    jump=b"\x02" * 32,
    root=b"\x03" * 32,
    operations=encode_node(Node(0, (b"a",), record(1))),
    operation_count=1,
    time=1_767_225_600_123_456,
    author_time=-1,
    message="ünï\n🧊",
    committer="c",
    authors=("a", ""),
    signed_off_by=(),
    properties=(("k", ("v", "w")),),
)


def objects() -> dict[str, Any]:
    """Bytes and ids of one object of every shape."""
    leaf = Node(0, (b"a", b"a\x00b", b"b"), record(1) + record(2) + record(3))
    inner = Node(
        1, (b"b", b"\xff"), b"\x01" * 32 + b"\x00\x00\x00\x03" + b"\x02" * 32 + b"\x00\x01\x00\x00"
    )
    return {
        "empty history": NO_COMMIT.hex(),
        "empty tree": tree.EMPTY.hex(),
        "keys": {str(k): encode_key(k).hex() for k in KEYS},
        "values": {
            name: stored(Kind.VALUE, encode_value(content)) for name, content in CONTENTS.items()
        },
        "nodes": {
            "leaf": stored(Kind.NODE, encode_node(leaf)),
            "inner": stored(Kind.NODE, encode_node(inner)),
        },
        "commit": stored(Kind.COMMIT, encode_commit(COMMIT)),
        "trees": {name: shape(keys) for name, keys in TREES.items()},
    }


TREES = {
    "one": [b"a"],
    "hundred": [b"table-%05d" % n for n in range(100)],
    "ten thousand": [b"table-%05d" % n for n in range(10_000)],
    "common prefix": [b"warehouse\x00db\x00" + b"x" * 100 + b"%05d" % n for n in range(3_000)],
    "long keys": [b"%03d" % n + b"y" * 1500 for n in range(200)],
}


def shape(keys: list[bytes]) -> dict[str, Any]:
    """The root and the number of nodes of the tree of these keys."""
    draft = Objects(lambda _: {}, Cache())
    root = build(draft, ((key, record(n)) for n, key in enumerate(keys)))
    return {"root": root.hex(), "nodes": draft.node_writes, "levels": draft.node(root).level + 1}


def _content(content: Content | None) -> Any:
    return content and {"type": content.type_name, "id": content.id, **content.attributes()}


def _operation(operation: Operation) -> list[Any]:
    return (
        ["DELETE", str(operation.key)]
        if isinstance(operation, Delete)
        else ["PUT", str(operation.key), _content(_put(operation).content)]
    )


def _put(operation: Operation) -> Put:
    assert isinstance(operation, Put)
    return operation


def readable(repository: Repository) -> dict[str, Any]:
    """All that a repository answers."""
    names = [r.name for r in repository.references()]
    entries = {
        e.hash: e
        for e in chain.from_iterable(
            repository.log(name, operations=True, all_parents=True) for name in names
        )
    }
    config = repository.config()
    return {
        "references": [[r.type.value, r.name, r.hash] for r in repository.references()],
        "log": {
            hash_: {
                "height": e.height,
                "parents": list(e.meta.parents),
                "message": e.meta.message,
                "authors": list(e.meta.authors),
                "signed off": list(e.meta.signed_off_by),
                "times": [str(e.meta.author_time), str(e.meta.commit_time)],
                "properties": {k: list(v) for k, v in sorted(e.meta.properties.items())},
                "operations": [_operation(o) for o in (e.operations or ())][:12],
            }
            for hash_, e in sorted(entries.items())
        },
        "entries": {
            name: [
                [str(e.key), e.type, e.content_id, e.value_hash, _content(e.content)]
                for e in repository.entries(name, content=True)
            ][::7]
            for name in names
        },
        "reflog": [
            [e.number, e.reference, e.before, e.after, str(e.time), e.operation, e.request_id]
            for e in repository.reflog()
        ],
        "config": [
            config.default_branch,
            str(config.created),
            config.format,
            dict(config.settings),
        ],
    }
