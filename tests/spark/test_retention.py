"""Our rules of retention and Iceberg's own, on random tables with branches and tags.

`NESSIE_TEST_RETENTION=N` is the number of tables.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nessie_cli.iceberg.builder import table as builder
from nessie_cli.iceberg.builder.document import normalized
from nessie_cli.iceberg.expiration.retention import ExpiryRule, retained
from tests.spark.iceberg import MISSING, RUNTIME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(not RUNTIME.path.exists(), reason=MISSING)
TABLES = int(os.environ.get("NESSIE_TEST_RETENTION", "150"))
HOUR = 3_600_000
AGES = range(1, 20)
"""In hours. Limits lie half an hour between them, because Iceberg has a time of its own."""


def random_table(rng: random.Random, location: Path, now: int) -> dict[str, Any]:
    """Returns metadata with lines of snapshots, branches and tags."""
    column = {"id": 1, "name": "id", "required": False, "type": "long"}
    schema = {"type": "struct", "schema-id": 0, "fields": [column]}
    properties = {"gc.enabled": "true"}
    for name, value in (
        ("max-snapshot-age-ms", rng.choice(AGES) * HOUR + HOUR // 2),
        ("min-snapshots-to-keep", rng.randint(1, 4)),
        ("max-ref-age-ms", rng.choice(AGES) * HOUR + HOUR // 2),
    ):
        if rng.random() < 0.3:
            properties[f"history.expire.{name}"] = str(value)
    request = {"schema": schema, "properties": properties}
    document = builder.new_table(request, str(location), now - 30 * HOUR)
    ids = list(range(1, rng.randint(2, 12)))
    snapshots: list[dict[str, Any]] = []
    for id_ in ids:
        parent = rng.choice([id_ - 1, id_ - 1, id_ - 1, rng.choice(ids)])
        snapshots.append(
            {
                "snapshot-id": id_,
                "sequence-number": id_,
                "timestamp-ms": now - rng.choice(AGES) * HOUR,
                "manifest-list": f"{location}/metadata/{id_}.avro",
                "summary": {"operation": "append"},
                "schema-id": 0,
                **({"parent-snapshot-id": parent} if 0 < parent < id_ else {}),
            }
        )
    refs = {"main": reference(rng, "branch", rng.choice(ids))}
    for number in range(rng.randint(0, 4)):
        refs[f"r{number}"] = reference(rng, rng.choice(["branch", "tag"]), rng.choice(ids))
    current = refs["main"]["snapshot-id"]
    return document | {
        "snapshot-log": [{"timestamp-ms": now, "snapshot-id": current}],
        "snapshots": snapshots,
        "refs": refs,
        "current-snapshot-id": current,
        "last-sequence-number": len(ids),
        "last-updated-ms": now,
    }


def reference(rng: random.Random, kind: str, id_: int) -> dict[str, Any]:
    ref: dict[str, Any] = {"snapshot-id": id_, "type": kind}
    if rng.random() < 0.4:
        ref["max-ref-age-ms"] = rng.choice(AGES) * HOUR + HOUR // 2
    if kind == "branch" and rng.random() < 0.4:
        ref["max-snapshot-age-ms"] = rng.choice(AGES) * HOUR + HOUR // 2
    if kind == "branch" and rng.random() < 0.4:
        ref["min-snapshots-to-keep"] = rng.randint(1, 4)
    return ref


def test_the_rules_are_those_of_icebergs_library(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(5)
    java: Any = spark._jvm
    tables = java.org.apache.iceberg.hadoop.HadoopTables(
        spark._jsparkSession.sessionState().newHadoopConf()  # type: ignore[union-attr]
    )
    kinds = set()
    for number in range(TABLES):
        now = java.System.currentTimeMillis()
        location = tmp_path / str(number)
        document = random_table(rng, location, now)
        (location / "metadata").mkdir(parents=True)
        (location / "metadata" / "v1.metadata.json").write_text(json.dumps(document))
        older_than = None
        keep_last = rng.choice([None, None, 1, 2, 5])
        expiry = tables.load(str(location)).expireSnapshots()
        if rng.random() < 0.6:
            older_than = now - rng.choice(AGES) * HOUR - HOUR // 2
            expiry = expiry.expireOlderThan(older_than)
        if keep_last is not None:
            expiry = expiry.retainLast(keep_last)
        removed = {each.snapshotId() for each in expiry.apply()}
        ours = retained(normalized(document), ExpiryRule(older_than, keep_last), now)
        ids = {each["snapshot-id"] for each in document["snapshots"]}
        assert ids - ours.snapshots == removed, document
        kinds.add((bool(removed), bool(ours.removed_refs)))
    assert len(kinds) == 4
