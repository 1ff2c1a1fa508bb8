"""Folders of tables, written by hand: the metadata files, and who precedes whom."""

from __future__ import annotations

import gzip
import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TEMPLATE = json.loads((Path(__file__).parents[1] / "manual/table-metadata.json").read_text())
SNAPSHOT = TEMPLATE["snapshots"][0]
NO_SNAPSHOT: dict[str, Any] = {"snapshots": [], "current-snapshot-id": -1}


class TableFolder:
    """The folder of a table, with a manifest list that exists."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.metadata = folder / "metadata"
        self.metadata.mkdir(parents=True, exist_ok=True)
        self.uuid = str(uuid.uuid4())
        self.list = self.metadata / "snap-2.avro"
        self.list.touch()

    def write(self, name: str, before: Sequence[str] = (), **changed: Any) -> str:
        """Writes a metadata file whose log has the files `before`. Returns its name."""
        document = TEMPLATE | {
            "table-uuid": self.uuid,
            "location": str(self.folder),
            "snapshots": [SNAPSHOT | {"manifest-list": str(self.list)}],
            "metadata-log": [
                {"metadata-file": str(self.metadata / file), "timestamp-ms": number}
                for number, file in enumerate(before, 1767182400000)
            ],
        }
        document |= {key.replace("_", "-"): value for key, value in changed.items()}
        text = json.dumps(document).encode()
        (self.metadata / name).write_bytes(gzip.compress(text) if ".gz" in name else text)
        return name

    def chain(self, names: Sequence[str], longest_log: int = 100) -> None:
        """Writes files that precede each other."""
        for number, name in enumerate(names):
            self.write(name, names[max(0, number - longest_log) : number])

    def hint(self, text: str) -> None:
        """Writes `version-hint.text`."""
        (self.metadata / "version-hint.text").write_text(text)

    def view(self, name: str) -> str:
        """Writes the metadata file of a view."""
        version = {
            "version-id": 1,
            "timestamp-ms": 1767182400000,
            "schema-id": 0,
            "summary": {},
            "default-namespace": ["db"],
            "representations": [{"type": "sql", "sql": "SELECT 1 AS id", "dialect": "spark"}],
        }
        document = {
            "view-uuid": self.uuid,
            "format-version": 1,
            "location": str(self.folder),
            "schemas": TEMPLATE["schemas"],
            "current-version-id": 1,
            "versions": [version],
            "version-log": [{"version-id": 1, "timestamp-ms": 1767182400000}],
            "properties": {},
        }
        (self.metadata / name).write_text(json.dumps(document))
        return name


def numbered(number: int) -> str:
    """Returns the name of a metadata file as catalogs write it."""
    return f"{number:05}-{uuid.uuid4()}.metadata.json"


def versions(count: int) -> list[str]:
    """Returns the names of metadata files as Iceberg's Hadoop catalog writes them."""
    return [f"v{number}.metadata.json" for number in range(1, count + 1)]
