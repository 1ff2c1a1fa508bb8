"""A server with a warehouse in a folder, and an Iceberg REST client for one reference."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nessie_cli import connect
from nessie_cli.iceberg.warehouses.configuration import from_options
from nessie_cli.iceberg.warehouses.warehouse import Warehouses
from nessie_cli.model import ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from tests.server.client import Answer, Client
from tests.server.serving import serving

SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "name", "type": "string", "required": False},
    ],
}
VIEW_VERSION = {
    "version-id": 1,
    "timestamp-ms": 1_700_000_000_000,
    "schema-id": 0,
    "summary": {"engine": "test"},
    "default-namespace": ["db"],
    "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
}


def segment(*levels: str) -> str:
    """Returns a namespace or name as a segment of a path."""
    return quote("\x1f".join(levels), safe="")


class IcebergClient:
    """Requests below one prefix."""

    def __init__(self, client: Client, prefix: str = "main", front: str = "") -> None:
        self.client = client
        self.prefix = prefix
        self._base = f"/iceberg{front}/v1/{prefix}"

    def on(self, prefix: str) -> IcebergClient:
        return IcebergClient(self.client, prefix)

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.send(method, self._base + path, body, named)

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, **headers)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        return self.send("POST", path, body, **headers)

    # -- common requests --

    def namespace(self, *levels: str, **properties: str) -> Answer:
        return self.post("/namespaces", {"namespace": levels, "properties": properties})

    def create(self, namespace: str, name: str, **more: Any) -> Answer:
        body = {"name": name, "schema": SCHEMA, **more}
        return self.post(f"/namespaces/{namespace}/tables", body)

    def load(self, namespace: str, name: str, query: str = "", **headers: str) -> Answer:
        return self.get(f"/namespaces/{namespace}/tables/{name}{query}", **headers)

    def commit(
        self, namespace: str, name: str, requirements: Any, updates: Any, **headers: str
    ) -> Answer:
        body = {"requirements": requirements, "updates": updates}
        return self.post(f"/namespaces/{namespace}/tables/{name}", body, **headers)

    def set_properties(self, namespace: str, name: str, **headers: Any) -> Answer:
        properties = headers.pop("properties", {"a": "b"})
        updates = [{"action": "set-properties", "updates": properties}]
        return self.commit(namespace, name, [], updates, **headers)

    def append(
        self, namespace: str, name: str, snapshot: int, on: int | None, sequence: int = 1
    ) -> Answer:
        """Appends a snapshot to the main branch of a table whose current snapshot is `on`."""
        requirement = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": on}
        return self.commit(namespace, name, [requirement], appending(snapshot, on, sequence))

    def view(self, namespace: str, name: str, **more: Any) -> Answer:
        body = {
            "name": name,
            "schema": SCHEMA,
            "view-version": VIEW_VERSION,
            "properties": {},
            **more,
        }
        return self.post(f"/namespaces/{namespace}/views", body)


def appending(snapshot: int, parent: int | None, sequence: int = 1) -> list[dict[str, Any]]:
    """Returns the updates of an append."""
    added: dict[str, Any] = {
        "snapshot-id": snapshot,
        "sequence-number": sequence,
        "timestamp-ms": 1_800_000_000_000 + snapshot,
        "manifest-list": f"file:/nowhere/{snapshot}.avro",
        "summary": {"operation": "append", "added-records": "3"},
        "schema-id": 0,
    }
    if parent is not None:
        added["parent-snapshot-id"] = parent
    main = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch"}
    return [{"action": "add-snapshot", "snapshot": added}, {**main, "snapshot-id": snapshot}]


class Lake:
    """A running server with its warehouse."""

    def __init__(self, url: str, folder: Path, repository: Repository) -> None:
        self.url = url
        self.folder = folder
        self.repository = repository
        self.client = Client(url)
        self.main = IcebergClient(self.client)

    def files(self) -> set[Path]:
        """Returns all files of the warehouse."""
        return {path for path in self.folder.rglob("*") if path.is_file()}

    def branch(self, name: str) -> IcebergClient:
        """Creates a branch from main."""
        head = self.repository.reference("main").hash
        self.repository.create_reference(ReferenceType.BRANCH, name, head)
        return IcebergClient(self.client, quote(name, safe=""))

    def another_client(self) -> IcebergClient:
        return IcebergClient(Client(self.url))


def staged_updates(metadata: Any) -> list[Any]:
    """Returns the updates that create a staged table."""
    return [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "add-schema", "schema": metadata["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": metadata["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
    ]


@contextmanager
def lake(folder: Path, warehouses: Warehouses | None = None, **parts: Any) -> Iterator[Lake]:
    """Yields a server over a new repository with a warehouse in a folder."""
    with connect("memory:") as repository:
        found = warehouses or from_options([str(folder)])
        app = application(repository, Parts(warehouses=found, **parts))
        with serving(app=app) as url:
            made = Lake(url, folder, repository)
            try:
                yield made
            finally:
                made.client.close()


def error_of(answer: Answer) -> tuple[int, str]:
    """Returns the status and type of an error; checks that it has the specification's shape."""
    error = answer.body["error"]
    assert error["code"] == answer.status
    assert isinstance(error["message"], str)
    assert error["message"]
    return answer.status, error["type"]
