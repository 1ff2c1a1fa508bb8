"""`nessie content expire`: snapshots leave the metadata of a branch, files stay."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table
from pyiceberg.types import StringType

from nessie_cli.iceberg.files import Files
from nessie_cli.model import ReferenceType
from nessie_cli.repository.opening import connect
from tests.cli.lake import Lake
from tests.command.in_process import InProcess
from tests.command.process import run
from tests.store.postgres_server import new_url

NOW = ("--older-than", "0s")
"""Everything is old enough."""


def metadata(lake: Lake, ref: str = "main") -> dict[str, Any]:
    with lake.table(ref) as table:
        document: dict[str, Any] = json.loads(Path(table.metadata_location).read_bytes())
    return document


def snapshots(lake: Lake, ref: str = "main") -> list[int]:
    return [each["snapshot-id"] for each in metadata(lake, ref)["snapshots"]]


def add_column(table: Table, name: str) -> None:
    with table.update_schema() as update:
        update.add_column(name, StringType())


@pytest.fixture
def alone(nessie: InProcess, lake: Lake) -> Lake:
    """A lake with one branch, whose table has four snapshots."""
    assert nessie("branch", "-d", "dev").code == 0
    for id_ in (10, 11, 12):
        lake.append("main", id_)
    return lake


def test_old_snapshots_go_in_one_commit_and_no_file_does(nessie: InProcess, alone: Lake) -> None:
    before, files = metadata(alone), alone.files()
    id_ = nessie("content", "show", "db.t", "--json").json["content"]["id"]
    head = nessie("log", "-n", "1", "--json").json["logEntries"][0]["commitMeta"]["hash"]
    ran = nessie("content", "expire", "db.t", *NOW, "--keep-last", "2")
    assert ran.code == 0, ran.err
    assert ran.lines[1].split() == ["db.t", "2", "2", "0", "0"]
    after = metadata(alone)
    assert after["snapshots"] == before["snapshots"][2:]
    assert after["current-snapshot-id"] == before["current-snapshot-id"]
    assert after["snapshot-log"] == before["snapshot-log"][2:]
    assert after["metadata-log"][:-1] == before["metadata-log"]
    (new,) = alone.files() - files
    assert new.name.endswith(".metadata.json")
    assert files < alone.files()
    assert alone.ids("main") == [1, 2, 3, 10, 11, 12]
    (entry, earlier) = nessie("log", "-n", "2", "--json").json["logEntries"]
    assert entry["commitMeta"]["message"] == "expire snapshots of db.t"
    assert earlier["commitMeta"]["hash"] == head
    assert nessie("content", "show", "db.t", "--json").json["content"]["id"] == id_
    assert nessie("audit").code == 0
    # The state before can be read, and comes back.
    assert nessie("undo").code == 0
    assert metadata(alone) == before


def test_the_message_is_ours(nessie: InProcess, alone: Lake) -> None:
    assert nessie("content", "expire", "db.t", *NOW, "-m", "tidy up").code == 0
    (entry,) = nessie("log", "-n", "1", "--json").json["logEntries"]
    assert entry["commitMeta"]["message"] == "tidy up"


def test_nothing_is_committed_if_nothing_is_old(nessie: InProcess, alone: Lake) -> None:
    files = alone.files()
    head = nessie("log", "-n", "1").out
    ran = nessie("content", "expire", "db.t")
    assert (ran.code, ran.out) == (0, "nothing to expire in 1 table of main\n")
    ran = nessie("content", "expire", "db.t", "--json")
    assert (ran.code, ran.json["wasApplied"]) == (0, False)
    assert (ran.json["tables"][0]["removed"], ran.json["tables"][0]["kept"]) == (0, 4)
    assert nessie("log", "-n", "1").out == head
    assert alone.files() == files


def test_a_dry_run_says_what_gc_could_free(nessie: InProcess, alone: Lake) -> None:
    with alone.table("main") as table:
        table.overwrite(table.scan().to_arrow())
    old = alone.data_files() - {
        Path(task.file.file_path.removeprefix("file://")) for task in _tasks(alone)
    }
    files = alone.files()
    dry = nessie("content", "expire", "db.t", *NOW, "--dry-run", "--json")
    assert dry.code == 0, dry.err
    (table_,) = dry.json["tables"]
    assert (dry.json["wasApplied"], table_["removed"], table_["freedNow"]) == (False, 5, 0)
    data = sum(path.stat().st_size for path in old)
    assert table_["freedLater"] > data
    manifests = sum(path.stat().st_size for path in files if path.suffix == ".avro")
    assert table_["freedLater"] < data + manifests
    shown = nessie("content", "expire", "db.t", *NOW, "--dry-run")
    assert "can free 0 bytes now, because older commits name the files" in shown.err
    assert "would commit 1 key to main; nothing was written\n" in shown.out
    assert alone.files() == files
    # A tag keeps all of it.
    assert nessie("tag", "v1").code == 0
    (table_,) = nessie("content", "expire", "db.t", *NOW, "--dry-run", "--json").json["tables"]
    assert table_["freedLater"] == 0


def _tasks(lake: Lake) -> Sequence[Any]:
    with lake.table("main") as table:
        return list(table.scan().plan_files())


def test_unused_schemas_and_specs_go_and_their_ids_are_not_given_again(
    nessie: InProcess, alone: Lake
) -> None:
    with alone.table("main") as table:
        add_column(table, "a")
        add_column(table, "b")
        with table.update_spec() as spec:
            spec.add_identity("v")
        with table.update_spec() as spec:
            spec.remove_field("v")
            spec.add_identity("n")
        table.overwrite(table.scan().to_arrow())
    before = metadata(alone)
    assert len(before["schemas"]) == 3
    assert len(before["partition-specs"]) == 3
    ran = nessie("content", "expire", "db.t", *NOW, "--json")
    assert ran.code == 0, ran.err
    (done,) = ran.json["tables"]
    assert (done["schemas"], done["specs"]) == ([0, 1], [0, 1])
    after = metadata(alone)
    assert [each["schema-id"] for each in after["schemas"]] == [2]
    assert [each["spec-id"] for each in after["partition-specs"]] == [2]
    assert len(alone.ids("main")) == 6
    with alone.table("main") as table, table.update_spec() as spec:
        spec.add_identity("a")
    assert [each["spec-id"] for each in metadata(alone)["partition-specs"]] == [2, 3]


def test_a_spec_of_live_files_stays(nessie: InProcess, alone: Lake) -> None:
    with alone.table("main") as table:
        with table.update_spec() as spec:
            spec.add_identity("v")
        with table.update_spec() as spec:
            spec.add_identity("n")
    alone.append("main", 20)
    ran = nessie("content", "expire", "db.t", *NOW, "--json")
    assert ran.json["tables"][0]["specs"] == [1]
    assert [each["spec-id"] for each in metadata(alone)["partition-specs"]] == [0, 2]


def test_tags_and_branches_inside_the_table_keep_their_snapshots(
    nessie: InProcess, alone: Lake
) -> None:
    first, second, *_ = snapshots(alone)
    with alone.table("main") as table, table.manage_snapshots() as manage:
        manage.create_tag(first, "v1", max_ref_age_ms=10**12)
        manage.create_tag(second, "old", max_ref_age_ms=1)
    ran = nessie("content", "expire", "db.t", *NOW, "--json")
    assert ran.code == 0, ran.err
    (done,) = ran.json["tables"]
    assert (done["removed"], done["references"]) == (2, ["old"])
    assert snapshots(alone)[0] == first
    assert set(metadata(alone)["refs"]) == {"main", "v1"}


def test_an_open_branch_holds_what_its_merge_needs(nessie: InProcess, lake: Lake) -> None:
    for id_ in (10, 11):
        lake.append("main", id_)
    lake.append("dev", 20)
    assert nessie("branch", "late").code == 0
    ran = nessie("content", "expire", "db.t", *NOW, "--dry-run")
    # dev begins at the first of three snapshots, and late at the last one.
    assert ran.code == 0
    assert ran.lines[1].split() == ["db.t", "0", "3", "0", "0", "0", "bytes", "dev"]
    assert "merges with dev need snapshots since the last common one" in ran.err
    assert nessie("content", "expire", "db.t", *NOW, "--json").json["tables"][0]["heldBy"] == [
        {"branch": "dev", "snapshots": 2}
    ]
    assert nessie("merge", "dev").code == 0
    # The merged snapshot is on top of ours, so the first one is still the last common one.
    assert nessie("content", "expire", "db.t", *NOW, "--json").json["tables"][0]["kept"] == 4
    assert nessie("branch", "-D", "late", "dev").code == 0
    assert nessie("content", "expire", "db.t", *NOW, "--json").json["tables"][0]["kept"] == 1
    assert lake.ids("main") == [1, 2, 3, 10, 11, 20]


def test_a_branch_holds_a_table_that_was_renamed_since(nessie: InProcess, lake: Lake) -> None:
    lake.append("main", 10)
    assert nessie("content", "rename", "db.t", "db.u", "-m", "rename").code == 0
    ran = nessie("content", "expire", "db.u", *NOW, "--json")
    assert ran.json["tables"][0]["heldBy"] == [{"branch": "dev", "snapshots": 1}]


def test_a_branch_without_the_table_holds_nothing(nessie: InProcess, lake: Lake) -> None:
    root = nessie("log", "--json").json["logEntries"][-1]["commitMeta"]["hash"]
    assert nessie("branch", "-d", "dev").code == 0
    assert nessie("branch", "early", root).code == 0
    lake.append("main", 10)
    assert nessie("content", "expire", "db.t", *NOW, "--json").json["tables"][0]["removed"] == 1


def test_globs_select_tables_and_skip_the_rest(nessie: InProcess, alone: Lake) -> None:
    with alone.catalog("main") as catalog:
        for name in ("db.a", "db.b"):
            catalog.create_table(name, catalog.load_table("db.t").schema())
    assert nessie("content", "put", "db.sub", "--type", "namespace", "-m", "sub").code == 0
    ran = nessie("content", "expire", "db.*", *NOW, "--json")
    assert ran.code == 0, ran.err
    assert [each["key"]["elements"] for each in ran.json["tables"]] == [
        ["db", "a"], ["db", "b"], ["db", "t"],
    ]  # fmt: skip
    (entry,) = nessie("log", "-n", "1", "--json").json["logEntries"]
    assert entry["commitMeta"]["message"] == "expire snapshots of db.t"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["db"], 2, "key 'db' has a content of type namespace; only Iceberg tables have snapshots"),
        (["db.x"], 4, "there is no content with key 'db.x' on main"),
        (["x.*"], 4, "no key of main matches 'x.*'"),
        (["db.t", "--older-than", "soon"], 2, "duration 'soon': write it as"),
        (["db.t", "--keep-last", "0"], 2, "--keep-last"),
        (["db.t", "--ref", "v1"], 2, "v1 is a tag, and commits need a branch"),
        (["db.t", "--ref", "main~1"], 2, "this command needs a branch or tag"),
        (["db.t", "--ref", "nowhere"], 4, "nowhere"),
    ],
)
def test_what_cannot_expire_is_refused(
    nessie: InProcess, alone: Lake, arguments: list[str], code: int, message: str
) -> None:
    assert nessie("tag", "v1").code == 0
    files = alone.files()
    ran = nessie("content", "expire", *arguments)
    assert ran.code == code, ran.err
    assert message in ran.err
    assert alone.files() == files


@pytest.mark.parametrize("damage", ["missing", "damaged", "manifest list"])
def test_an_unreadable_file_is_named_and_nothing_is_written(
    nessie: InProcess, alone: Lake, damage: str
) -> None:
    with alone.catalog("main") as catalog:
        other = catalog.create_table("db.z", catalog.load_table("db.t").schema())
        with other.update_spec() as spec:
            spec.add_identity("v")
        with other.update_spec() as spec:
            spec.add_identity("n")
        other.append(catalog.load_table("db.t").scan().to_arrow())
        snapshot = other.current_snapshot()
        assert snapshot is not None
        bad = other.metadata_location if damage != "manifest list" else snapshot.manifest_list
    path = Path(bad.removeprefix("file://"))
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(b"{")
    files = alone.files()
    head = nessie("log", "-n", "1").out
    ran = nessie("content", "expire", "db.*", *NOW)
    assert ran.code == 2
    assert "db.z: " in ran.err
    assert path.name in ran.err
    assert alone.files() == files
    assert nessie("log", "-n", "1").out == head


def test_a_merge_only_branch_refuses_it_and_keeps_no_file(nessie: InProcess, alone: Lake) -> None:
    assert nessie("config", "set", "--repository", "protect.main", "merge-only").code == 0
    files = alone.files()
    for more in ([], ["--dry-run"]):
        ran = nessie("content", "expire", "db.t", *NOW, *more)
        assert ran.code == 6, ran.err
        assert "merge-only" in ran.err
        assert alone.files() == files


def test_it_is_computed_again_if_the_table_changes(
    nessie: InProcess, alone: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, ids = Files.write, iter((20, 21))

    def write_after_another(files: Files, uri: str, data: bytes) -> None:
        write(files, uri, data)
        if (id_ := next(ids, None)) is not None:
            alone.append("main", id_)

    monkeypatch.setattr(Files, "write", write_after_another)
    before = {path for path in alone.files() if path.name.endswith(".metadata.json")}
    ran = nessie("content", "expire", "db.t", *NOW)
    assert ran.code == 0, ran.err
    # What was appended meanwhile is younger, and stays.
    assert len(snapshots(alone)) == 2
    assert alone.ids("main") == [1, 2, 3, 10, 11, 12, 20, 21]
    after = {path for path in alone.files() if path.name.endswith(".metadata.json")}
    # Two appends and one expiry: the files of the lost attempts are gone.
    assert len(after - before) == 3


def test_staged_snapshots_of_a_catalog_state_stay(nessie: InProcess, alone: Lake) -> None:
    """A content can name another snapshot than the one that its metadata file calls current."""
    first, second, *_ = snapshots(alone)
    assert nessie("content", "put", "db.t", "--snapshot-id", str(second), "-m", "back").code == 0
    ran = nessie("content", "expire", "db.t", *NOW)
    assert ran.code == 0, ran.err
    assert snapshots(alone) == [second]
    assert metadata(alone)["current-snapshot-id"] == second
    assert alone.ids("main") == [1, 2, 3, 10]
    assert first not in snapshots(alone)


def test_a_missing_package_is_named_and_nothing_is_written(alone: Lake, tmp_path: Path) -> None:
    files = alone.files()
    program = (
        "import sys; sys.modules['fastavro'] = None; from nessie_cli.cli.main import run;"
        " sys.exit(run(sys.argv[1:]))"
    )
    ran = run(
        "content", "expire", "db.t", *NOW, cwd=tmp_path, program=(sys.executable, "-c", program)
    )
    ran.expect(2, "a package is missing", "pip install 'nessie-cli[iceberg]'", out="")
    assert alone.files() == files


def test_it_works_on_postgresql(nessie: InProcess, tmp_path: Path) -> None:
    with new_url() as url:
        assert nessie("config", "unset", "--user", "merge.tables").code == 0
        assert nessie("init", "--store", url).code == 0
        lake = Lake(url, tmp_path)
        lake.append("main", 10)
        lake.append("dev", 20)
        ran = nessie("content", "expire", "db.t", *NOW, "--ref", "dev", "--json")
        assert ran.json["tables"][0]["heldBy"] == [{"branch": "main", "snapshots": 1}]
        assert nessie("merge", "dev").code == 0
        assert nessie("branch", "-D", "dev").code == 0
        assert nessie("content", "expire", "db.t", *NOW).code == 0
        assert len(snapshots(lake)) == 1
        assert lake.ids("main") == [1, 2, 3, 10, 20]


def test_a_branch_keeps_an_expired_table_of_another_branch(nessie: InProcess, alone: Lake) -> None:
    with connect(str(Path(".nessie/store.sqlite"))) as repository:
        head = repository.reference("main").hash
        repository.create_reference(ReferenceType.BRANCH, "dev", head)
    before = metadata(alone, "dev")
    alone.append("main", 20)
    assert nessie("content", "expire", "db.t", *NOW).code == 0
    assert metadata(alone, "dev") == before
