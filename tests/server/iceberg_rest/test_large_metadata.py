"""Tables with large metadata files: nothing else waits, and memory is bounded."""

from __future__ import annotations

import gc
import json
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from nessie_cli import create
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put
from nessie_cli.model.contents import MOST_PROPERTIES
from nessie_cli.server.iceberg.call import MOST_METADATA, IcebergCall
from tests.server.client import Answer, Client
from tests.server.iceberg_rest.lake import SCHEMA, IcebergClient, Lake, appending, error_of, lake
from tests.server.longest_call import ATTEMPTS, MOST_SECONDS, LongestCall
from tests.server.processes import started
from tests.server.waits import PATIENCE, SOON, shortest, worst_wait

TABLES = "/namespaces/db/tables"
REMOVE = {"action": "remove-properties", "removals": ["q0000001"]}


def large_file(warehouse: Path, name: str, **members: Any) -> str:
    """Writes the metadata file of a table with more members; returns its location."""
    folder = warehouse / name
    (folder / "metadata").mkdir(parents=True)
    schema = {**SCHEMA, "schema-id": 0}
    document = {
        "format-version": 2,
        "table-uuid": "0196a4a2-6f6b-7d2e-9f66-2f1f0a1b2c3d",
        "location": f"file://{folder}",
        "last-sequence-number": 0,
        "last-updated-ms": 1_700_000_000_000,
        "last-column-id": 2,
        "schemas": [schema],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        **members,
    }
    file = folder / "metadata" / "00001-x.metadata.json"
    file.write_text(json.dumps(document))
    return f"file://{file}"


def register(main: IcebergClient, name: str, location: str) -> Answer:
    body = {"name": name, "metadata-location": location}
    return main.post("/namespaces/db/register", body)


def snapshots(count: int) -> dict[str, Any]:
    """Returns the members of a table with many snapshots, of which the last one is current."""
    listed = [
        {
            "snapshot-id": number,
            "sequence-number": number,
            "timestamp-ms": 1_700_000_000_000 + number,
            "manifest-list": f"file:/nowhere/snap-{number}-1-5a1f2b3c.avro",
            "summary": {"operation": "append", **{f"total-{n}": f"{number}" for n in range(12)}},
            "schema-id": 0,
        }
        for number in range(1, count + 1)
    ]
    ref = {"main": {"snapshot-id": count, "type": "branch"}}
    log = [
        {"snapshot-id": one["snapshot-id"], "timestamp-ms": one["timestamp-ms"]} for one in listed
    ]
    current = {"current-snapshot-id": count, "refs": ref, "last-sequence-number": count}
    return {"snapshots": listed, "snapshot-log": log, **current}


def properties(count: int) -> dict[str, Any]:
    return {"properties": {f"q{number:07}": "v" for number in range(count)}}


def struct(count: int) -> dict[str, Any]:
    listed = [
        {"id": number, "name": f"c{number}", "type": "int", "required": False}
        for number in range(1, count + 1)
    ]
    return {"type": "struct", "schema-id": 0, "fields": listed}


def setting(count: int) -> dict[str, Any]:
    """Returns an update that sets properties."""
    return {"action": "set-properties", "updates": {f"q{n:07}": "v" for n in range(count)}}


def updates(*given: Any) -> dict[str, Any]:
    return {"requirements": [], "updates": list(given)}


# -- nothing else waits ----------------------------------------------------------------------------

LARGE = {"s": partial(snapshots, 50_000), "p": partial(properties, 1_300_000)}
"""Tables with more than 20 MB of metadata, by functions that return their members."""
CHANGE = updates({"action": "set-location", "location": "file:///elsewhere"})
REQUESTS: dict[str, tuple[int, str, Callable[[], Any] | None]] = {
    f"{what} {name}": (status, path.replace("NAME", name), body)
    for name in LARGE
    for what, status, path, body in (
        ("load", 200, f"{TABLES}/NAME", None),
        ("load refs of", 200, f"{TABLES}/NAME?snapshots=refs", None),
        ("change", 200, f"{TABLES}/NAME", lambda: updates(REMOVE)),
        ("move", 403, f"{TABLES}/NAME", lambda: CHANGE),
    )
} | {
    "many fields": (200, TABLES, lambda: {"name": "f", "schema": struct(90_000)}),
    "too many fields": (413, TABLES, lambda: {"name": "g", "schema": struct(400_000)}),
    "many properties": (200, f"{TABLES}/t", lambda: updates(setting(90_000))),
    "too many properties": (413, f"{TABLES}/t", lambda: updates(setting(1_900_000))),
}
"""Status, path, and the function that makes the body, by name."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server in a process of its own, with large tables `s` and `p` and a small one `t`."""
    folder = tmp_path_factory.mktemp("lake")
    store, warehouse = str(folder / "catalog.sqlite"), folder / "warehouse"
    create(store).close()
    with started("--store", store, "--warehouse", str(warehouse)) as (_, address):
        main = IcebergClient(Client(address))
        assert main.namespace("db").status == 200
        assert main.create("db", "t").status == 200
        for name, members in LARGE.items():
            location = large_file(warehouse, name, **members())
            assert Path(location.removeprefix("file://")).stat().st_size > 20 << 20
            assert register(main, name, location).status == 200
        main.client.close()
        yield address


@pytest.mark.parametrize("what", REQUESTS)
def test_health_answers_while_large_metadata_is_read_and_written(url: str, what: str) -> None:
    expected, path, body = REQUESTS[what]
    # Answers are not parsed: this process measures the waits.
    request = urllib.request.Request(
        f"{url}/iceberg/v1/main{path}",
        None if body is None else json.dumps(body()).encode(),
        {"content-type": "application/json"},
    )

    def status() -> int:
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                while answer.read(1 << 20):
                    pass
                return int(answer.status)
        except HTTPError as error:
            return error.code

    statuses: list[int] = []

    def attempt() -> float:
        with ThreadPoolExecutor(1) as pool:
            pending = pool.submit(status)
            wait: float = worst_wait(url, [pending])
        statuses.append(pending.result())
        return wait

    assert shortest(attempt) < SOON
    assert statuses[0] == expected


def longest_calls(folder: Path, query: str) -> list[float]:
    """Returns the longest call of each attempt to load a large file, or to register it."""
    # No garbage is collected, as in a server that computes.
    gc.disable()
    members = {"unknown": [[1000]] * 1_600_000} if query else {"unknown": [[[1000]] * 1_600_000]}
    longest: list[float] = []
    with lake(folder) as served:
        assert served.main.namespace("db").status == 200
        location = large_file(folder, "t", **members)
        table = IcebergTable(id=None, metadata_location=location, snapshot_id=-1)
        served.repository.commit("main", [Put(ContentKey(("db", "t")), table)], CommitMeta("t"))
        request = f"{served.url}/iceberg/v1/main{TABLES}/t?{query}"
        while len(longest) < ATTEMPTS and not (longest and min(longest) < MOST_SECONDS):
            with LongestCall() as call:
                if query:
                    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                        while answer.read(1 << 20):
                            pass
                else:
                    assert register(served.main, "u", location).status == 400
            longest.append(call.seconds)
    return longest


@pytest.mark.parametrize("query", ["snapshots=refs", ""])
def test_no_call_is_long_while_millions_of_values_are_read_and_freed(
    tmp_path: Path, query: str
) -> None:
    """The other request has one item with too many values, and is refused."""
    # The server's search for garbage would visit the objects of all tests of this process.
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert min(pool.submit(longest_calls, tmp_path, query).result()) < MOST_SECONDS


# -- limits ----------------------------------------------------------------------------------------


def test_a_loaded_table_is_its_file_if_the_file_has_its_state(
    main: IcebergClient, served: Lake
) -> None:
    """A file of another program is answered as it is, with unknown members and spaces."""
    location = large_file(served.folder, "t", unknown={"\u00e9": [1, 2**63 - 1, 0.1]})
    file = Path(location.removeprefix("file://"))
    file.write_text(json.dumps(json.loads(file.read_text()), indent=1, ensure_ascii=False))
    loaded = register(main, "t", location)
    assert loaded.status == 200
    for answer in (loaded, main.load("db", "t"), main.load("db", "t", "?snapshots=refs")):
        assert answer.body["metadata"] == json.loads(file.read_text())
        assert answer.body["metadata-location"] == location
    assert file.read_bytes() in main.load("db", "t").raw


def test_a_request_has_a_limited_number_of_values(main: IcebergClient) -> None:
    main.create("db", "t")
    ids = [1] * (IcebergCall.most_values + 1)
    body = updates({"action": "remove-snapshots", "snapshot-ids": ids})
    answer = main.post(f"{TABLES}/t", body)
    assert answer.status == 413
    assert answer.body["error"]["message"] == "body: has more than 500,000 values"


def test_a_table_and_a_view_have_a_limited_number_of_properties(main: IcebergClient) -> None:
    main.create("db", "t")
    main.view("db", "v")
    for path in (f"{TABLES}/t", "/namespaces/db/views/v"):
        before = main.get(path).body["metadata"]
        full = MOST_PROPERTIES - len(before["properties"])
        assert main.post(path, updates(setting(full + 1))).status == 400
        assert main.post(path, updates(setting(full))).status == 200
        refused = main.post(path, updates({"action": "set-properties", "updates": {"one": "1"}}))
        assert error_of(refused)[0] == 400
        assert refused.body["error"]["message"] == "properties: there are more than 100,000"
        assert len(main.get(path).body["metadata"]["properties"]) == MOST_PROPERTIES
    too_many = setting(MOST_PROPERTIES + 1)["updates"]
    assert error_of(main.create("db", "u", properties=too_many))[0] == 400
    assert error_of(main.view("db", "w", properties=too_many))[0] == 400


def test_the_metadata_files_of_a_transaction_have_a_limited_size(
    main: IcebergClient, served: Lake
) -> None:
    """A transaction keeps the new metadata of all its tables until they are committed."""
    size = MOST_METADATA // 4
    texts = {f"q{number}": "x" * (1 << 20) for number in range(size >> 20)}
    location = large_file(served.folder, "big", properties=texts)
    for number in range(4):
        assert register(main, f"t{number}", location).status == 200
    before, files = served.repository.reference("main").hash, served.files()

    def change(number: int, given: Any) -> dict[str, Any]:
        return {"identifier": {"namespace": ["db"], "name": f"t{number}"}, **given}

    for given in (updates(setting(1)), updates()):
        changes = [change(number, given) for number in range(4)]
        refused = main.post("/transactions/commit", {"table-changes": changes})
        assert error_of(refused) == (400, "BadRequestException")
        assert "more than 128 MiB together" in refused.body["error"]["message"]
        assert served.repository.reference("main").hash == before
        assert served.files() == files
    accepted = main.post("/transactions/commit", {"table-changes": changes[:3]})
    assert accepted.status == 204


def test_a_table_with_many_snapshots_is_committed(main: IcebergClient, served: Lake) -> None:
    given = snapshots(2_000)
    assert register(main, "t", large_file(served.folder, "t", **given)).status == 200
    answer = main.commit("db", "t", [], appending(2_001, 2_000, 2_001))
    metadata = answer.body["metadata"]
    assert metadata["snapshots"][:-1] == given["snapshots"]
    assert metadata["current-snapshot-id"] == 2_001
    assert main.load("db", "t").body["metadata"] == metadata
    (last,) = main.load("db", "t", "?snapshots=refs").body["metadata"]["snapshots"]
    assert last["snapshot-id"] == 2_001
