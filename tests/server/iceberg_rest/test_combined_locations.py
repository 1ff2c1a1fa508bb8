"""A combination writes only where a commit to the same table may write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from msgspec import structs

from nessie_cli.errors import NotAllowed
from nessie_cli.iceberg.locations import METADATA_PATH, PATH_PROPERTIES
from nessie_cli.iceberg.warehouses.configuration import from_options
from nessie_cli.iceberg.warehouses.metadata_files import MetadataFiles
from nessie_cli.iceberg.warehouses.warehouse import Warehouses
from nessie_cli.model import CommitMeta, IcebergTable, Put
from tests.server.client import Answer
from tests.server.iceberg_rest.appends import append, two_appends
from tests.server.iceberg_rest.lake import Lake
from tests.server.iceberg_rest.test_combination import (
    READ,
    SEE,
    WRITE,
    T,
    as_,
    combined,
    guarded,
    places,
    sent,
)
from tests.server.iceberg_rest.test_rights import Ruled

ANOTHER = "lies in the folder of another table"


@pytest.fixture
def ruled(tmp_path: Path) -> Iterator[Ruled]:
    """Ada may merge. An owner and the administrator may choose locations, too."""
    (warehouse,) = from_options([str(tmp_path / "warehouse")]).all
    restricted = Warehouses([structs.replace(warehouse, choose_locations=False)])
    for server in guarded(tmp_path, restricted):
        server.rule(f"{SEE} || {WRITE} || {READ}", "'owner' in roles && op == 'CHOOSE_LOCATION'")
        yield server


def victim_of(lake: Lake) -> str:
    """Returns the folder of another table."""
    return f"file://{lake.folder}/db/victim_0f8fad5b-d9cb-469f-a165-70867728950e"


def forge(lake: Lake, branch: str, **properties: str | None) -> str:
    """Puts metadata with properties that the server has not checked. Returns the commit."""
    table = lake.repository.content(branch, T)
    assert isinstance(table, IcebergTable)
    path = Path(table.metadata_location.removeprefix("file://"))
    document = json.loads(path.read_text())
    changed = {**document["properties"], **properties}
    document["properties"] = {name: value for name, value in changed.items() if value is not None}
    written = path.with_name(f"00009-{uuid4()}.metadata.json")
    written.write_text(json.dumps(document))
    put = structs.replace(table, metadata_location=f"file://{written}")
    return lake.repository.commit(branch, [Put(T, put)], CommitMeta("forged")).reference.hash


def reasons(answer: Answer) -> list[str]:
    """Returns why tables of a merge do not combine."""
    return [
        collision["reason"]
        for detail in answer.body["details"]
        for collision in detail["conflict"]["collisions"]
    ]


@pytest.mark.parametrize("property_", PATH_PROPERTIES)
@pytest.mark.parametrize("roles", [(), ("owner",), ("admin",)])
def test_no_path_leads_into_the_folder_of_another_table(
    ruled: Ruled, property_: str, roles: tuple[str, ...]
) -> None:
    lake = ruled.served
    forged = forge(lake, "dev", **{property_: f"{victim_of(lake)}/metadata"})
    files, head = lake.files(), lake.repository.reference("main").hash
    caller = ruled.as_("ada", *roles)
    transplant = {
        "fromRefName": "dev",
        "hashesToTransplant": [forged],
        "perContent": True,
        "isReturnConflictAsResult": True,
        "combination": {},
    }
    path = "/api/v2/trees/main/history/combining-transplant"
    for answer in (
        sent(lake, client=caller),
        sent(lake, client=caller, isDryRun=True),
        caller.send("POST", path, transplant, {"Nessie-Cli": "1"}),
    ):
        assert answer.status == 200, answer
        (reason,) = reasons(answer)
        assert ANOTHER in reason
    assert (lake.files(), lake.repository.reference("main").hash) == (files, head)


def test_a_single_table_is_refused_as_well(ruled: Ruled) -> None:
    lake = ruled.served
    forge(lake, "dev", **{METADATA_PATH: f"{victim_of(lake)}/metadata"})
    files = lake.files()
    with as_(ruled, "ada") as ada, pytest.raises(NotAllowed, match=ANOTHER):
        combined(ada, places(lake))
    assert lake.files() == files


def test_without_the_right_paths_stay_in_the_location(ruled: Ruled) -> None:
    """As for a commit: with the right, a table may have its data elsewhere."""
    lake = ruled.served
    forge(lake, "dev", **{"write.data.path": f"file://{lake.folder}/elsewhere"})
    files = lake.files()
    (reason,) = reasons(sent(lake, client=ruled.as_("ada")))
    assert "outside of the table's location" in reason
    assert lake.files() == files
    assert sent(lake, client=ruled.as_("olga", "owner")).body["wasApplied"]


def test_a_path_in_the_location_is_combined(ruled: Ruled) -> None:
    lake = ruled.served
    table = lake.repository.content("main", T)
    assert isinstance(table, IcebergTable)
    own = table.metadata_location.rpartition("/metadata/")[0]
    forge(lake, "dev", **{"write.data.path": f"{own}/rows"})
    assert sent(lake, client=ruled.as_("ada")).body["wasApplied"]


@pytest.mark.parametrize("property_", PATH_PROPERTIES)
def test_a_warehouse_without_restrictions_keeps_the_folders_of_tables(
    tmp_path: Path, property_: str
) -> None:
    with two_appends(tmp_path / "warehouse") as lake:
        forge(lake, "dev", **{property_: f"{victim_of(lake)}/metadata"})
        files = lake.files()
        (reason,) = reasons(sent(lake))
        assert ANOTHER in reason
        assert lake.files() == files


def test_a_page_reverts_into_no_folder_of_another_table(tmp_path: Path) -> None:
    """The parent of a commit can have a path that its author was not allowed to set."""
    with two_appends(tmp_path / "warehouse") as lake:
        forge(lake, "main", **{METADATA_PATH: f"{victim_of(lake)}/metadata"})
        reverted = forge(lake, "main", **{METADATA_PATH: None})
        append(lake.url, "main", 11)
        files = lake.files()
        page = lake.client.get(f"/ui/revert?ref={reverted}&into=main", accept="text/html")
        assert ANOTHER in page.raw.decode()
        assert lake.files() == files


def test_a_file_that_was_not_written_is_not_removed(
    ruled: Ruled, caplog: pytest.LogCaptureFixture
) -> None:
    lake = ruled.served
    for branch in ("main", "dev"):
        forge(lake, branch, **{METADATA_PATH: f"{victim_of(lake)}/metadata"})
    files = lake.files()
    sent(lake, client=ruled.as_("ada"))
    metadata_files = MetadataFiles(from_options([str(lake.folder)]).all[0])
    metadata_files.remove(f"file://{lake.folder}/none.metadata.json")
    assert lake.files() == files
    assert not caplog.messages
