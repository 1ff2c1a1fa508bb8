"""PyIceberg on branches, through the Iceberg REST catalog of `nessie serve`."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
    TableAlreadyExistsError,
)
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType, NestedField
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion

from nessie_cli import Put
from tests.engines.served import Served

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})


def opened(served: Served, ref: str, **options: str) -> Catalog:
    return load_catalog("lake", **served.pyiceberg(ref, **options))


@pytest.fixture
def catalog(served: Served, request: pytest.FixtureRequest) -> Catalog:
    """A catalog on a branch that is named for the test."""
    branch = branch_of(request)
    served.nessie("branch", branch, "main")
    made = opened(served, branch)
    made.create_namespace("db", {"owner": "ann"})
    return made


def branch_of(request: pytest.FixtureRequest) -> str:
    return f"feature/{request.node.name}"


@pytest.fixture
def branch(request: pytest.FixtureRequest) -> str:
    return branch_of(request)


def ids(catalog: Catalog, table: str = "db.t") -> list[int]:
    return sorted(catalog.load_table(table).scan().to_arrow()["id"].to_pylist())


def test_namespaces(catalog: Catalog) -> None:
    catalog.create_namespace("db.eu")
    catalog.create_namespace("other")
    assert sorted(catalog.list_namespaces()) == [("db",), ("other",)]
    assert catalog.list_namespaces("db") == [("db", "eu")]
    assert catalog.namespace_exists("db.eu")
    assert catalog.load_namespace_properties("db")["owner"] == "ann"
    summary = catalog.update_namespace_properties("db", {"owner"}, {"tier": "gold"})
    assert (summary.removed, summary.updated, summary.missing) == (["owner"], ["tier"], [])
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace("db")
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("db")
    catalog.drop_namespace("db.eu")
    assert not catalog.namespace_exists("db.eu")
    with pytest.raises(NoSuchNamespaceError):
        catalog.load_namespace_properties("db.eu")


def test_a_table_from_creation_to_the_drop(catalog: Catalog, served: Served, branch: str) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties={"team": "ann"})
    table.append(ROWS)
    table.delete("id = 2")
    table.overwrite(ROWS.slice(0, 1), "id = 1")
    with table.update_schema() as schema:
        schema.add_column("amount", LongType())
    with table.update_spec() as spec:
        spec.add_field("id", BucketTransform(4))
    with table.transaction() as transaction:
        transaction.set_properties(team="bob")
        transaction.append(pa.table({"id": [7], "name": ["z"], "amount": [70]}))
    assert ids(catalog) == [1, 3, 7]
    assert catalog.load_table("db.t").properties["team"] == "bob"
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("db.t", ROWS.schema)
    catalog.rename_table("db.t", "db.u")
    assert catalog.list_tables("db") == [("db", "u")]
    with pytest.raises(NoSuchTableError):
        catalog.load_table("db.t")
    assert ids(catalog, "db.u") == [1, 3, 7]
    catalog.drop_table("db.u")
    assert not catalog.table_exists("db.u")
    # The transaction was one commit; a table keeps its content id.
    puts = [
        one
        for entry in served.log(branch)
        for one in entry.operations or ()
        if isinstance(one, Put)
    ]
    assert len({put.content.id for put in puts if str(put.key) in ("db.t", "db.u")}) == 1


def test_a_staged_creation_is_one_commit(catalog: Catalog, served: Served, branch: str) -> None:
    before = len(served.log(branch))
    with catalog.create_table_transaction("db.t", ROWS.schema) as creation:
        with creation.update_spec() as spec:
            spec.add_field("id", BucketTransform(4))
        creation.append(ROWS)
        assert not catalog.table_exists("db.t")
    assert ids(catalog) == [1, 2, 3]
    assert len(served.log(branch)) == before + 1


def test_branches_and_tags(catalog: Catalog, served: Served, branch: str) -> None:
    catalog.create_table("db.t", ROWS.schema).append(ROWS)
    served.nessie("branch", f"{branch}-2", branch)
    served.nessie("tag", f"{branch}-tag", branch)
    other, tag = opened(served, f"{branch}-2"), opened(served, f"{branch}-tag")
    other.load_table("db.t").append(pa.table({"id": [4], "name": ["d"]}))
    assert (ids(catalog), ids(other), ids(tag)) == ([1, 2, 3], [1, 2, 3, 4], [1, 2, 3])
    served.nessie("merge", f"{branch}-2", "--into", branch)
    assert (ids(catalog), ids(tag)) == ([1, 2, 3, 4], [1, 2, 3])
    # The configuration of a tag names the endpoints that read.
    with pytest.raises(NotImplementedError, match="does not support endpoint: DELETE"):
        tag.drop_table("db.t")
    # A branch as the prefix, with the URI of the server alone.
    by_prefix = load_catalog(
        "lake",
        type="rest",
        uri=f"{served.url}/iceberg",
        warehouse="lake",
        prefix=f"{branch}-2".replace("/", "%2F"),
    )
    assert ids(by_prefix) == [1, 2, 3, 4]


def test_equal_names_on_two_branches_lie_apart(
    catalog: Catalog, served: Served, branch: str
) -> None:
    served.nessie("branch", f"{branch}-2", branch)
    other = opened(served, f"{branch}-2")
    tables = [one.create_table("db.t", ROWS.schema) for one in (catalog, other)]
    for table in tables:
        table.append(ROWS)
    assert len({table.location() for table in tables}) == 2
    assert len({table.metadata.table_uuid for table in tables}) == 2


def test_a_stale_commit_is_refused(catalog: Catalog) -> None:
    first = catalog.create_table("db.t", ROWS.schema, properties={"commit.retry.num-retries": "0"})
    second = catalog.load_table("db.t")
    first.append(ROWS)
    with pytest.raises(CommitFailedException, match="branch main"):
        second.append(ROWS)
    assert ids(catalog) == [1, 2, 3]


def test_a_view(catalog: Catalog) -> None:
    schema = Schema(NestedField(1, "id", LongType()))
    text = SQLViewRepresentation(type="sql", sql="SELECT id FROM db.t", dialect="spark")
    version = ViewVersion(
        version_id=1,
        schema_id=0,
        timestamp_ms=1,
        summary={},
        representations=[text],
        default_catalog="lake",
        default_namespace=["db"],
    )
    catalog.create_view("db.v", schema, version)
    assert catalog.list_views("db") == [("db", "v")]
    assert catalog.view_exists("db.v")
    assert catalog.load_view("db.v").current_version().representations[0].root == text
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("db.v", ROWS.schema)
    catalog.drop_view("db.v")
    assert catalog.list_views("db") == []


def test_one_metadata_file_on_two_branches(catalog: Catalog, served: Served, branch: str) -> None:
    """Registered twice, it is two tables: the contents differ, so a merge reports a conflict."""
    table = catalog.create_table("db.source", ROWS.schema)
    table.append(ROWS)
    served.nessie("branch", f"{branch}-2", branch)
    other = opened(served, f"{branch}-2")
    for one in (catalog, other):
        one.register_table("db.t", table.metadata_location)
        assert ids(one) == [1, 2, 3]
    ours, theirs = (content_id(served, ref) for ref in (branch, f"{branch}-2"))
    assert ours != theirs
    with pytest.raises(AssertionError, match=r"db\.t"):
        served.nessie("merge", f"{branch}-2", "--into", branch)


def content_id(served: Served, ref: str) -> str | None:
    """Returns the content id of `db.t`, which the newest commit has put."""
    (put,) = [one for one in served.log(ref)[0].operations or () if isinstance(one, Put)]
    assert str(put.key) == "db.t"
    return put.content.id


def test_the_warehouse_names_the_branch(served: Served) -> None:
    served.nessie("branch", "feature/warehouse", "main")
    options = {"type": "rest", "uri": f"{served.url}/iceberg"}
    catalog = load_catalog("x", **options, warehouse="feature/warehouse|lake")
    catalog.create_namespace("named")
    assert catalog.load_namespace_properties("named")["location"].endswith("/warehouse/named")
    assert ("named",) not in load_catalog("y", **options, warehouse="lake").list_namespaces()
    with pytest.raises(RESTError, match="nowhere"):
        load_catalog("z", **options, warehouse="nowhere|lake")
