"""Changed rows over REST: rights, places, limits, and the processes that read."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pyarrow as pa
import pytest
from pyarrow import parquet

from nessie_cli import connect
from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.iceberg.row_diff.answer import RowAnswer
from nessie_cli.iceberg.row_diff.contents import changed_rows
from nessie_cli.iceberg.warehouses.warehouse import Warehouse, Warehouses
from nessie_cli.model import CommitMeta, Delete, IcebergTable, IcebergView, Put
from nessie_cli.server.runtime.row_request import RowLimits, RowRequest
from nessie_cli.wire.rows import RowQuery
from tests.server.client import Client
from tests.server.row_files import move_out, path_of
from tests.server.row_server import (
    DIFF,
    KEY,
    LIMITS,
    OURS,
    ROWS,
    RowServer,
    guarded_rows,
    row_server,
)
from tests.server.serving import serving
from tests.server.waiting import until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RowServer]:
    with row_server(tmp_path) as server:
        yield server


def workers() -> list[int]:
    """Returns the processes that this one has started to read rows."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if int(parent) == os.getpid() and b"row_worker" in command:
            pids.append(int(folder.name))
    return pids


# -- the rows -------------------------------------------------------------------------------------


def test_the_rows_are_those_of_a_comparison_with_own_access(server: RowServer) -> None:
    answer = server.answer()
    local = changed_rows(server.table("main"), server.table("dev"))
    assert answer.read_all().equals(local.read_all())
    assert answer.schema == local.schema
    assert answer.summary == local.difference.summary
    assert server.rows("&limit=1&where=" + quote("id > 7")) == [
        {"_change_type": "INSERT", "id": 8, "v": "x", "n": 1}
    ]
    assert server.rows("&column=id&key-column=id") == [
        {"_change_type": change, "id": id_}
        for change, id_ in (("DELETE", 2), ("INSERT", 7), ("INSERT", 8))
    ]
    summary = server.client.get(f"{ROWS}&rows=false", **OURS)
    assert RowAnswer(summary.raw, "").summary == local.difference.summary


def test_a_new_table_has_only_inserted_rows(server: RowServer) -> None:
    empty = "2e1cfa82b035c26cbbbdae632cea070514eb8b773f616aaeaf668e2f0be8f10d"
    rows = server.rows(path=f"/api/v2/trees/@{empty}/rows/main?key=db.t")
    assert [(row["_change_type"], row["id"]) for row in rows] == [("INSERT", n) for n in (1, 2, 3)]
    assert server.rows(path="/api/v2/trees/dev/rows/dev?key=db.t") == []


def test_only_our_client_of_a_server_with_warehouses_gets_rows(server: RowServer) -> None:
    server.client.get(ROWS).expect(404)
    config = "/api/v2/config"
    assert "additionalProperties" not in server.client.get(config).body
    announced = server.client.get(config, **OURS).body["additionalProperties"]
    assert announced == {"nessie-cli": "1", "nessie-cli-combines": "1", "nessie-cli-rows": "1"}
    with serving(server.repository) as url:
        other = Client(url)
        assert other.get(config, **OURS).body["additionalProperties"] == {"nessie-cli": "1"}
        other.get(ROWS, **OURS).expect(404)
        other.close()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("&where=" + quote("id >"), "is not a filter"),
        ("&where=" + quote("salary > 1"), "salary"),
        ("&column=salary", "salary"),
        ("&limit=-1", "limit"),
    ],
)
def test_an_invalid_selection_is_an_error(server: RowServer, more: str, message: str) -> None:
    server.client.get(ROWS + more, **OURS).expect(400, message)


@pytest.mark.parametrize(
    "text",
    [
        "id in (select id from read_parquet('/etc/passwd'))",
        "read_text('/etc/passwd') = v",
        "1; ATTACH '/etc/passwd'",
        "v = (SELECT content FROM read_blob('/etc/passwd'))",
        "__import__('os').system('true') = 1",
        "'/etc/passwd' = v or pragma_version() = v",
        "(" * 5000 + "id = 1" + ")" * 5000,
        "not " * 5000 + "id = 1",
        "id = 1" + " or id = 1" * 3000,
    ],
)
def test_a_hostile_filter_reads_nothing_else(server: RowServer, text: str) -> None:
    answer = server.client.get(f"{ROWS}&where={quote(text)}", **OURS)
    # The last one is a filter, which is only long.
    assert answer.status in (400, 200)
    assert b"root:" not in answer.raw
    if answer.status == 200:
        assert RowAnswer(answer.raw, "").read_all().num_rows == 0
    assert server.rows("&limit=1")


def test_a_filter_that_no_url_holds_is_refused_with_its_length(server: RowServer) -> None:
    with connect(f"{server.url}/api/v2") as client:
        before, after = (client.reference(name).hash for name in ("main", "dev"))
        for text in ("x" * 59_000, "é" * 9_900):
            query = RowQuery(before=before, after=after, key=KEY, where=f"v = '{text}'")
            assert client.changed_rows(query)
        for text in ("x" * 60_000, "é" * 10_000):
            query = RowQuery(before=before, after=after, key=KEY, where=f"v = '{text}'")
            with pytest.raises(InvalidInput, match=r"60,0.. characters in a URL, 60,000 are"):
                client.changed_rows(query)


def test_texts_that_are_not_utf_8(server: RowServer) -> None:
    """Some writers write them: the rows are those of a comparison with own access."""
    data = max(server.lake.data_files(), key=lambda path: path.stat().st_mtime_ns)
    table = parquet.read_table(data)
    column = pa.array([b"\xff\xfe"] * table.num_rows, pa.binary())
    text = pa.Array.from_buffers(pa.string(), table.num_rows, column.buffers())
    parquet.write_table(table.set_column(1, table.schema.field(1).with_type(text.type), text), data)
    rows = server.answer().read_all()
    assert b"\xff\xfe" in rows["v"].cast(pa.large_binary()).to_pylist()
    assert rows.equals(changed_rows(server.table("main"), server.table("dev")).read_all())


# -- rights ---------------------------------------------------------------------------------------


def test_rows_need_a_right_of_their_own_on_both_states(tmp_path: Path) -> None:
    rows = "op == 'READ_ROWS' && path == 'db.t' && role == '{}'"
    rules = [
        DIFF,
        rows.format("all"),
        rows.format("half") + " && ref == 'dev'",
        "op == 'READ_ROWS' && role == 'other' && path == 'db.u'",
        "op == 'READ_ROWS' && role == 'wrong' && contentType == 'ICEBERG_VIEW'",
    ]
    with guarded_rows(tmp_path, *rules) as (guarded, _):
        answer = guarded.as_("ann", "all").get(ROWS, **OURS)
        answer.expect(200)
        assert RowAnswer(answer.raw, "").read_all().num_rows == 3
        for role in ("none", "half", "other", "wrong"):
            refused = guarded.as_(role, role).get(ROWS, **OURS)
            refused.expect(403, "'READ_ROWS' is not allowed", "on content 'db.t'")
            assert "warehouse" not in refused.body["message"]


def test_the_rows_of_a_table_need_the_right_for_tables_if_its_key_had_a_view(
    tmp_path: Path,
) -> None:
    with guarded_rows(tmp_path, DIFF, "op == 'READ_ROWS' && contentType == 'ICEBERG_VIEW'") as (
        guarded,
        server,
    ):
        place = server.table("dev").metadata_location.replace(".metadata.json", "-v.metadata.json")
        view = IcebergView(metadata_location=place, version_id=1, schema_id=0)
        for operation in (Delete(KEY), Put(KEY, view)):
            server.repository.commit("main", [operation], CommitMeta("a view"))
        client = guarded.as_("ann")
        for path in (ROWS, "/api/v2/trees/dev/rows/main?key=db.t"):
            client.get(path, **OURS).expect(403, "'READ_ROWS' is not allowed", "'db.t'")


def test_what_a_caller_may_not_see_does_not_exist(tmp_path: Path) -> None:
    everything = "op == 'READ_ROWS'"
    rules = [
        "op in ['VIEW_REFERENCE', 'READ_ENTRIES']",
        everything,
        "role == 'half' && ref == 'dev' && op in ['READ_CONTENT_KEY', 'READ_ENTITY_VALUE']",
    ]
    with guarded_rows(tmp_path, *rules) as (guarded, _):
        for name in ("none", "half"):
            client = guarded.as_(name, name)
            absent = client.get(ROWS.replace("db.t", "db.u"), **OURS)
            hidden = client.get(ROWS, **OURS)
            absent.expect(404)
            assert hidden.body["message"] == absent.body["message"].replace("db.u", "db.t")
            assert hidden.body.keys() == absent.body.keys()
            assert client.get("/api/v2/trees/main/diff/dev").body["diffs"] == []
    with guarded_rows(tmp_path / "unseen", everything) as (guarded, _):
        guarded.as_("none").get(ROWS, **OURS).expect(403, "VIEW_REFERENCE")


# -- places ---------------------------------------------------------------------------------------


def test_a_table_outside_of_the_warehouses_is_refused_by_its_place(
    server: RowServer, tmp_path: Path
) -> None:
    place = f"file://{tmp_path}/elsewhere/1.metadata.json"
    server.move("dev", place)
    refused = server.client.get(ROWS, **OURS)
    refused.expect(403, place, "not in a warehouse of this server")
    server.move("dev", "/etc/passwd")
    server.client.get(ROWS, **OURS).expect(403, "/etc/passwd")


@pytest.mark.parametrize("kind", ["list", "manifest", "data", "link"])
def test_each_file_has_to_lie_in_the_warehouse(
    server: RowServer, tmp_path: Path, kind: str
) -> None:
    """The metadata of a table may name any file: each location is checked."""
    moved = move_out(server.table("dev").metadata_location, kind, tmp_path / "outside")
    server.move("dev", moved.metadata)
    answer = server.client.get(ROWS, **OURS)
    message = answer.body["message"] if answer.status != 200 else fault_of(answer.raw)
    assert any(name in message for name in moved.names)
    assert "not allowed" in message or "symbolic link" in message


def fault_of(data: bytes) -> str:
    with pytest.raises(NessieError) as raised:
        RowAnswer(data, "")
    return str(raised.value)


def test_a_table_names_no_files_of_others_where_locations_are_issued(tmp_path: Path) -> None:
    """A client writes the manifests of a table, so they may name the files of another one."""
    with row_server(tmp_path, warehouse={"choose_locations": False}) as server:
        assert len(server.rows()) == 3
        location = server.table("dev").metadata_location
        folder = path_of(location).parent.parent
        moved = move_out(location, "data", folder.with_name("others"))
        server.move("dev", moved.metadata)
        answer = server.client.get(ROWS, **OURS)
        assert "outside of the table's folder" in fault_of(answer.raw)
        with guarded_rows(
            tmp_path / "trusted",
            DIFF,
            "op == 'READ_ROWS'",
            "op == 'CHOOSE_LOCATION' && role == 'boss'",
            warehouse={"choose_locations": False},
        ) as (guarded, other):
            moved = move_out(other.table("dev").metadata_location, "data", other.lake.folder / "x")
            other.move("dev", moved.metadata)
            refused = guarded.as_("ann", "all").get(ROWS, **OURS)
            assert "outside of the table's folder" in fault_of(refused.raw)
            trusted = guarded.as_("eve", "boss").get(ROWS, **OURS)
            assert RowAnswer(trusted.raw, "").read_all().num_rows > 0


# -- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (RowLimits(bytes=1000), "reads at most 0 MiB of files"),
        (RowLimits(rows=2), "compares at most 2 rows"),
        (RowLimits(unpacked=10), "compares at most 0 MiB of rows"),
        (RowLimits(answer=10), "sends at most 0 MiB of rows"),
        (RowLimits(memory=100 << 20), "at most 100 MiB of memory"),
        (RowLimits(seconds=0), "for at most 0 seconds"),
    ],
)
def test_a_limit_is_an_error_that_states_it(
    tmp_path: Path, limits: RowLimits, message: str
) -> None:
    with row_server(tmp_path, limits) as server:
        answer = server.client.get(ROWS, **OURS)
        text = answer.body["message"] if answer.status != 200 else fault_of(answer.raw)
        assert message in text
        until(lambda: not workers())
        server.client.get("/api/v2/config").expect(200)


@contextmanager
def silent() -> Iterator[int]:
    """An address that accepts connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(100)
        yield listener.getsockname()[1]


@contextmanager
def waiting_server(folder: Path, limits: RowLimits = LIMITS) -> Iterator[RowServer]:
    """A server whose table lies in an object store that does not answer."""
    with silent() as port, server_at(port, folder, limits) as server:
        yield server


@contextmanager
def server_at(port: int, folder: Path, limits: RowLimits = LIMITS) -> Iterator[RowServer]:
    """A server whose table lies in the object store of a port."""
    s3 = silent_warehouse(port)
    with row_server(folder, limits, warehouses=Warehouses([s3])) as server:
        server.move("dev", "s3://lake/t/1.metadata.json")
        server.move("main", "s3://lake/t/0.metadata.json")
        yield server


def silent_warehouse(port: int) -> Warehouse:
    storage = {
        "s3.endpoint": f"http://127.0.0.1:{port}",
        "s3.access-key-id": "a",
        "s3.secret-access-key": "b",
        "s3.region": "us-east-1",
    }
    place = "s3://lake"
    return Warehouse(name="w", location=place, allowed=(place,), storage=storage)


def in_background(run: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(run()))
    thread.start()
    return thread, results


def test_others_wait_while_enough_processes_run(tmp_path: Path) -> None:
    with waiting_server(tmp_path, RowLimits(at_once=1, seconds=8)) as server:
        other = Client(server.url)
        thread, results = in_background(lambda: other.get(ROWS, **OURS))
        until(workers)
        begun = time.monotonic()
        busy = server.client.get(ROWS, **OURS)
        busy.expect(503, "Too many requests for rows")
        assert int(busy.headers["retry-after"]) > 0
        # Nothing waits for the process.
        server.client.get("/api/v2/trees/main/entries").expect(200)
        assert time.monotonic() - begun < 5
        thread.join()
        results[0].expect(403, "at most 8 seconds")
        until(lambda: not workers())
        other.close()
        server.client.get(ROWS, **OURS).expect(403, "at most 8 seconds")


def test_a_client_that_goes_away_ends_the_process(tmp_path: Path) -> None:
    with waiting_server(tmp_path) as server:
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            head = f"GET {ROWS} HTTP/1.1\r\nHost: {host}\r\nNessie-Cli: 1\r\n\r\n"
            connection.sendall(head.encode())
            until(workers)
        until(lambda: not workers())


def test_a_killed_process_is_an_error(tmp_path: Path) -> None:
    with silent() as port, server_at(port, tmp_path) as server:
        thread, results = in_background(lambda: server.client.get(ROWS, **OURS))
        until(lambda: is_connected(port))
        os.kill(workers()[0], 9)
        thread.join()
        results[0].expect(
            403, "the process that read the rows has ended at the file s3://lake/t/0.metadata.json"
        )


def is_connected(port: int) -> bool:
    """Whether a client is connected to a port."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    connections = [line.split()[2:4] for line in lines]
    return any(remote.endswith(f":{port:04X}") and state == "01" for remote, state in connections)


def test_a_process_and_its_files_do_not_outlive_the_server(tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    (folder / "rows").mkdir(parents=True)
    (folder / "rows" / "part").touch()
    with silent() as port:
        table = IcebergTable(id="1", metadata_location="s3://lake/t/1.metadata.json")
        request = RowRequest(
            before=None, after=table, warehouse=silent_warehouse(port), temporary=str(folder)
        )
        command = [sys.executable, "-m", "nessie_cli.server.runtime.row_worker"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
            assert worker.stdin is not None
            worker.stdin.write(msgspec.json.encode(request) + b"\n")
            worker.stdin.flush()
            time.sleep(0.5)
            assert worker.poll() is None
            worker.stdin.close()
            assert worker.wait(60) != 0
    assert not folder.exists()
