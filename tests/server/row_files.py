"""Tables whose metadata names a file elsewhere, as a client could write it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import fastavro


class MovedTable(NamedTuple):
    """A metadata file, and the names of the files that were moved."""

    metadata: str
    names: list[str]


def move_out(metadata: str, kind: str, outside: Path) -> MovedTable:
    """Copies a table's metadata so that it names a file in another folder.

    `kind` is `list` or `manifest`, `data` for a data file, or `link` for a link to one.
    """
    outside.mkdir(parents=True, exist_ok=True)
    place = path_of(metadata)
    document = json.loads(place.read_bytes())
    current = document["current-snapshot-id"]
    [snapshot] = [s for s in document["snapshots"] if s["snapshot-id"] == current]
    manifests = path_of(snapshot["manifest-list"])
    if kind == "list":
        moved = [copied(manifests, outside)]
        snapshot["manifest-list"] = str(moved[0])
    else:
        moved = []
        rows = read(manifests)
        for row in rows.records:
            manifest = path_of(row["manifest_path"])
            if kind == "manifest":
                moved.append(copied(manifest, outside))
                row["manifest_path"] = str(moved[-1])
                continue
            entries = read(manifest)
            for entry in entries.records:
                data = path_of(entry["data_file"]["file_path"])
                moved.append(copied(data, outside))
                if kind == "link":
                    link = data.with_name(f"link-{data.name}")
                    link.unlink(missing_ok=True)
                    link.symlink_to(moved[-1])
                    moved[-1] = link
                entry["data_file"]["file_path"] = str(moved[-1])
            row["manifest_path"] = str(entries.write(manifest.with_name(f"new-{manifest.name}")))
        snapshot["manifest-list"] = str(rows.write(manifests.with_name(f"new-{manifests.name}")))
    new = place.with_name("00099-moved.metadata.json")
    new.write_text(json.dumps(document))
    return MovedTable(f"file://{new}", [file.name for file in moved])


def path_of(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def copied(file: Path, folder: Path) -> Path:
    return Path(shutil.copy(file, folder))


class Records(NamedTuple):
    """The records of an Avro file."""

    records: list[Any]
    schema: Any
    metadata: dict[str, str]

    def write(self, path: Path) -> Path:
        own = {k: v for k, v in self.metadata.items() if not k.startswith("avro.")}
        with path.open("wb") as file:
            fastavro.writer(file, self.schema, self.records, metadata=own)
        return path


def read(path: Path) -> Records:
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        return Records(list(reader), reader.writer_schema, dict(reader.metadata))
