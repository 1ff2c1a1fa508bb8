"""Tables that other programs made to keep a server busy are refused."""

from __future__ import annotations

import gc
from random import Random
from typing import Any

import pytest
from pyiceberg.types import DecimalType

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.avro import OF_MERGES
from nessie_cli.iceberg.builder.table import new_table
from nessie_cli.iceberg.combination.bounds import value_range
from nessie_cli.iceberg.combination.definitions import merge_definitions
from nessie_cli.iceberg.combination.engines import LocalEngine
from nessie_cli.iceberg.combination.reading import ManifestReader, line_of
from nessie_cli.iceberg.combination.states import FileContent, Identity, TableFile
from tests.iceberg.test_avro import container, deflated, number
from tests.server.longest_call import ATTEMPTS, MOST_SECONDS, LongestCall


def snapshot(id_: int, parent: int) -> dict[str, Any]:
    return {"snapshot-id": id_, "parent-snapshot-id": parent}


def test_snapshots_that_are_their_own_ancestors_are_listed_once() -> None:
    """A client can commit them; a merge would take all memory."""
    snapshots = [snapshot(1, 2), snapshot(2, 3), snapshot(3, 1), snapshot(4, 4)]
    for current, line in ((1, [1, 2, 3]), (4, [4]), (5, [])):
        document = {"current-snapshot-id": current, "snapshots": snapshots}
        assert line_of(document) == line


def manifest(number_: int, size: int) -> bytes:
    """Returns a small file with entries of long paths."""
    file = {
        "type": "record",
        "name": "file",
        "fields": [
            {"name": "file_path", "type": "string"},
            {"name": "record_count", "type": "long"},
            {"name": "partition", "type": {"type": "record", "name": "p", "fields": []}},
        ],
    }
    fields = [{"name": "status", "type": "int"}, {"name": "data_file", "type": file}]
    row = number(1) + number(size) + b"%04d" % number_ + b"a" * (size - 4) + number(1)
    schema = {"type": "record", "name": "entry", "fields": fields}
    return container(schema, (10, deflated(row * 10)))


def test_small_manifests_with_large_entries_do_not_fill_the_memory() -> None:
    files = {f"m{place}": manifest(place, 1 << 18) for place in range(4)}
    assert sum(map(len, files.values())) < 1 << 16
    listed = [{"manifest_path": path, "added_snapshot_id": 1} for path in files]
    engine = LocalEngine(files.__getitem__)
    reader = ManifestReader(files.__getitem__, engine, frozenset(), OF_MERGES)
    assert len(list(reader.entries(listed))) == 40
    small = OF_MERGES._replace(memory=8 << 20)
    reader = ManifestReader(files.__getitem__, engine, frozenset(), small)
    with pytest.raises(InvalidInput, match="take more than 8 MiB of memory"):
        list(reader.entries(listed))


@pytest.mark.parametrize("limit", ["rows", "unpacked", "row", "file"])
def test_a_large_manifest_is_not_called_damaged(limit: str) -> None:
    data = manifest(1, 1 << 20)
    listed = [{"manifest_path": "m", "added_snapshot_id": 1}]
    limits = OF_MERGES._replace(**{limit: 5 if limit == "rows" else 1 << 19})
    engine = LocalEngine(lambda _: data)
    reader = ManifestReader(lambda _: data, engine, frozenset(), limits)
    with pytest.raises(InvalidInput, match="the manifest m is too large: ") as error:
        list(reader.entries(listed))
    assert error.value.hint == "rewrite the manifests, or merge with access to the files"


def test_bounds_of_decimals_with_any_number_of_digits_are_unknown() -> None:
    """The time that a conversion takes grows with the square of the number of digits."""
    for size, is_known in ((16, True), (17, False), (2 << 20, False)):
        row = {
            name: [{"key": 3, "value": bytes(size)}] for name in ("lower_bounds", "upper_bounds")
        }
        file = TableFile(
            Identity("a", None, None), FileContent.DATA, 0, (), 1, 0, 0, 0, row, "m", None
        )
        assert (value_range(file, 3, DecimalType(38, 2)) is not None) is is_known


def test_definitions_of_many_references_and_properties_merge_by_short_calls() -> None:
    random = Random(1)
    names = [f"{random.randrange(1 << 60):x}" for _ in range(150_000)]
    base = new_table({"schema": {"type": "struct", "fields": []}}, "s3://lake/t", 0)
    refs = {name: {"snapshot-id": 1, "type": "tag"} for name in names}
    keys = [{"key-id": name} for name in names]
    theirs = {**base, "refs": refs, "properties": dict.fromkeys(names, ""), "encryption-keys": keys}
    longest: list[float] = []
    gc.disable()
    try:
        while len(longest) < ATTEMPTS and not (longest and min(longest) < MOST_SECONDS):
            merge = None
            with LongestCall() as call:
                merge = merge_definitions(base, base, theirs)
            longest.append(call.seconds)
    finally:
        gc.enable()
    assert merge is not None
    tags = [conflict.name for conflict in merge.conflicts if conflict.kind == "tag"]
    assert tags == sorted(names)
    assert min(longest) < MOST_SECONDS
