"""Checks of the numbers in the manifests of a combined table."""

from __future__ import annotations

from collections import Counter
from typing import Any

import fastavro

from nessie_cli.iceberg.builder.values import Document, by_id
from tests.spark.sides import path_of

EXISTING, ADDED, DELETED = range(3)


def records(location: str) -> list[dict[str, Any]]:
    with path_of(location).open("rb") as file:
        return list(fastavro.reader(file))


def check_result(metadata: Document) -> None:
    """Checks the current snapshot of a table, if it is a combined one."""
    version = metadata["format-version"]
    snapshots = by_id(metadata["snapshots"], "snapshot-id")
    snapshot = snapshots.get(metadata["current-snapshot-id"])
    if snapshot is None or "nessie.merge" not in snapshot["summary"]:
        return
    last = snapshot.get("sequence-number", 0)
    assert last == metadata.get("last-sequence-number", 0)
    if version > 1:
        assert last > max(
            (each.get("sequence-number", 0) for each in metadata["snapshots"] if each != snapshot),
            default=0,
        )
    live: list[tuple[int, int, dict[str, Any]]] = []
    next_row_id = 0
    for row in records(snapshot["manifest-list"]):
        entries = records(row["manifest_path"])
        numbers = []
        row_id = row.get("first_row_id")
        for entry in entries:
            file = entry["data_file"]
            if entry["status"] == DELETED:
                assert entry["snapshot_id"] == row["added_snapshot_id"]
                continue
            own = entry.get("sequence_number")
            number = (row.get("sequence_number") or 0) if own is None else own
            assert own is not None or entry["status"] == ADDED or version == 1
            numbers.append(number)
            live.append((row["partition_spec_id"], number, file))
            if version > 2 and not file.get("content"):
                first = file.get("first_row_id")
                if first is None:
                    first = row_id
                    row_id += file["record_count"]
                next_row_id = max(next_row_id, first + file["record_count"])
        counts = Counter(entry["status"] for entry in entries)
        rows = Counter[int]()
        for entry in entries:
            rows[entry["status"]] += entry["data_file"]["record_count"]
        assert [row[f"{n}_files_count"] for n in ("existing", "added", "deleted")] == [
            counts[status] for status in range(3)
        ]
        assert [row[f"{n}_rows_count"] for n in ("existing", "added", "deleted")] == [
            rows[status] for status in range(3)
        ]
        assert row["manifest_length"] == path_of(row["manifest_path"]).stat().st_size
        if version > 1 and numbers:
            assert row["min_sequence_number"] == min(numbers)
    if version > 2:
        assert next_row_id <= metadata["next-row-id"]
    data = Counter(file["file_path"] for _, _, file in live if not file.get("content"))
    assert not data or max(data.values()) == 1, "a path is there twice"
    specs = {file["file_path"]: spec for spec, _, file in live if not file.get("content")}
    vectors = Counter(
        file["referenced_data_file"] for _, _, file in live if file.get("content_offset")
    )
    assert not vectors or max(vectors.values()) == 1, "a file has two deletion vectors"
    assert vectors.keys() <= data.keys()
    numbers_of = {file["file_path"]: number for _, number, file in live if not file.get("content")}
    for spec, number, file in live:
        assert number <= last
        if file.get("content_offset"):
            target = file["referenced_data_file"]
            assert (spec, number >= numbers_of[target]) == (specs[target], True)
    _check_totals(snapshot["summary"], [file for _, _, file in live])


def _check_totals(summary: dict[str, str], files: list[dict[str, Any]]) -> None:
    data, position, equality = (
        [file for file in files if (file.get("content") or 0) == content] for content in range(3)
    )
    for name, value in {
        "data-files": len(data),
        "records": sum(file["record_count"] for file in data),
        "delete-files": len(position) + len(equality),
        "position-deletes": sum(file["record_count"] for file in position),
        "equality-deletes": sum(file["record_count"] for file in equality),
        "files-size": sum(
            file.get("content_size_in_bytes") or file["file_size_in_bytes"] for file in files
        ),
    }.items():
        assert summary.get(f"total-{name}", str(value)) == str(value), name
