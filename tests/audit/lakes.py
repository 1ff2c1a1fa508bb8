"""A real lake with tables of PyIceberg, each broken in a different and known way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from msgspec import structs
from pyiceberg.table import Table

from nessie_cli.audit.findings import FindingKind as Kind
from nessie_cli.iceberg.metadata import content_of
from nessie_cli.model import (
    CommitMeta,
    Content,
    ContentKey,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    Put,
)
from tests.iceberg.lake import ROWS, Lake, new_store

VIEW = {
    "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
    "format-version": 1,
    "location": "s3://lake/view",
    "schemas": [{"schema-id": 1, "type": "struct", "fields": []}],
    "current-version-id": 2,
    "versions": [
        {
            "version-id": number,
            "timestamp-ms": 1,
            "schema-id": 1,
            "summary": {},
            "default-namespace": [],
            "representations": [],
        }
        for number in (1, 2)
    ],
    "version-log": [],
}


class Wrong(NamedTuple):
    """The expected finding for a key."""

    kind: Kind
    file: str
    message: str


class BrokenLake:
    """One intact table, and broken ones with the names of their faults."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.lake = Lake(new_store(folder), folder, stack)
        self.wrong: dict[str, Wrong] = {}
        catalog = self.lake.catalog()
        catalog.create_namespace("db")

        def table(name: str) -> Table:
            created = catalog.create_table(f"db.{name}", ROWS.schema)
            created.append(ROWS)
            created.append(ROWS)
            return created

        self.sound = table("sound")
        self.document = json.loads(path_of(self.sound.metadata_location).read_text())
        self._break_manifests(table)
        self._break_metadata()
        self._break_ids()

    @property
    def size(self) -> int:
        """The number of contents, with the namespace."""
        return len(list(self.lake.repository.entries(self.lake.branch)))

    # -- one by one -------------------------------------------------------------------------------

    def _break_manifests(self, table: Callable[[str], Table]) -> None:
        lists = {
            name: table(name).current_snapshot()
            for name in ("no_list", "cut_list", "no_manifest", "cut_manifest")
        }
        places = {name: snapshot.manifest_list for name, snapshot in lists.items() if snapshot}
        manifests = {
            name: snapshot.manifests(self.sound.io)[-1].manifest_path
            for name, snapshot in lists.items()
            if snapshot
        }
        path_of(places["no_list"]).unlink()
        self.wrong["no_list"] = Wrong(Kind.MANIFEST_LIST_MISSING, places["no_list"], "no such file")
        cut(path_of(places["cut_list"]))
        self.wrong["cut_list"] = Wrong(
            Kind.MANIFEST_LIST_UNREADABLE, places["cut_list"], "manifest list"
        )
        path_of(manifests["no_manifest"]).unlink()
        self.wrong["no_manifest"] = Wrong(
            Kind.MANIFEST_MISSING, manifests["no_manifest"], "no such file"
        )
        cut(path_of(manifests["cut_manifest"]))
        self.wrong["cut_manifest"] = Wrong(
            Kind.MANIFEST_DAMAGED, manifests["cut_manifest"], "bytes instead of the "
        )

    def _break_metadata(self) -> None:
        text = json.dumps(self.document)
        for name, kind, data, message in (
            ("cut", Kind.METADATA_UNREADABLE, text[: len(text) // 2].encode(), "truncated"),
            ("no_json", Kind.METADATA_UNREADABLE, b"<html>not here</html>", "invalid JSON"),
            ("avro", Kind.METADATA_UNREADABLE, b"Obj\x01", "an Avro file"),
            ("empty", Kind.METADATA_UNREADABLE, b"", "empty"),
            (
                "odd",
                Kind.METADATA_UNREADABLE,
                json.dumps(
                    self.document | {"table-uuid": "odd", "schemas": [7, *self.document["schemas"]]}
                ).encode(),
                "schemas[0] is not an object",
            ),
        ):
            self._put(name, self._content(), Wrong(kind, self._file(name, data), message))
        self._put(
            "no_file",
            self._content(),
            Wrong(
                Kind.METADATA_MISSING,
                str(self.folder / "nowhere.metadata.json"),
                "no such file",
            ),
        )
        view = self._file("view", json.dumps(VIEW).encode())
        self._put(
            "view_as_table",
            self._content(),
            Wrong(Kind.WRONG_TYPE, view, "is the metadata of a view, but the content is a table"),
        )
        delta = DeltaLakeTable(metadata_location_history=(str(self.folder / "no.json"),))
        self._put(
            "delta",
            delta,
            Wrong(Kind.FILE_MISSING, str(self.folder / "no.json"), "no such file"),
        )

    def _break_ids(self) -> None:
        snapshots = [snapshot["snapshot-id"] for snapshot in self.document["snapshots"]]
        for name, kind, changes, message in (
            (
                "no_snapshot",
                Kind.ID_MISSING,
                {"snapshot_id": 77},
                f"has no snapshot-id 77 (the file's current one is {snapshots[-1]})",
            ),
            (
                "old_snapshot",
                Kind.ID_DIFFERS,
                {"snapshot_id": snapshots[0]},
                f"the content has snapshot-id {snapshots[0]}",
            ),
            (
                "no_ids",
                Kind.ID_MISSING,
                {"schema_id": 5, "spec_id": 6, "sort_order_id": 7},
                "no schema-id 5 (the file's current one is 0), no spec-id 6",
            ),
        ):
            file = self._file(name, json.dumps(self.document | {"table-uuid": name}).encode())
            self._put(name, structs.replace(self._content(), **changes), Wrong(kind, file, message))
        view = IcebergView(metadata_location="", version_id=1, schema_id=1)
        file = self._file("view_version", json.dumps(VIEW).encode())
        self._put(
            "view_version",
            view,
            Wrong(
                Kind.ID_DIFFERS, file, "the content has version-id 1 (the file's current one is 2)"
            ),
        )
        copy = self._file("copy", json.dumps(self.document).encode())
        self._put(
            "twin", self._content(), Wrong(Kind.UUID_SHARED, copy, "is also that of db.sound")
        )
        self.wrong["twin"] = self.wrong["twin"]._replace(file="")
        self.wrong["sound"] = Wrong(Kind.UUID_SHARED, "", "is also that of db.twin")

    def _content(self) -> IcebergTable:
        content = content_of(self.document, self.sound.metadata_location)
        assert isinstance(content, IcebergTable)
        return content

    def _file(self, name: str, data: bytes) -> str:
        path = self.folder / f"{name}.metadata.json"
        path.write_bytes(data)
        return str(path)

    def _put(self, name: str, content: Content, wrong: Wrong) -> None:
        given: Any = content
        if isinstance(content, IcebergTable | IcebergView):
            given = structs.replace(content, metadata_location=wrong.file)
        self.lake.repository.commit(
            self.lake.branch, [Put(ContentKey(("db", name)), given)], CommitMeta(name)
        )
        self.wrong[name] = wrong


def path_of(location: str) -> Path:
    return Path(urlsplit(location).path)


def cut(path: Path) -> None:
    """Removes the second half of a file."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


@contextmanager
def broken_lake(folder: Path) -> Iterator[BrokenLake]:
    with ExitStack() as stack:
        yield BrokenLake(folder, stack)
