"""`nessie export` to a SQL catalog and to an Iceberg REST catalog, with real tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError

from nessie_cli.exporting.metadata import own_file
from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    DeltaLakeTable,
    IcebergTable,
    Namespace,
    Put,
    ReferenceType,
)
from nessie_cli.repository.opening import connect
from tests.command.in_process import InProcess
from tests.command.outcome import Outcome
from tests.iceberg.lake import ROWS, Lake
from tests.repository.servers import Servers
from tests.server.iceberg_rest.lake import lake as served_lake

TAG, BRANCH = "exported/other", "exporting/other"
PREFIX = "PYICEBERG_CATALOG__OTHER__"


class Place:
    """A workspace with real tables on main, and the other catalog, named `other`."""

    def __init__(
        self, nessie: InProcess, folder: Path, other: dict[str, str], stack: ExitStack
    ) -> None:
        self.nessie = nessie
        self.folder = folder
        self.warehouse = folder / "warehouse"
        self._other = other
        self.lake = Lake(str(folder / ".nessie" / "store.sqlite"), folder, stack)
        self.repository = self.lake.repository
        self.here = self.lake.catalog("main")
        self.is_sql = other["type"] == "sql"

    @property
    def there(self) -> Catalog:
        return load_catalog("other", **self._other)

    def create(self, *names: str, **properties: str) -> None:
        for name in names:
            self.here.create_namespace_if_not_exists(name.rpartition(".")[0])
            location = f"{self.warehouse}/{name.replace('.', '/')}"
            self.here.create_table(name, ROWS.schema, location, properties=properties).append(ROWS)

    def append(self, *names: str) -> None:
        for name in names:
            self.here.load_table(name).append(ROWS)

    def export(self, *options: str, code: int = 0) -> Outcome:
        ran = self.nessie("export", "--to", "other", "--allow-gap", *options)
        assert ran.code == code, ran
        return ran

    def actions(self, *options: str, code: int = 0) -> dict[str, str]:
        """Exports, and returns what is done by name, without unchanged names."""
        contents = self.export("--json", *options, code=code).json["contents"]
        return {
            ".".join(one["name"]["elements"]): one["action"]
            for one in contents
            if one["action"] != "unchanged"
        }

    def rows(self, name: str) -> int | None:
        """The number of rows in the other catalog; None without the table."""
        try:
            return len(self.there.load_table(name).scan().to_arrow())
        except NoSuchTableError:
            return None

    def location(self, name: str) -> str:
        return self.there.load_table(name).metadata_location

    def references(self) -> set[str]:
        return {reference.name for reference in self.repository.references()} - {
            self.lake.branch,
            "main",
        }


@pytest.fixture(params=["sql", "rest"])
def place(
    request: pytest.FixtureRequest,
    nessie: InProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Place]:
    assert nessie("init").code == 0
    with ExitStack() as stack:
        if request.param == "sql":
            uri = f"sqlite:///{tmp_path}/other.sqlite"
            other = {"type": "sql", "uri": uri, "warehouse": f"{tmp_path}/other"}
        else:
            (tmp_path / "warehouse").mkdir()
            server = stack.enter_context(served_lake(tmp_path / "warehouse"))
            other = {"type": "rest", "uri": f"{server.url}/iceberg/main"}
        for name, value in other.items():
            monkeypatch.setenv(PREFIX + name.upper(), value)
        yield Place(nessie, tmp_path, other, stack)


sql_only = pytest.mark.parametrize("place", ["sql"], indirect=True)
rest_only = pytest.mark.parametrize("place", ["rest"], indirect=True)


def test_a_first_export_registers_tables_and_leaves_a_tag(place: Place) -> None:
    place.create("db.orders", "db.deep.items")
    before = place.lake.metadata_files()
    assert place.actions() == {"db.orders": "register", "db.deep.items": "register"}
    assert [place.rows(name) for name in ("db.orders", "db.deep.items")] == [3, 3]
    assert place.references() == {TAG}
    tagged = {str(entry.key) for entry in place.repository.entries(TAG)}
    assert tagged == {"db", "db.deep", "db.orders", "db.deep.items"}
    assert place.lake.metadata_files() == before, "no file is copied"
    head = place.repository.reference(TAG).hash
    assert place.actions() == {}
    assert place.repository.reference(TAG).hash == head


def test_a_later_export_updates_what_is_unchanged_there(place: Place) -> None:
    place.create("db.orders", "db.items")
    place.export()
    place.append("db.orders")
    assert place.actions() == {"db.orders": "update"}
    assert (place.rows("db.orders"), place.rows("db.items")) == (6, 3)
    messages = [entry.meta.message for entry in place.repository.log(TAG)]
    assert messages == ["export main to other"] * 2


def test_a_dry_run_writes_nothing(place: Place) -> None:
    place.create("db.orders")
    assert place.actions("--dry-run") == {"db.orders": "register"}
    assert place.references() == set()
    assert not (place.folder / "other.sqlite").exists()
    place.export()
    place.append("db.orders")
    ran = place.export("--dry-run")
    assert ran.out == (
        "ACTION  NAME       WHY\nupdate  db.orders\nmain to other: 1 would be updated\n"
    )
    assert place.rows("db.orders") == 3


def test_a_renamed_table_moves(place: Place) -> None:
    place.create("db.orders", "db.items")
    place.export()
    place.here.rename_table("db.orders", "db.sales")
    assert place.actions() == {"db.sales": "register", "db.orders": "drop"}
    assert (place.rows("db.sales"), place.rows("db.orders")) == (3, None)
    content = place.repository.content("main", ContentKey(("db", "sales")))
    assert place.repository.content(TAG, ContentKey(("db", "sales"))).id == content.id
    assert place.actions() == {}


def test_two_tables_that_exchange_names_are_updated(place: Place) -> None:
    place.create("db.a", "db.b")
    place.append("db.b")
    place.export()
    contents = {name: place.repository.content("main", ContentKey(("db", name))) for name in "ab"}
    place.repository.commit(
        "main",
        [
            Put(ContentKey(("db", "a")), contents["b"], contents["a"]),
            Put(ContentKey(("db", "b")), contents["a"], contents["b"]),
        ],
        CommitMeta("exchange"),
    )
    assert place.actions() == {"db.a": "update", "db.b": "update"}
    assert (place.rows("db.a"), place.rows("db.b")) == (6, 3)


def test_a_deleted_table_is_dropped_only_with_prune(place: Place) -> None:
    place.create("db.orders", "db.items")
    place.export()
    files = sorted(place.warehouse.rglob("*"))
    place.here.drop_table("db.items")
    assert place.actions() == {"db.items": "kept"}
    assert place.rows("db.items") == 3
    tagged = {str(entry.key) for entry in place.repository.entries(TAG)}
    assert "db.items" in tagged, "the tag goes on keeping its files"
    assert place.actions("--prune") == {"db.items": "drop"}
    assert place.rows("db.items") is None
    assert sorted(place.warehouse.rglob("*")) == files
    assert "db.items" not in {str(entry.key) for entry in place.repository.entries(TAG)}
    assert place.actions("--prune") == {}


def test_a_table_that_was_created_again_replaces_the_earlier_one(place: Place) -> None:
    place.create("db.orders")
    place.export()
    place.here.drop_table("db.orders")
    place.here.create_table("db.orders", ROWS.schema, f"{place.warehouse}/again").append(
        pa.concat_tables([ROWS, ROWS, ROWS])
    )
    assert place.actions() == {"db.orders": "update"}
    assert place.rows("db.orders") == 9


def test_a_table_that_changed_there_stops_the_export(place: Place) -> None:
    place.create("db.orders", "db.items")
    place.export()
    tag = place.repository.reference(TAG)
    place.there.load_table("db.orders").append(ROWS)
    changed = place.location("db.orders")
    place.append("db.orders", "db.items")
    ran = place.export(code=3)
    assert "changed in other" in ran.out.replace("\n", " ")
    assert "nothing was exported because of 1 problem" in ran.err
    assert place.location("db.orders") == changed
    assert place.rows("db.items") == 3
    assert place.repository.reference(TAG) == tag
    assert place.references() == {TAG}
    forced = place.export("--force", "--json").json["contents"]
    (orders,) = (one for one in forced if one["name"]["elements"] == ["db", "orders"])
    assert (orders["action"], orders["previousLocation"]) == ("update", changed)
    assert orders["reason"] == "changed in other"
    assert (place.rows("db.orders"), place.rows("db.items")) == (6, 6)


def test_a_change_there_alone_is_a_conflict_too(place: Place) -> None:
    place.create("db.orders")
    place.export()
    place.there.load_table("db.orders").append(ROWS)
    assert place.actions(code=3) == {"db.orders": "conflict"}


def test_another_table_of_the_same_name_stops_the_export(place: Place) -> None:
    place.there.create_namespace("db")
    place.there.create_table("db.orders", ROWS.schema, f"{place.warehouse}/other/orders")
    place.create("db.items", "db.orders")
    assert place.actions(code=3) == {"db.items": "register", "db.orders": "conflict"}
    assert (place.rows("db.items"), place.rows("db.orders")) == (None, 0)
    assert place.references() == set()
    place.export("--force")
    assert place.rows("db.orders") == 3


def test_a_table_that_was_dropped_there_is_a_conflict(place: Place) -> None:
    place.create("db.orders")
    place.export()
    place.there.drop_table("db.orders")
    assert place.actions(code=3) == {"db.orders": "conflict"}
    place.export("--force")
    assert place.rows("db.orders") == 3


def test_a_pruned_table_that_changed_there_is_a_conflict(place: Place) -> None:
    place.create("db.orders")
    place.export()
    place.here.drop_table("db.orders")
    place.there.load_table("db.orders").append(ROWS)
    assert place.actions("--prune", code=3) == {"db.orders": "conflict"}
    assert place.rows("db.orders") == 6


def test_namespaces_come_with_their_properties(place: Place) -> None:
    place.here.create_namespace("sales", {"owner": "eva"})
    place.here.create_namespace("empty", {"x": "1"})
    place.create("sales.orders")
    exported = place.export("--json").json["namespaces"]
    assert [name["elements"] for name in exported] == [["empty"], ["sales"]]
    assert place.there.load_namespace_properties("sales")["owner"] == "eva"
    assert place.there.load_namespace_properties("empty")["x"] == "1"
    place.there.update_namespace_properties("sales", updates={"owner": "ann"})
    place.append("sales.orders")
    place.export()
    assert place.there.load_namespace_properties("sales")["owner"] == "ann"


def test_keys_globs_and_a_revision_select_tables(place: Place) -> None:
    place.create("db.a", "db.b", "x.c")
    place.repository.create_reference(
        ReferenceType.TAG, "v1", place.repository.reference("main").hash
    )
    place.append("db.a")
    assert place.actions("v1", "db.*") == {"db.a": "register", "db.b": "register"}
    assert place.rows("db.a") == 3
    assert place.actions("--", "x.c") == {"x.c": "register"}
    tagged = {str(entry.key) for entry in place.repository.entries(TAG)}
    assert {"db.a", "db.b", "x.c"} <= tagged
    place.append("db.b")
    assert place.actions("main") == {"db.a": "update", "db.b": "update"}
    place.nessie("export", "--to", "other", "main", "nothing.*").expect(4, "nothing.*")
    place.nessie("export", "--to", "other", "nowhere").expect(4, "nowhere")


def test_a_partial_export_keeps_the_files_of_the_others(place: Place) -> None:
    """The table stays registered at its former state, which the tag has to keep."""
    place.create("db.a", "db.b")
    place.export()
    former = place.location("db.a")
    place.append("db.a", "db.b")
    place.export("main", "db.b")
    content = place.repository.content(TAG, ContentKey(("db", "a")))
    assert isinstance(content, IcebergTable)
    assert content.metadata_location == former == place.location("db.a")
    place.here.drop_table("db.a")
    assert place.actions("--prune", "main", "db.b") == {}
    assert place.actions("--prune") == {"db.a": "drop"}


def test_a_prefix_goes_before_each_name(place: Place) -> None:
    place.create("db.orders")
    assert place.actions("--prefix", "lake") == {"lake.db.orders": "register"}
    assert place.rows("lake.db.orders") == 3
    place.append("db.orders")
    assert place.actions("--prefix", "lake") == {"lake.db.orders": "update"}


def put_back(place: Place) -> IcebergTable:
    """Gives the table `db.orders` its first state of two, which has no metadata file alone."""
    place.create("db.orders")
    place.append("db.orders")
    key = ContentKey(("db", "orders"))
    content = place.repository.content("main", key)
    first = place.here.load_table("db.orders").history()[0].snapshot_id
    assert isinstance(content, IcebergTable)
    values = {
        name: getattr(content, name)
        for name in ("id", "metadata_location", "schema_id", "spec_id", "sort_order_id")
    }
    earlier = IcebergTable(**values, snapshot_id=first)
    place.repository.commit("main", [Put(key, earlier, content)], CommitMeta("back"))
    return earlier


def test_a_torn_file_of_an_export_that_was_killed_is_written_again(place: Place) -> None:
    location = own_file(put_back(place)).metadata_location
    Path(location).write_text('{"format-version"')
    place.export()
    assert place.location("db.orders") == location
    assert place.rows("db.orders") == 3


def test_a_state_without_a_metadata_file_of_its_own_gets_one(place: Place) -> None:
    earlier, key = put_back(place), ContentKey(("db", "orders"))
    place.export()
    location = place.location("db.orders")
    assert Path(location).name.startswith("exported-")
    assert place.rows("db.orders") == 3
    tagged = place.repository.content(TAG, key)
    assert isinstance(tagged, IcebergTable)
    assert tagged.metadata_location == location
    assert place.actions() == {}
    assert place.repository.content("main", key) == earlier

    # `nessie gc` keeps the file, which no other branch names.
    place.append("db.orders")
    mark = ("gc", "mark", "--default-cutoff", "1", "--reference-time", "2999-01-01T00:00:00Z")
    assert place.nessie(*mark).code == 0
    for step in (["plan", "--warehouse", str(place.warehouse), "--grace", "0s"], ["approve"]):
        assert place.nessie("gc", *step).code == 0
    assert place.nessie("gc", "apply").code == 0
    assert place.rows("db.orders") == 3


def test_all_problems_are_listed_before_anything_is_written(place: Place) -> None:
    place.create("db.good", "db.lost", "db.torn")
    for name, text in (("lost", None), ("torn", "{")):
        content = place.repository.content("main", ContentKey(("db", name)))
        assert isinstance(content, IcebergTable)
        path = Path(content.metadata_location.removeprefix("file://"))
        path.unlink() if text is None else path.write_text(text)
    top = place.repository.content("main", ContentKey(("db", "good")))
    assert isinstance(top, IcebergTable)
    place.repository.commit(
        "main",
        [
            Put(
                ContentKey(("top",)),
                IcebergTable(metadata_location=top.metadata_location, snapshot_id=top.snapshot_id),
            )
        ],
        CommitMeta("a table without a namespace"),
    )
    ran = place.export("--json", code=2)
    actions = {one["name"]["elements"][-1]: one for one in ran.json["contents"]}
    assert {name: one["action"] for name, one in actions.items()} == {
        "good": "register",
        "lost": "invalid",
        "torn": "invalid",
        "top": "invalid",
    }
    assert "--prefix" in actions["top"]["reason"]
    assert ran.json["wasApplied"] is False
    assert place.rows("db.good") is None
    assert place.references() == set()


def test_contents_of_other_types_are_skipped(place: Place) -> None:
    place.create("db.orders")
    delta = DeltaLakeTable(
        metadata_location_history=("s3://x/_delta_log/1.json",), checkpoint_location_history=()
    )
    place.repository.commit("main", [Put(ContentKey(("db", "d")), delta)], CommitMeta("delta"))
    ran = place.export()
    assert "skipped   db.d" in ran.out
    assert ran.lines[-1] == "main to other: 1 registered, 1 skipped"


VIEW_SQL = "select 1 as one"


def create_view(place: Place, name: str = "db.v") -> None:
    from pyiceberg.schema import Schema
    from pyiceberg.types import IntegerType, NestedField
    from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion

    schema = Schema(NestedField(1, "one", IntegerType(), required=False))
    representation = SQLViewRepresentation(type="sql", sql=VIEW_SQL, dialect="spark")
    version = ViewVersion(
        version_id=1,
        timestamp_ms=1,
        schema_id=0,
        summary={},
        default_namespace=["db"],
        representations=[representation],
    )
    place.here.create_view(name, schema, version, f"{place.warehouse}/views/v")


def test_views_are_registered_where_the_catalog_can(place: Place) -> None:
    place.create("db.orders")
    create_view(place)
    actions = place.actions()
    if place.is_sql:
        assert actions == {"db.orders": "register", "db.v": "skipped"}
        return
    assert actions == {"db.orders": "register", "db.v": "register"}
    assert place.there.view_exists("db.v")
    assert place.actions() == {}
    place.here.drop_view("db.v")
    assert place.actions("--prune") == {"db.v": "kept"}
    assert place.there.view_exists("db.v")
    view = ContentKey(("db", "v"))
    assert view in {entry.key for entry in place.repository.entries(TAG)}, "its files are kept"
    assert place.actions("--prune", "--force") == {"db.v": "skipped"}
    assert view not in {entry.key for entry in place.repository.entries(TAG)}


# -- interruptions ---------------------------------------------------------------------------------


def interrupted_after(
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    calls: int,
    method: str = "register_table",
    *options: str,
) -> None:
    """Exports, and stops like Ctrl-C at a call of the other catalog."""
    kind = type(place.there)
    real: Callable[..., Any] = getattr(kind, method)
    count = 0

    def stopping(self: Any, *args: Any, **named: Any) -> Any:
        nonlocal count
        count += 1
        if count > calls:
            raise KeyboardInterrupt
        return real(self, *args, **named)

    with monkeypatch.context() as patched:
        patched.setattr(kind, method, stopping)
        place.export(*options, code=130)


def test_an_interrupted_export_is_completed_by_the_same_command(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.create("db.a", "db.b", "db.c")
    interrupted_after(place, monkeypatch, 1)
    assert place.references() == {BRANCH}
    assert [place.rows(f"db.{name}") for name in "abc"] == [3, None, None]
    place.append("db.a")
    assert place.actions() == {"db.a": "update", "db.b": "register", "db.c": "register"}
    assert [place.rows(f"db.{name}") for name in "abc"] == [6, 3, 3]
    assert place.references() == {TAG}

    place.append("db.a", "db.b", "db.c")
    interrupted_after(place, monkeypatch, 1)
    assert place.references() == {TAG, BRANCH}
    place.append("db.b")
    place.export()
    assert [place.rows(f"db.{name}") for name in "abc"] == [9, 9, 6]
    assert place.references() == {TAG}
    assert place.actions() == {}


def test_drops_of_an_interrupted_export_are_completed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.create("db.a", "db.b", "db.c", "db.d")
    place.export()
    place.here.drop_table("db.a")
    place.here.drop_table("db.b")
    place.here.rename_table("db.c", "db.renamed")
    interrupted_after(place, monkeypatch, 1, "drop_table", "--prune")
    assert place.rows("db.a") is None
    assert place.references() == {TAG, BRANCH}
    place.append("db.d")
    assert place.actions("--", "db.d") == {"db.b": "drop", "db.c": "drop", "db.d": "update"}
    assert [place.rows(f"db.{name}") for name in ("a", "b", "c")] == [None] * 3
    assert (place.rows("db.renamed"), place.rows("db.d")) == (3, 6)
    assert place.references() == {TAG}


def test_a_table_that_an_interrupted_export_was_to_drop_and_that_changed_is_a_conflict(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.create("db.a")
    place.export()
    place.here.drop_table("db.a")
    interrupted_after(place, monkeypatch, 0, "drop_table", "--prune")
    place.there.load_table("db.a").append(ROWS)
    assert place.actions(code=3) == {"db.a": "conflict"}
    assert place.rows("db.a") == 6
    assert place.references() == {TAG, BRANCH}, "the tag keeps its files"


@sql_only
def test_an_interruption_between_drop_and_register_registers_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.create("db.a")
    place.export()
    place.append("db.a")
    interrupted_after(place, monkeypatch, 0)
    assert place.rows("db.a") is None, "the gap"
    assert place.actions() == {"db.a": "register"}
    assert place.rows("db.a") == 6


@sql_only
def test_a_table_that_cannot_be_registered_again_keeps_its_former_state(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.create("db.a")
    place.export()
    place.append("db.a")
    kind = type(place.there)
    real = kind.register_table
    failures = [OSError("the disk is full")]

    def failing(self: Any, *args: Any, **options: Any) -> Any:
        if failures:
            raise failures.pop()
        return real(self, *args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(kind, "register_table", failing)
        ran = place.export(code=7)
    assert "other cannot be written: the disk is full" in ran.err
    assert place.rows("db.a") == 3
    place.export()
    assert place.rows("db.a") == 6


def test_a_table_that_changes_after_the_plan_stops_the_export(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nessie_cli.exporting import run

    place.create("db.a")
    place.export()
    place.append("db.a")
    real = run.write_files

    def meanwhile(*args: Any) -> None:
        place.there.load_table("db.a").append(ROWS)
        place.there.load_table("db.a").append(ROWS)
        real(*args)

    with monkeypatch.context() as patched:
        patched.setattr(run, "write_files", meanwhile)
        ran = place.export(code=3)
    assert "db.a has changed in other since the plan" in ran.err
    assert place.rows("db.a") == 9
    assert place.actions(code=3) == {"db.a": "conflict"}


# -- gaps, other catalogs, wrong input -------------------------------------------------------------


@sql_only
def test_a_script_needs_an_option_for_gaps(place: Place) -> None:
    place.create("db.a")
    place.export()
    place.append("db.a")
    ran = place.nessie("export", "--to", "other")
    ran.expect(2, "sql cannot replace a table, so 1 table must be dropped", "--allow-gap")
    assert place.rows("db.a") == 3
    assert place.references() == {TAG}


@rest_only
def test_rest_needs_no_option(place: Place) -> None:
    place.create("db.a")
    assert place.nessie("export", "--to", "other").code == 0
    place.append("db.a")
    assert place.nessie("export", "--to", "other").code == 0
    assert place.rows("db.a") == 6


@sql_only
def test_a_terminal_is_asked_about_gaps(place: Place, answering) -> None:
    place.create("db.a")
    place.export()
    place.append("db.a")
    shown = answering("n\n", "export", "--to", "other")
    assert shown.code == 1
    assert "update  db.a" in shown.plain
    assert place.rows("db.a") == 3
    assert answering("y\n", "export", "--to", "other").code == 0
    assert place.rows("db.a") == 6


def test_100_tables(place: Place) -> None:
    place.create("db.t")
    content = place.repository.content("main", ContentKey(("db", "t")))
    assert isinstance(content, IcebergTable)
    first = Path(content.metadata_location.removeprefix("file://"))
    document = json.loads(first.read_text())
    puts = []
    for number in range(100):
        copy = first.with_name(f"{number:05}-copy.metadata.json")
        uuid = f"{number:08}-0000-4000-8000-000000000000"
        copy.write_text(json.dumps(document | {"table-uuid": uuid}))
        table = IcebergTable(metadata_location=str(copy), snapshot_id=content.snapshot_id)
        puts.append(Put(ContentKey(("many", f"t{number:03}")), table))
    namespace = Put(ContentKey(("many",)), Namespace(elements=("many",)))
    place.repository.commit("main", [namespace, *puts], CommitMeta("many"))
    assert len(place.actions()) == 101
    assert len(place.there.list_tables("many")) == 100
    assert place.actions() == {}


def test_a_catalog_that_is_down_is_reported_before_anything_is_written(
    nessie: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert nessie("init").code == 0
    for type_, uri in (("rest", "http://127.0.0.1:9"), ("sql", "sqlite:////nowhere/x/y.sqlite")):
        monkeypatch.setenv(f"{PREFIX}TYPE", type_)
        monkeypatch.setenv(f"{PREFIX}URI", uri)
        with ExitStack() as stack:
            place = Place(nessie, tmp_path, {"type": type_}, stack)
            place.here.create_namespace_if_not_exists("db")
            if not place.here.table_exists("db.a"):
                place.create("db.a")
            ran = nessie("export", "--to", "other")
            assert ran.code == 7, ran
            assert len(ran.err.splitlines()) == 1
            assert TAG not in place.references()


def test_an_unknown_catalog_and_the_repository_itself_are_refused(
    nessie: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert nessie("init").code == 0
    nessie("export", "--to", "nowhere").expect(4, "no catalog nowhere")
    nessie("export").expect(2, "--to")
    nessie("export", "--to", "").expect(2)
    monkeypatch.setenv(f"{PREFIX}PY_CATALOG_IMPL", "nessie_cli.iceberg.catalog.NessieCatalog")
    with connect(str(tmp_path / ".nessie" / "store.sqlite")) as repository:
        monkeypatch.setenv(f"{PREFIX}URI", repository.url)
    nessie("export", "--to", "other").expect(2, "other is this repository itself")


def test_an_export_over_a_server(place: Place, tmp_path: Path) -> None:
    place.create("db.orders")
    servers = Servers()
    try:
        with servers.serving(f"sqlite:///{tmp_path}/.nessie/store.sqlite") as address:
            place.export("--store", address)
            assert place.rows("db.orders") == 3
            place.here.rename_table("db.orders", "db.sales")
            place.export("--store", address)
    finally:
        servers.close()
    assert (place.rows("db.sales"), place.rows("db.orders")) == (3, None)
    assert place.references() == {TAG}


def test_an_export_from_a_server_without_extensions_does_not_follow_renames(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nessie_cli.repository.remote.session.ANNOUNCED", "nothing")
    place.create("db.orders")
    servers = Servers()
    try:
        with servers.serving(f"sqlite:///{tmp_path}/.nessie/store.sqlite") as address:
            at = ("--store", address)
            assert place.actions(*at) == {"db.orders": "register"}
            tag = place.repository.reference(TAG)
            assert place.actions(*at) == {}
            assert place.repository.reference(TAG) == tag
            place.append("db.orders")
            assert place.actions(*at) == {"db.orders": "update"}
            assert place.rows("db.orders") == 6
            place.here.rename_table("db.orders", "db.sales")
            actions = place.actions("--prune", *at)
            assert actions == {"db.sales": "register", "db.orders": "drop"}
    finally:
        servers.close()
    assert (place.rows("db.sales"), place.rows("db.orders")) == (6, None)


def test_another_store_of_nessie_is_a_target(
    nessie: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert nessie("init").code == 0
    assert nessie("init", "other").code == 0
    implementation = "nessie_cli.iceberg.catalog.NessieCatalog"
    other = {
        "py-catalog-impl": implementation,
        "uri": f"{tmp_path}/other/.nessie/store.sqlite",
        "warehouse": f"{tmp_path}/other",
    }
    for name, value in other.items():
        monkeypatch.setenv(PREFIX + name.upper().replace("-", "_"), value)
    with ExitStack() as stack:
        place = Place(nessie, tmp_path, {"type": "nessie"}, stack)
        monkeypatch.setattr(place, "_other", other)
        place.create("db.a")
        create_view(place)
        assert place.actions() == {"db.a": "register", "db.v": "register"}
        place.append("db.a")
        assert nessie("export", "--to", "other").code == 0, "no gap"
        assert place.rows("db.a") == 6


@rest_only
def test_a_server_that_ignores_overwrite_is_reported_and_needs_the_option(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type(place.there)
    real = kind.register_table

    def ignoring(self: Any, name: Any, location: str, overwrite: bool = False) -> Any:
        return real(self, name, location)

    place.create("db.a")
    place.export()
    place.append("db.a")
    with monkeypatch.context() as patched:
        patched.setattr(kind, "register_table", ignoring)
        ran = place.nessie("export", "--to", "other")
        ran.expect(2, "other cannot replace a table, so db.a must be dropped", "--allow-gap")
        assert place.rows("db.a") == 3
        place.export()
    assert place.rows("db.a") == 6
    assert place.references() == {TAG}


def test_a_pruned_table_that_was_renamed_there_keeps_its_files(place: Place) -> None:
    place.create("db.orders", "db.items")
    place.export()
    place.there.rename_table("db.orders", "db.theirs")
    place.here.drop_table("db.orders")
    assert place.actions("--prune") == {"db.orders": "kept"}
    assert ContentKey(("db", "orders")) in {entry.key for entry in place.repository.entries(TAG)}
    assert "dropped or renamed in other" in place.export("--prune").out.replace("\n", " ")
    assert place.actions("--prune", "--force") == {}
    assert ContentKey(("db", "orders")) not in {
        entry.key for entry in place.repository.entries(TAG)
    }
    assert place.rows("db.theirs") == 3


def test_a_forced_drop_names_the_metadata_file_that_the_table_had_there(place: Place) -> None:
    place.create("db.orders")
    place.export()
    place.here.drop_table("db.orders")
    place.there.load_table("db.orders").append(ROWS)
    changed = place.location("db.orders")
    refused = place.export("--prune", code=3)
    assert "Hint: with --force" in refused.err
    forced = place.export("--prune", "--force")
    assert changed in "".join(forced.out.split())
    assert place.rows("db.orders") is None


@rest_only
def test_force_is_no_advice_against_a_view(place: Place) -> None:
    place.create("db.orders")
    create_view(place)
    place.export("main", "db.v")
    place.here.drop_view("db.v")
    place.here.rename_table("db.orders", "db.v")
    for options in ((), ("--force",)):
        ran = place.export(*options, code=3)
        assert "other has a view of this name" in ran.out.replace("\n", " ")
        assert "--force" not in ran.err
