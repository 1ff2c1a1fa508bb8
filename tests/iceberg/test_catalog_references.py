"""PyIceberg's catalog on branches, tags and commits. Only branches are writable."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError
from pyiceberg.types import LongType

from nessie_cli.errors import MergeConflict, ReferenceNotFound
from nessie_cli.iceberg.catalog import NessieCatalog
from nessie_cli.model import ReferenceType
from tests.iceberg.lake import ROWS, Lake, sorted_rows
from tests.iceberg.test_catalog_views import version

MORE = pa.table({"id": [4], "name": ["d"]})


def branch(lake: Lake, suffix: str, type: ReferenceType = ReferenceType.BRANCH) -> str:
    """A branch or tag where the lake's branch is now."""
    name = f"{lake.branch}-{suffix}"
    lake.repository.create_reference(type, name, lake.head())
    return name


def test_two_branches_at_once_and_a_merge(lake: Lake) -> None:
    main = lake.catalog()
    main.create_namespace("sales")
    main.create_table("sales.orders", ROWS.schema).append(ROWS)
    other = branch(lake, "ingest")
    ingest = lake.catalog(other)
    ingest.load_table("sales.orders").append(MORE)
    ingest.create_table("sales.new", ROWS.schema)

    assert sorted_rows(main.load_table("sales.orders")) == ROWS.to_pylist()
    assert not main.table_exists("sales.new")
    lake.repository.merge(lake.branch, other)
    assert sorted_rows(main.load_table("sales.orders")) == [*ROWS.to_pylist(), *MORE.to_pylist()]
    assert main.table_exists("sales.new")


def test_a_table_that_was_renamed_on_a_branch_is_merged(lake: Lake) -> None:
    main = lake.catalog()
    main.create_table("orders", ROWS.schema).append(ROWS)
    other = branch(lake, "rename")
    side = lake.catalog(other)
    side.rename_table("orders", "bookings").append(MORE)
    lake.repository.merge(lake.branch, other)
    assert not main.table_exists("orders")
    assert len(sorted_rows(main.load_table("bookings"))) == 4


def test_both_sides_changed_one_table(lake: Lake) -> None:
    main = lake.catalog()
    main.create_table("orders", ROWS.schema)
    other = branch(lake, "side")
    lake.catalog(other).load_table("orders").append(MORE)
    main.load_table("orders").append(ROWS)
    with pytest.raises(MergeConflict):
        lake.repository.merge(lake.branch, other)
    assert sorted_rows(main.load_table("orders")) == ROWS.to_pylist()


def test_a_catalog_follows_its_branch(lake: Lake) -> None:
    reader = lake.catalog()
    lake.catalog().create_table("orders", ROWS.schema)
    table = reader.load_table("orders")
    lake.catalog().load_table("orders").append(ROWS)
    assert sorted_rows(table) == []
    assert sorted_rows(table.refresh()) == ROWS.to_pylist()


@pytest.mark.parametrize("ref", ["{tag}", "{branch}@{hash}", "@{hash}", "{branch}~2"])
def test_time_travel_by_reference(lake: Lake, ref: str) -> None:
    catalog = lake.catalog()
    catalog.create_table("orders", ROWS.schema).append(ROWS)
    tag, hash_ = branch(lake, "monday", ReferenceType.TAG), lake.head()
    catalog.load_table("orders").append(MORE)
    catalog.create_table("later", ROWS.schema)

    found = lake.catalog(ref.format(tag=tag, branch=lake.branch, hash=hash_))
    catalog.load_table("orders").append(MORE)
    assert sorted_rows(found.load_table("orders")) == ROWS.to_pylist()
    assert found.list_tables(()) == [("orders",)]


WRITES: dict[str, Callable[[Any], object]] = {
    "create_table": lambda catalog: catalog.create_table("new", ROWS.schema),
    "staged": lambda catalog: catalog.create_table_transaction(
        "new", ROWS.schema
    ).commit_transaction(),
    "append": lambda catalog: catalog.load_table("orders").append(ROWS),
    "schema": lambda catalog: (
        catalog.load_table("orders").update_schema().add_column("x", LongType()).commit()
    ),
    "rename": lambda catalog: catalog.rename_table("orders", "other"),
    "drop": lambda catalog: catalog.drop_table("orders"),
    "purge": lambda catalog: catalog.purge_table("orders"),
    "register": lambda catalog: catalog.register_table(
        "again", catalog.load_table("orders").metadata_location
    ),
    "create_namespace": lambda catalog: catalog.create_namespace("new"),
    "drop_namespace": lambda catalog: catalog.drop_namespace("space"),
    "properties": lambda catalog: catalog.update_namespace_properties("space", updates={"a": "1"}),
    "create_view": lambda catalog: catalog.create_view("ids", ROWS.schema, version()),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_tag_and_a_commit_can_only_be_read(embedded: Lake, write: str) -> None:
    catalog = embedded.catalog()
    catalog.create_table("orders", ROWS.schema)
    catalog.create_namespace("space")
    tag, head, files = (
        branch(embedded, "monday", ReferenceType.TAG),
        embedded.head(),
        embedded.metadata_files(),
    )
    with pytest.raises(
        ForbiddenError, match=rf"{tag} is a tag and can only be read\. Hint: set ref to a branch"
    ):
        WRITES[write](embedded.catalog(tag))
    with pytest.raises(
        ForbiddenError,
        match=rf"{head} is a commit and can only be read\. Hint: set ref to a branch",
    ):
        WRITES[write](embedded.catalog(f"{embedded.branch}@{head}"))
    assert embedded.head() == head
    assert embedded.metadata_files() == files
    WRITES[write](catalog)
    assert embedded.head() != head


def test_a_table_that_is_handed_to_another_process_opens_the_store_there(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = lake.catalog(author="Ada")
    table = catalog.create_table("orders", ROWS.schema)
    catalog.create_namespace("sales")
    before = lake.catalog(f"{lake.branch}~1")
    table.append(ROWS)
    handed, then = pickle.dumps(table), pickle.dumps(before)

    monkeypatch.chdir(tmp_path)
    found = pickle.loads(handed)
    with found.catalog:
        assert (found, found.catalog.name) == (table, catalog.name)
        found.append(MORE)
    assert lake.log()[0].meta.authors == ("Ada",)
    assert sorted_rows(table.refresh()) == [*ROWS.to_pylist(), *MORE.to_pylist()]
    # What was a commit is that commit, wherever the branch has gone.
    with pickle.loads(then) as again:
        assert sorted_rows(again.load_table("orders")) == []


def test_a_store_in_memory_is_not_handed_to_others() -> None:
    with (
        NessieCatalog("lake", uri="memory:") as catalog,
        pytest.raises(TypeError, match="memory is a store of one process"),
    ):
        pickle.dumps(catalog)


def test_a_missing_reference(lake: Lake) -> None:
    with pytest.raises(ReferenceNotFound, match="nowhere"):
        lake.catalog("nowhere")


def test_a_branch_deleted_while_a_catalog_is_open(lake: Lake) -> None:
    name = branch(lake, "short")
    catalog = lake.catalog(name)
    table = catalog.create_table("orders", ROWS.schema)
    files = lake.metadata_files()
    lake.repository.delete_reference(name, expected_hash=lake.repository.reference(name).hash)
    with pytest.raises(ReferenceNotFound, match=name):
        catalog.load_table("orders")
    with pytest.raises(ReferenceNotFound, match=name):
        table.transaction().set_properties({"a": "1"}).commit_transaction()
    assert lake.metadata_files() == files


def test_a_branch_reset_while_a_table_is_open(lake: Lake) -> None:
    catalog = lake.catalog()
    before = lake.head()
    table = catalog.create_table("orders", ROWS.schema)
    lake.repository.assign_reference(lake.branch, before, expected_hash=lake.head())
    with pytest.raises(NoSuchTableError):
        table.append(ROWS)


def test_without_ref_it_is_the_default_branch(embedded: Lake) -> None:
    options = embedded.options()
    del options["ref"]
    from pyiceberg.catalog import load_catalog

    with load_catalog("lake", **options) as catalog:
        catalog.create_namespace("sales")
    assert embedded.messages("main") == ["create namespace sales"]
    assert embedded.messages() == []
