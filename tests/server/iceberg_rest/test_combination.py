"""A server with warehouses combines the tables that both sides of a merge changed."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import fastavro
import pytest
from msgspec import structs
from pyiceberg.catalog.rest import RestCatalog

from nessie_cli import connect
from nessie_cli.errors import InvalidInput, MergeConflict, NotAllowed, NotFound
from nessie_cli.iceberg.warehouses.configuration import from_options
from nessie_cli.iceberg.warehouses.warehouse import Warehouses
from nessie_cli.model import (
    NO_ANCESTOR,
    Collision,
    CombinationRules,
    CombinedTable,
    CommitMeta,
    ContentKey,
    ContentPlace,
    IcebergTable,
    Namespace,
    Put,
    ReferenceType,
    Secret,
)
from nessie_cli.repository.access import Access, Bearer
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import MergeOptions, PutSettings, TablePlaces
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from tests.server.client import Answer, Client
from tests.server.iceberg_rest.appends import append, create, ids, rows, table, two_appends
from tests.server.iceberg_rest.lake import Lake, lake
from tests.server.iceberg_rest.test_rights import Ruled, ruled
from tests.server.serving import serving

T = ContentKey(("db", "t"))
COMBINING = MergeOptions(combination=CombinationRules())


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Lake]:
    with two_appends(tmp_path / "warehouse") as served:
        yield served


@pytest.fixture
def client(two: Lake) -> Iterator[Repository]:
    with connect(two.url) as opened:
        yield opened


def sent(
    two: Lake,
    verb: str = "merge",
    *,
    header: str = "1",
    query: str = "",
    client: Client | None = None,
    **body: Any,
) -> Answer:
    source = two.repository.reference("dev").hash
    document = {
        "fromRefName": "dev",
        "fromHash": source,
        "perContent": True,
        "isReturnConflictAsResult": True,
        "combination": {},
        **body,
    }
    headers = {"Nessie-Cli": header} if header else {}
    if query:
        headers["Nessie-Request-Id"] = query
    path = f"/api/v2/trees/main/history/combining-{verb}"
    return (client or two.client).send("POST", path, document, headers)


def test_two_appends_merge(two: Lake, client: Repository) -> None:
    assert client.combining_server is not None
    data = set(two.folder.rglob("*.parquet"))
    result = client.merge("main", "dev", COMBINING)
    (detail,) = result.details
    assert detail.combination is not None
    assert (detail.combination.added_files, detail.combination.added_rows) == (1, 1)
    assert isinstance(detail.result, IcebergTable)
    assert detail.result == client.content("main", T)
    assert ids(two.url, "main") == [1, 2, 3, 10, 20]
    assert set(two.folder.rglob("*.parquet")) == data
    assert not client.merge("main", "dev", COMBINING).applied


def test_a_dry_run_says_the_same_and_writes_nothing(two: Lake, client: Repository) -> None:
    before = two.files()
    result = client.merge("main", "dev", structs.replace(COMBINING, dry_run=True))
    (detail,) = result.details
    assert detail.combination is not None
    assert isinstance(detail.result, IcebergTable)
    assert detail.result.id == client.content("main", T).id
    assert two.files() == before
    assert ids(two.url, "main") == [1, 2, 3, 10]


def test_each_transplanted_commit_is_combined(two: Lake, client: Repository) -> None:
    append(two.url, "dev", 21)
    commits = [entry.hash for entry in islice(client.log("dev"), 2)][::-1]
    result = client.transplant("main", commits, COMBINING)
    (detail,) = result.details
    assert detail.combination is not None
    assert detail.combination.added_files == 2
    assert ids(two.url, "main") == [1, 2, 3, 10, 20, 21]


def test_without_the_request_a_merge_is_a_conflict(two: Lake, client: Repository) -> None:
    before = two.files()
    with pytest.raises(MergeConflict):
        client.merge("main", "dev")
    assert two.files() == before


def test_a_collision_is_described(two: Lake, client: Repository) -> None:
    for ref in ("main", "dev"):
        with table(two.url, ref) as opened:
            opened.overwrite(rows(1, 2, 3, 4))
    before = two.files()
    with pytest.raises(MergeConflict) as refused:
        client.merge("main", "dev", COMBINING)
    (conflict,) = refused.value.conflicts
    assert conflict.collisions
    assert conflict.collisions[0].files
    assert isinstance(conflict.actual, IcebergTable)
    assert two.files() == before


def test_the_files_of_a_collision_are_read_once(two: Lake, client: Repository) -> None:
    for ref in ("main", "dev"):
        with table(two.url, ref) as opened:
            opened.overwrite(rows(1, 2, 3, 4))
    dry_run = structs.replace(COMBINING, dry_run=True)

    def collisions() -> tuple[Collision, ...]:
        with pytest.raises(MergeConflict) as refused:
            client.merge("main", "dev", dry_run)
        (conflict,) = refused.value.conflicts
        return conflict.collisions

    first = collisions()
    theirs = client.content("dev", T)
    assert isinstance(theirs, IcebergTable)
    file = Path(theirs.metadata_location.removeprefix("file://"))
    aside = file.rename(file.with_suffix(".aside"))
    assert collisions() == first
    # Another state is read, and an error of reading is not cached.
    aside.rename(file)
    append(two.url, "dev", 21)
    newer = client.content("dev", T)
    assert isinstance(newer, IcebergTable)
    file = Path(newer.metadata_location.removeprefix("file://"))
    aside = file.rename(file.with_suffix(".aside"))
    assert "no such file" in collisions()[0].reason
    aside.rename(file)
    assert "no such file" not in collisions()[0].reason


def test_excluded_keys_stay_in_conflict(two: Lake, client: Repository) -> None:
    options = MergeOptions(combination=CombinationRules(excluded=(T,)))
    with pytest.raises(MergeConflict) as refused:
        client.merge("main", "dev", options)
    assert not refused.value.conflicts[0].collisions


def test_a_branch_that_changes_only_by_merges(two: Lake, client: Repository) -> None:
    two.repository.submit(PutSettings({"protect.main": "merge-only"}))
    client.merge("main", "dev", COMBINING)
    assert ids(two.url, "main") == [1, 2, 3, 10, 20]


def test_a_request_id_is_carried_out_once(two: Lake, client: Repository) -> None:
    first = sent(two, query="once")
    assert first.status == 200
    append(two.url, "main", 11)
    files, head = two.files(), client.reference("main").hash
    again = sent(two, query="once")
    assert again.status == 200
    assert again.body["resultantTargetHash"] == first.body["resultantTargetHash"]
    assert again.body["effectiveTargetHash"] == first.body["effectiveTargetHash"]
    [detail] = again.body["details"]
    assert detail["key"] == {"elements": ["db", "t"]}
    assert detail["sourceAt"] == first.body["details"][0]["sourceAt"]
    assert (two.files(), client.reference("main").hash) == (files, head)
    other = sent(two, query="once", message="another one")
    assert other.status == 400


def test_only_clients_that_know_the_extensions_find_it(two: Lake) -> None:
    assert sent(two, header="").status == 404
    assert sent(two, perContent=False).status == 400
    assert sent(two, combination={"speed": 9}).status == 400
    assert sent(two, combination=[]).status == 400
    assert sent(two, "transplant").status == 400
    assert ids(two.url, "main") == [1, 2, 3, 10]


def test_merges_at_once_lose_no_row(tmp_path: Path) -> None:
    with lake(tmp_path / "warehouse") as served, connect(served.url) as client:
        create(served.url)
        names = [f"b{number}" for number in range(6)]
        for number, name in enumerate(names):
            served.branch(name)
            append(served.url, name, 100 + number)

        def merge(name: str) -> None:
            client.merge("main", name, COMBINING)

        def write(number: int) -> None:
            append(served.url, "main", number)

        with ThreadPoolExecutor(8) as threads:
            running = [threads.submit(merge, name) for name in names]
            running += [threads.submit(write, number) for number in (7, 8)]
            failed = [error for each in running if (error := each.exception()) is not None]
        # PyIceberg gives up after some lost races; a merge never does.
        assert all("CommitFailed" in type(error).__name__ for error in failed)
        expected = {1, 2, 3, *range(100, 106)}
        there = ids(served.url, "main")
        assert len(there) == len(set(there))
        assert set(there) >= expected
        assert len(there) >= len(expected) + 2 - len(failed)
        named = {
            content.metadata_location
            for entry in client.log("main")
            if isinstance(content := client.contents(f"@{entry.hash}", [T]).get(T), IcebergTable)
        }
        branches = [client.content(name, T) for name in names]
        named |= {each.metadata_location for each in branches if isinstance(each, IcebergTable)}
        written = {f"file://{path}" for path in served.folder.rglob("*.metadata.json")}
        assert written == named


# -- rights ----------------------------------------------------------------------------------------

SEE = "op in ['VIEW_REFERENCE', 'READ_ENTRIES', 'READ_CONTENT_KEY', 'LIST_COMMIT_LOG']"
READ, COMMIT = "op == 'READ_ENTITY_VALUE'", "op == 'COMMIT_CHANGE_AGAINST_REFERENCE'"
WRITE = "op in ['COMMIT_CHANGE_AGAINST_REFERENCE', 'UPDATE_ENTITY', 'CREATE_ENTITY']"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Ruled]:
    yield from guarded(tmp_path)


def guarded(tmp_path: Path, warehouses: Warehouses | None = None) -> Iterator[Ruled]:
    for found in ruled(tmp_path, warehouses):
        token = found.as_("writer", "admin").token or ""
        with closing(RestCatalog("lake", uri=f"{found.url}/iceberg/main", token=token)) as catalog:
            catalog.drop_table("db.t")
        create(found.url, token=token)
        head = found.repository.reference("main").hash
        found.repository.create_reference(ReferenceType.BRANCH, "dev", head)
        append(found.url, "main", 10, token=token)
        append(found.url, "dev", 20, token=token)
        yield found


@contextmanager
def as_(server: Ruled, name: str) -> Iterator[Repository]:
    token = server.as_(name).token
    with connect(server.url, access=Access(Bearer(Secret(token or "")))) as opened:
        yield opened


@pytest.mark.parametrize(
    "rules",
    [
        [f"{SEE} || {WRITE}"],
        [f"{SEE} || {WRITE}", f"{READ} && ref == 'main'"],
        [f"{SEE} || {READ} || {COMMIT} || (op == 'UPDATE_ENTITY' && path != 'db.t')"],
    ],
)
def test_a_caller_needs_the_rights_of_a_merge(server: Ruled, rules: list[str]) -> None:
    server.rule(*rules)
    files = server.served.files()
    with as_(server, "ada") as ada, pytest.raises(NotAllowed):
        ada.merge("main", "dev", COMBINING)
    assert server.served.files() == files


def test_a_caller_who_may_not_read_ours_learns_nothing_about_its_files(server: Ruled) -> None:
    server.rule(f"{SEE} || {WRITE}", f"{READ} && ref == 'dev'")
    files = server.served.files()
    answer = sent(server.served, client=server.as_("ada"))
    (detail,) = answer.body["details"]
    (collision,) = detail["conflict"]["collisions"]
    assert "'READ_ENTITY_VALUE' is not allowed" in collision["reason"]
    assert not collision["files"]
    assert server.served.files() == files


def test_a_caller_with_these_rights_combines(server: Ruled) -> None:
    server.rule(f"{SEE} || {WRITE} || {READ}")
    with as_(server, "ada") as ada:
        assert ada.merge("main", "dev", COMBINING).applied


def test_files_of_a_collision_need_the_right_to_read_rows(server: Ruled) -> None:
    """Their partitions are values of rows."""
    served = server.served
    for ref in ("main", "dev"):
        with table(served.url, ref, token=server.as_("writer", "admin").token or "") as opened:
            opened.overwrite(rows(1, 2, 3, 4))
    rules = f"{SEE} || {WRITE} || {READ}"
    for more, shows_files in (" || op == 'READ_ROWS'", True), ("", False):
        server.rule(rules + more)
        answer = sent(served, client=server.as_("ada"))
        (detail,) = answer.body["details"]
        (collision,) = detail["conflict"]["collisions"]
        assert collision["reason"]
        assert bool(collision["files"]) == shows_files
        with as_(server, "ada") as ada:
            (single,) = combined(ada, places(served)).collisions
        assert bool(single.files) == shows_files


def test_files_elsewhere_in_a_guarded_warehouse_are_not_read(tmp_path: Path) -> None:
    (warehouse,) = from_options([str(tmp_path / "warehouse")]).all
    guarded_one = Warehouses([structs.replace(warehouse, choose_locations=False)])
    for server in guarded(tmp_path, guarded_one):
        server.rule(f"{SEE} || {WRITE} || {READ}")
        current = server.repository.content("main", T)
        assert isinstance(current, IcebergTable)
        path = Path(current.metadata_location.removeprefix("file://"))
        elsewhere = tmp_path / "warehouse" / "other" / "list.avro"
        elsewhere.parent.mkdir()
        for listed in path.parent.glob("snap-*.avro"):
            elsewhere.write_bytes(listed.read_bytes())
            path.write_text(path.read_text().replace(f"file://{listed}", f"file://{elsewhere}"))
        files = server.served.files()
        with as_(server, "ada") as ada, pytest.raises(MergeConflict) as error:
            ada.merge("main", "dev", COMBINING)
        assert not error.value.conflicts[0].collisions
        assert server.served.files() == files


# -- single tables ---------------------------------------------------------------------------------


def places(two: Lake, *, dry_run: bool = False, **hashes: str) -> TablePlaces:
    """Returns the three states of the merge of dev into main."""
    repository = two.repository
    at = {
        "base": repository.merge_base("main", "dev"),
        "ours": repository.reference("main").hash,
        "theirs": repository.reference("dev").hash,
        **hashes,
    }
    found = {name: ContentPlace(hash_, T) for name, hash_ in at.items()}
    return TablePlaces("main", **found, description="a test", dry_run=dry_run)


def combined(repository: Repository, table: TablePlaces) -> CombinedTable:
    server = repository.combining_server
    assert server is not None
    return server.combine_table(table, CombinationRules())


def test_one_table_is_combined_for_a_commit(two: Lake, client: Repository) -> None:
    before = two.files()
    dry = combined(client, places(two, dry_run=True))
    assert dry.combination is not None
    assert two.files() == before
    table = combined(client, places(two))
    assert table.combination == dry.combination
    assert table.content is not None
    assert table.content.id == client.content("main", T).id
    expected = client.content("main", T)
    client.commit("main", [Put(T, table.content, expected)], CommitMeta("combined"))
    assert ids(two.url, "main") == [1, 2, 3, 10, 20]


def test_the_states_must_be_of_one_table_that_the_caller_may_change(server: Ruled) -> None:
    served = server.served
    server.rule(f"{SEE} || {READ} || {COMMIT}")
    with as_(server, "ada") as ada, pytest.raises(NotAllowed, match="UPDATE_ENTITY"):
        combined(ada, places(served))
    with as_(server, "root") as nobody, pytest.raises(NotFound):
        combined(nobody, places(served, base="00" * 32))


def test_a_table_is_combined_only_for_a_branch_that_has_it(server: Ruled) -> None:
    """Otherwise rights on an own branch would show partitions of the tables of others."""
    served, repository = server.served, server.repository
    repository.create_reference(ReferenceType.BRANCH, "own", NO_ANCESTOR)
    server.rule(f"ref != 'own' && ({SEE} || {READ})", "ref == 'own'")
    namespace = Put(ContentKey(("db",)), Namespace(elements=("db",)))
    another = Put(T, IcebergTable(metadata_location="file:/another.json"))
    files = served.files()
    with as_(server, "ada") as ada:
        for contents in ([], [namespace, another]):
            if contents:
                repository.commit("own", contents, CommitMeta("another table"))
            with pytest.raises(InvalidInput, match="branch 'own'"):
                combined(ada, structs.replace(places(served), branch="own"))
    assert served.files() == files


@pytest.mark.parametrize("hash_", ["", "ab", "main", "~1"])
def test_the_states_are_named_by_whole_hashes(two: Lake, client: Repository, hash_: str) -> None:
    with pytest.raises(InvalidInput, match="whole hash"):
        combined(client, places(two, base=hash_))


def test_a_table_outside_of_the_warehouses_is_left_to_the_client(two: Lake, tmp_path: Path) -> None:
    other = from_options([str(tmp_path / "nothing")])
    app = application(two.repository, Parts(warehouses=other))
    with serving(app=app) as url, connect(url) as client:
        table = combined(client, places(two))
        assert table == CombinedTable()
        with pytest.raises(MergeConflict) as error:
            client.merge("main", "dev", COMBINING)
        assert not error.value.conflicts[0].collisions


# -- hostile files ---------------------------------------------------------------------------------


def list_of(two: Lake, ref: str) -> Path:
    """Returns the manifest list of the table on a branch."""
    with table(two.url, ref) as opened:
        snapshot = opened.current_snapshot()
        assert snapshot is not None
        return Path(snapshot.manifest_list.removeprefix("file://"))


def avro(schema: Any, rows: list[Any]) -> bytes:
    file = io.BytesIO()
    fastavro.writer(file, schema, rows)
    return file.getvalue()


NESTED = {
    "type": "record",
    "name": "m",
    "fields": [
        {"name": "manifest_path", "type": "string"},
        {"name": "next", "type": ["null", "m"], "default": None},
    ],
}
PATH = {"name": "manifest_path", "type": "string"}
TEXT_ID = {"name": "added_snapshot_id", "type": "string"}


@pytest.mark.parametrize(
    ("schema", "rows", "reason"),
    [
        (NESTED, [{"manifest_path": "a", "next": {"manifest_path": "b"}}], "contains itself"),
        ("string", ["abc"], "not a valid manifest list"),
        ({"type": "array", "items": "int"}, [[1]], "not a valid manifest list"),
        (
            {"type": "record", "name": "m", "fields": [PATH]},
            [{"manifest_path": "a"}],
            "not a valid",
        ),
        (
            {"type": "record", "name": "m", "fields": [PATH, TEXT_ID]},
            [{"manifest_path": "a", "added_snapshot_id": "z"}],
            "not a valid",
        ),
    ],
)
def test_a_hostile_manifest_list_is_a_conflict_with_its_reason(
    two: Lake, client: Repository, schema: Any, rows: list[Any], reason: str
) -> None:
    list_of(two, "dev").write_bytes(avro(schema, rows))
    files = two.files()
    with pytest.raises(MergeConflict) as error:
        client.merge("main", "dev", COMBINING)
    (conflict,) = error.value.conflicts
    assert reason in conflict.collisions[0].reason
    assert two.files() == files
    two.client.get("/api/v2/config").expect(200)


@pytest.mark.parametrize("member", ["record_count", "file_path", "partition"])
def test_a_manifest_with_other_types_is_a_conflict_with_its_reason(
    two: Lake, client: Repository, member: str
) -> None:
    with list_of(two, "dev").open("rb") as file:
        listed = next(iter(fastavro.reader(file)))
    manifest = Path(listed["manifest_path"].removeprefix("file://"))
    with manifest.open("rb") as file:
        reader: Any = fastavro.reader(file)
        rows, schema = list(reader), reader.writer_schema
    for field in schema["fields"]:
        if field["name"] == "data_file":
            for inner in field["type"]["fields"]:
                if inner["name"] == member:
                    inner["type"] = {"type": "array", "items": "int"}
    manifest.write_bytes(
        avro(schema, [{**row, "data_file": {**row["data_file"], member: [1]}} for row in rows])
    )
    with pytest.raises(MergeConflict) as error:
        client.merge("main", "dev", COMBINING)
    assert "is not a valid manifest" in error.value.conflicts[0].collisions[0].reason


def test_no_file_is_written_into_another_warehouse(tmp_path: Path) -> None:
    """The location in the metadata is the caller's."""
    (own,) = from_options([f"o={tmp_path / 'warehouse'}"]).all
    (other,) = from_options([f"g={tmp_path / 'guarded'}"]).all
    both = Warehouses([own, structs.replace(other, choose_locations=False)])
    with lake(tmp_path / "warehouse", both) as served, connect(served.url) as client:
        create(served.url)
        served.branch("dev")
        append(served.url, "main", 10)
        append(served.url, "dev", 20)
        current = served.repository.content("main", T)
        assert isinstance(current, IcebergTable)
        path = Path(current.metadata_location.removeprefix("file://"))
        document = json.loads(path.read_text())
        folder = tmp_path / "guarded" / "db" / "victim" / "metadata"
        document["properties"]["write.metadata.path"] = f"file://{folder}"
        path.write_text(json.dumps(document))
        with pytest.raises(MergeConflict):
            client.merge("main", "dev", COMBINING)
        assert combined(client, places(served)) == CombinedTable()
        assert not folder.exists()
