"""`diff --rows` and `show --rows` on a server that reads the rows with its own credentials."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyiceberg.types import StringType

from nessie_cli.model import CommitMeta, ContentKey, Delete, Put
from nessie_cli.server.runtime.row_request import RowLimits
from tests.cli.lake import SCHEMA, rows
from tests.command.in_process import InProcess
from tests.server.row_server import DIFF, KEY, guarded_rows, row_server
from tests.server.waiting import until

ROWS = ("diff", "main", "dev", "--rows")
INSERTED = "db.t: 2 inserted, 1 deleted"


def test_the_output_is_that_of_own_access(nessie: InProcess, tmp_path: Path) -> None:
    forms = [
        (),
        ("--stat",),
        ("--json",),
        ("--format", "csv"),
        ("--format", "markdown", "--exit-code"),
        ("--key", "id", "--columns", "n", "--where", "id > 2", "--limit", "1"),
        ("--key", "nosuch"),
    ]
    with row_server(tmp_path / "lake") as server:
        url = f"{server.url}/api/v2"
        assert INSERTED in nessie("--store", url, *ROWS).err
        for form in forms:
            over_server = nessie("--store", url, *ROWS, *form)
            assert over_server == nessie("--store", server.repository.url, *ROWS, *form)
        for store in (url, server.repository.url):
            file = str(tmp_path / f"{len(store)}.parquet")
            written = nessie("--store", store, *ROWS, "--format", "parquet", "--output", file)
            written.expect(0)
        over_server, local = (pq.read_table(file) for file in tmp_path.glob("*.parquet"))
        assert over_server.equals(local)


def test_columns_with_one_id_on_both_branches(nessie: InProcess, tmp_path: Path) -> None:
    with row_server(tmp_path / "lake") as server:
        url = f"{server.url}/api/v2"
        for branch, name in (("main", "city"), ("dev", "secret")):
            with server.lake.table(branch) as table, table.update_schema() as update:
                update.add_column(name, StringType())
        nessie("--store", url, *ROWS).expect(2, "have the same id", out="")
        for form in (("--stat",), ("--columns", "id,v")):
            over_server = nessie("--store", url, *ROWS, *form).expect(0)
            assert over_server == nessie("--store", server.repository.url, *ROWS, *form)
        with server.lake.catalog("dev") as catalog:
            catalog.create_table("db.u", SCHEMA).append(rows(1))
        ran = nessie("--store", url, *ROWS)
        assert (ran.code, "have the same id" in ran.err) == (8, True)
        assert "created db.u" in ran.out


def test_the_server_reads_the_rows(nessie: InProcess, tmp_path: Path) -> None:
    with row_server(tmp_path / "lake") as server:
        nessie("--store", f"{server.url}/api/v2", *ROWS).expect(0, INSERTED)
        # A request is counted when its process has ended.
        until(lambda: b"/api/v2/trees/{from}/rows/{to}" in server.client.get("/q/metrics").raw)


def test_what_is_too_much_for_the_server_is_read_with_own_access(
    nessie: InProcess, tmp_path: Path
) -> None:
    with row_server(tmp_path / "lake", RowLimits(rows=2)) as server:
        store = ("--store", f"{server.url}/api/v2")
        nessie(*store, *ROWS).expect(0, INSERTED)
        for file in server.lake.data_files():
            file.unlink()
        nessie(*store, *ROWS).expect(2, "no such file", out="")


def test_many_rows_are_requested_when_they_are_shown(
    nessie: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nessie_cli.inspection.server_rows.MOST_HELD", 100)
    with row_server(tmp_path / "lake") as server:
        ran = nessie("--store", f"{server.url}/api/v2", *ROWS, "--format", "csv")
        assert ran.out.splitlines()[1:] == ["DELETE,2,x,1", "INSERT,7,x,1", "INSERT,8,x,1"]
        assert INSERTED in ran.err


def test_a_commit_and_a_rename_are_shown(nessie: InProcess, tmp_path: Path) -> None:
    with row_server(tmp_path / "lake") as server:
        url = f"{server.url}/api/v2"
        shown = nessie("--store", url, "show", "dev", "--rows")
        assert "db.t: 1 deleted" in shown.expect(0).err
        table = server.table("dev")
        renamed = [Delete(KEY), Put(ContentKey.parse("db.new"), table)]
        server.repository.commit("dev", renamed, CommitMeta("rename"))
        ran = nessie("--store", url, *ROWS)
        assert ran.lines[0] == "renamed db.t -> db.new"
        assert "db.new: 2 inserted, 1 deleted" in ran.err


def test_staged_changes_are_read_with_own_access(nessie: InProcess, tmp_path: Path) -> None:
    with row_server(tmp_path / "lake", RowLimits(rows=0)) as server:
        url = f"{server.url}/api/v2"
        nessie("init", "--store", url).expect(0)
        location = server.table("dev").metadata_location
        nessie("content", "put", "db.t", "--from-metadata", location).expect(0)
        ran = nessie("diff", "--staged", "--rows")
        assert INSERTED in ran.expect(0).err


def test_what_the_server_refuses_is_read_with_own_access(nessie: InProcess, tmp_path: Path) -> None:
    with guarded_rows(tmp_path / "lake", DIFF) as (guarded, server):
        token = guarded.as_("ada", "reader").token
        ran = nessie("--store", f"{server.url}/api/v2", *ROWS, NESSIE_AUTH_TOKEN=token or "")
        assert INSERTED in ran.expect(0).err
        location = server.table("dev").metadata_location
        Path(location.removeprefix("file://")).unlink()
        ran = nessie("--store", f"{server.url}/api/v2", *ROWS)
        ran.expect(6, "db.t: 'READ_ROWS' is not allowed", "with your own access", "no such file")


def test_a_table_outside_of_the_warehouses_is_named(nessie: InProcess, tmp_path: Path) -> None:
    place = f"file://{tmp_path}/elsewhere/1.metadata.json"
    with row_server(tmp_path / "lake") as server:
        server.move("dev", place)
        ran = nessie("--store", f"{server.url}/api/v2", *ROWS)
        ran.expect(6, place, "not in a warehouse of this server", "with your own access")
