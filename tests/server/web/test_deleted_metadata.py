"""The page of a revert whose result has a metadata file that garbage collection has deleted."""

from __future__ import annotations

from pathlib import Path

from nessie_cli.iceberg.locations import local_path
from nessie_cli.model import CommitMeta, IcebergTable, Put
from tests.server.row_server import KEY, RowServer, row_server
from tests.server.web.browser import Browser


def reverted(server: RowServer, branch: str) -> tuple[Browser, str]:
    return Browser(server.client), f"/ui/revert?ref={branch}&into={branch}"


def test_a_state_without_its_metadata_file_is_refused(tmp_path: Path) -> None:
    with row_server(tmp_path) as server:
        browser, url = reverted(server, "dev")
        fields = browser.get(url).form("/ui/revert")
        earlier = server.repository.content("dev~1", KEY)
        assert isinstance(earlier, IcebergTable)
        local_path(earlier.metadata_location).unlink()
        head = server.repository.reference("dev").hash
        for page in (browser.get(url), browser.post("/ui/revert", **fields)):
            assert page.status == 400
            assert f"{earlier.metadata_location}: no such file" in page.text
        assert server.repository.reference("dev").hash == head


def test_files_outside_of_the_warehouse_are_not_looked_up(tmp_path: Path) -> None:
    with row_server(tmp_path) as server:
        table = server.table("dev")
        (tmp_path / "elsewhere").mkdir()
        server.move("dev", f"{tmp_path}/elsewhere/1.metadata.json")
        server.repository.commit("dev", [Put(KEY, table)], CommitMeta("moved back"))
        browser, url = reverted(server, "dev")
        assert "would change on dev" in browser.get(url).text
