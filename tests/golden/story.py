"""A fixed history of a repository.

Its clock and random bytes are fixed, so its hashes depend only on the format.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime

from nessie_cli.model import (
    UDF,
    CommitMeta,
    Content,
    ContentKey,
    Delete,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    MergeBehavior,
    Namespace,
    Operation,
    Put,
    ReferenceType,
    UnknownContent,
)
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import MergeOptions

BEGIN = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z in microseconds."""


def clock(start: int = BEGIN) -> Callable[[], int]:
    """One millisecond passes from call to call."""
    ticks = itertools.count(start, 1_000)
    return lambda: next(ticks)


def randomness(start: int = 0) -> Callable[[int], bytes]:
    """Counts instead."""
    numbers = itertools.count(start)
    return lambda size: next(numbers).to_bytes(size, "big")


def key(text: str) -> ContentKey:
    return ContentKey.parse(text)


CONTENTS: dict[str, Content] = {
    "table": IcebergTable(
        metadata_location="s3://lake/t/00001.metadata.json",
        snapshot_id=4358109269,
        schema_id=1,
        spec_id=2,
        sort_order_id=3,
    ),
    "empty table": IcebergTable(metadata_location="file:/ünï/漢字 🧊.json"),
    "view": IcebergView(
        metadata_location="s3://lake/v.json",
        version_id=2**40,
        schema_id=1,
        sql_text='select "a"\n',
        dialect="spark",
    ),
    "view without text": IcebergView(
        metadata_location="s3://lake/v.json", version_id=-1, schema_id=0
    ),
    "delta": DeltaLakeTable(
        metadata_location_history=("a", "b"),
        checkpoint_location_history=("c",),
        last_checkpoint="c",
    ),
    "empty delta": DeltaLakeTable(),
    "namespace": Namespace(
        elements=("db", "a.b"), properties={"owner": "ann", "ü": "", "a": "/\\"}
    ),
    "empty namespace": Namespace(elements=()),
    "udf": UDF(sql_text="x", dialect="d", version_id="1", signature_id="s", metadata_location="m"),
    "empty udf": UDF(),
    "foreign": UnknownContent(
        foreign_type="PAIMON_TABLE",
        foreign_attributes={"z": [1, {"y": None}], "a": 1.5, "t": True, "ü": "🧊", "big": 2**70},
    ),
}

KEYS = [
    key(text)
    for text in ("a", "a.b", 'a."b.c"', '" "', "ünï.漢字.🧊", "x" * 500, ".".join("e" * 20), '""""')
]


def tell(repository: Repository) -> dict[str, str]:
    """Everything that writes objects, once; the hash after each step."""
    hashes: dict[str, str] = {}

    def commit(
        step: str, branch: str, *operations: Operation, meta: CommitMeta | None = None
    ) -> None:
        hashes[step] = repository.commit(
            branch, operations, meta or CommitMeta(step)
        ).reference.hash

    full = CommitMeta(
        "every type\n\nwith all that can be said",
        authors=("ann <ann@example.org>", "bob"),
        signed_off_by=("carol",),
        author_time=datetime(2021, 3, 4, 5, 6, 7, 890_123, UTC),
        properties={"z": ("1", "2"), "ü": ("",)},
    )
    commit(
        "every type",
        "main",
        *(Put(key(name.replace(" ", "-")), content) for name, content in CONTENTS.items()),
        meta=full,
    )
    commit(
        "a namespace and many tables",
        "main",
        Put(key("db"), Namespace(elements=("db",))),
        *tables(range(300)),
    )
    for branch in ("dev", "side"):
        repository.create_reference(ReferenceType.BRANCH, branch, repository.reference("main").hash)
    changed = [repository.content("dev", key(f"db.t{n:03}")) for n in (7, 150)]
    commit(
        "updates",
        "dev",
        *(
            Put(key(f"db.t{n:03}"), table(1000 + n).with_id(old.id))
            for n, old in zip((7, 150), changed, strict=True)
        ),
    )
    commit(
        "a rename",
        "dev",
        Delete(key("table")),
        Put(key("moved"), repository.content("dev", key("table"))),
    )
    commit(
        "a new type under an old name", "dev", Delete(key("udf")), Put(key("udf"), CONTENTS["view"])
    )
    commit("deletes", "main", *(Delete(key(f"db.t{n:03}")) for n in range(20, 60)))
    hashes["a merge"] = (
        repository.merge(
            "main", "dev", MergeOptions(default_behavior=MergeBehavior.NORMAL)
        ).resultant_hash
        or ""
    )
    line = [entry.hash for entry in repository.log("dev")][:2]
    hashes["a transplant"] = repository.transplant("side", line[1:]).resultant_hash or ""
    repository.create_reference(ReferenceType.TAG, "v1", hashes["a rename"])
    repository.assign_reference("side", hashes["updates"], expected_hash=hashes["a transplant"])
    repository.create_reference(ReferenceType.BRANCH, "gone", hashes["updates"])
    repository.delete_reference("gone", expected_hash=hashes["updates"])
    repository.put_setting("retention", "30 days")
    return hashes


def table(number: int) -> Content:
    return IcebergTable(metadata_location=f"s3://lake/{number}.metadata.json", snapshot_id=number)


def tables(numbers: range) -> list[Operation]:
    return [Put(key(f"db.t{n:03}"), table(n)) for n in numbers]


def one_more(repository: Repository) -> str:
    """What the current program writes on top of an old store."""
    old = repository.content("main", key("db.t007"))
    return repository.commit(
        "main",
        [Put(key("db.t007"), table(77).with_id(old.id)), Put(key("new"), table(78))],
        CommitMeta("later"),
    ).reference.hash
