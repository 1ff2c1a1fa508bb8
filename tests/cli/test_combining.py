"""Tables that both sides changed: merge, transplant, revert and resolve combine their files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from nessie_cli.errors import StoreUnavailable
from nessie_cli.iceberg.combination.file_combiner import FileCombiner
from nessie_cli.iceberg.combination.merging import NotStored, TableMerger
from nessie_cli.iceberg.files import Files
from nessie_cli.model import CombinationRules
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.repository.opening import connect
from tests.cli.lake import Lake, rows
from tests.command.in_process import InProcess

ROOT = Path(__file__).parents[2]


def test_two_appends_merge(nessie: InProcess, lake: Lake) -> None:
    lake.append("main", 10)
    lake.append("dev", 20, 21)
    before = lake.data_files()
    ran = nessie("merge", "dev")
    assert ran.code == 0
    ((key, result, _, _, files, added, kind),) = ran.rows
    assert (key, result, files, added, kind) == ("db.t", "combined", "+1", "+2", "iceberg-table")
    assert lake.ids("main") == [1, 2, 3, 10, 20, 21]
    assert lake.data_files() == before
    assert nessie("merge", "dev").err == "already up to date: nothing was merged into main\n"
    parents = nessie("log", "-n", "1", "--json").json["logEntries"][0]["commitMeta"]
    assert len(parents["parentCommitHashes"]) == 2
    assert nessie("fsck").code == 0
    assert nessie("audit").code == 0


def test_the_snapshot_names_both_sides_and_the_merge(nessie: InProcess, lake: Lake) -> None:
    lake.append("main", 10)
    lake.append("dev", 20)
    detail = nessie("merge", "dev", "--json").json["details"][0]
    assert detail["combination"] == {
        "addedFiles": 1,
        "removedFiles": 0,
        "addedRows": 1,
        "removedRows": 0,
        "notes": [],
    }
    with lake.table("main") as table:
        snapshot = table.current_snapshot()
        assert snapshot is not None
        assert snapshot.snapshot_id == detail["result"]["snapshotId"]
        assert snapshot.summary is not None
        summary = snapshot.summary.additional_properties
    assert summary["nessie.combined-ours"] == str(detail["target"]["snapshotId"])
    assert summary["nessie.combined-theirs"] == str(detail["source"]["snapshotId"])
    source = nessie("log", "dev", "-n", "1", "--json").json["logEntries"][0]["commitMeta"]["hash"]
    assert summary["nessie.combined-by"] == f"merge of {source} into main"


def test_a_dry_run_says_the_same_and_writes_nothing(nessie: InProcess, lake: Lake) -> None:
    lake.append("main", 10)
    lake.append("dev", 20)
    before = lake.files()
    ran = nessie("merge", "dev", "--dry-run")
    assert ran.code == 0
    assert ran.rows[0][1] == "combined"
    assert lake.files() == before
    assert lake.ids("main") == [1, 2, 3, 10]


def test_both_directions_give_the_same_rows(nessie: InProcess, lake: Lake) -> None:
    lake.append("main", 10)
    lake.delete("dev", 2)
    assert nessie("branch", "copy", "main").code == 0
    assert nessie("merge", "dev").code == 0
    assert nessie("merge", "copy", "--into", "dev").code == 0
    assert lake.ids("main") == lake.ids("dev") == [1, 3, 10]


def test_branches_that_merge_again_and_again_keep_every_row(nessie: InProcess, lake: Lake) -> None:
    for number in range(3):
        lake.append("main", 10 + number)
        lake.append("dev", 20 + number)
        assert nessie("merge", "dev").code == 0
        if number == 1:
            assert nessie("merge", "main", "--into", "dev").code == 0
    assert lake.ids("main") == [1, 2, 3, 10, 11, 12, 20, 21, 22]


def test_the_same_rows_changed_on_both_sides_are_a_conflict(nessie: InProcess, lake: Lake) -> None:
    lake.delete("main", 1)
    lake.delete("dev", 2)
    before = lake.files()
    ran = nessie("merge", "dev")
    assert ran.code == 3
    assert "  not combined       both sides removed or rewrote this file\n" in ran.err
    assert ".parquet (3 rows)\n" in ran.err
    error = json.loads(nessie("merge", "dev", "--json").out)["error"]
    (conflict,) = error["errorDetails"]["conflicts"]
    (collision,) = conflict["collisions"]
    assert collision["reason"] == "both sides removed or rewrote this file"
    assert [(file["partition"], file["rows"]) for file in collision["files"]] == [("", 3)]
    assert lake.files() == before


def test_a_commit_is_picked_onto_a_changed_table(nessie: InProcess, lake: Lake) -> None:
    lake.append("main", 10)
    lake.append("dev", 20)
    lake.append("dev", 21)
    assert nessie("transplant", "dev").code == 0
    assert lake.ids("main") == [1, 2, 3, 10, 21]
    # The first commit comes later, and the second one is there already.
    ran = nessie("transplant", "dev~2..dev")
    assert ran.code == 0
    assert lake.ids("main") == [1, 2, 3, 10, 20, 21]


def test_a_range_is_picked_in_one_go(nessie: InProcess, lake: Lake) -> None:
    lake.append("main", 10)
    for id_ in (20, 21, 22):
        lake.append("dev", id_)
    before = lake.files()
    dry = nessie("transplant", "dev~3..dev", "--dry-run")
    assert (dry.code, lake.files()) == (0, before)
    ran = nessie("transplant", "dev~3..dev")
    assert ran.code == 0
    assert ran.rows[0][4:6] == ["+3", "+3"]
    assert lake.ids("main") == [1, 2, 3, 10, 20, 21, 22]


def test_a_bad_load_is_taken_out_and_everything_since_stays(nessie: InProcess, lake: Lake) -> None:
    lake.append("main", 666, 667)
    lake.append("main", 10)
    lake.append("main", 11)
    assert nessie("revert", "main~2", "--dry-run").code == 0
    ran = nessie("revert", "main~2")
    assert ran.code == 0
    assert lake.ids("main") == [1, 2, 3, 10, 11]
    # The revert of the revert brings it back.
    assert nessie("revert", "main").code == 0
    assert lake.ids("main") == [1, 2, 3, 10, 11, 666, 667]


def test_a_revert_of_a_picked_commit_gives_the_rows_before(nessie: InProcess, lake: Lake) -> None:
    lake.append("main", 10)
    lake.append("dev", 20)
    assert nessie("transplant", "dev").code == 0
    lake.append("main", 11)
    assert nessie("revert", "main~1").code == 0
    assert lake.ids("main") == [1, 2, 3, 10, 11]


def test_resolve_combines_without_a_question(nessie: InProcess, lake: Lake) -> None:

    lake.append("main", 10)
    lake.append("dev", 20)
    assert nessie("resolve", "merge", "dev").code == 0
    assert lake.ids("main") == [1, 2, 3, 10, 20]


@pytest.mark.parametrize("how", ["option", "setting"])
def test_combining_is_turned_off(nessie: InProcess, lake: Lake, how: str) -> None:
    lake.append("main", 10)
    lake.append("dev", 20)
    if how == "setting":
        assert nessie("config", "set", "merge.tables", "conflict").code == 0
    ran = nessie("merge", "dev", *(["--no-combine"] if how == "option" else []))
    assert ran.code == 3
    assert "not combined" not in ran.err


def test_serializable_isolation_is_a_setting(nessie: InProcess, lake: Lake) -> None:
    lake.delete("main", 1)
    lake.append("dev", 20)
    assert nessie("config", "set", "merge.isolation", "serializable").code == 0
    ran = nessie("merge", "dev")
    assert ran.code == 3
    assert "the table is serializable" in ran.err
    assert nessie("config", "set", "merge.isolation", "none").code == 2


@pytest.mark.parametrize(("id_", "warns"), [(10, True), (20, False)])
def test_rows_that_may_have_equal_identifiers_are_a_warning_or_a_conflict(
    nessie: InProcess, lake: Lake, id_: int, warns: bool
) -> None:
    with (
        lake.table("main") as table,
        table.update_schema(allow_incompatible_changes=True) as update,
    ):
        update.set_identifier_fields("id")
    assert nessie("merge", "main", "--into", "dev").code == 0
    lake.append("main", 10, 12)
    lake.append("dev", id_)
    said = "both sides added rows whose identifiers may be equal"
    dry = nessie("merge", "dev", "--dry-run")
    assert (dry.code, said in dry.err) == (0, warns)
    assert nessie("config", "set", "merge.identifiers", "conflict").code == 0
    ran = nessie("merge", "dev")
    assert (ran.code, said in ran.err) == ((3, True) if warns else (0, False))


@pytest.mark.parametrize("missing", ["base", "manifest"])
def test_a_missing_file_is_the_reason_of_the_conflict(
    nessie: InProcess, lake: Lake, missing: str
) -> None:
    with lake.table("main") as table:
        base = Path(table.metadata_location)
    lake.append("main", 10)
    lake.append("dev", 20)
    with lake.table("dev") as table:
        (manifest, *_) = table.current_snapshot().manifests(table.io)  # type: ignore[union-attr]
    gone = base if missing == "base" else Path(manifest.manifest_path)
    gone.unlink()
    ran = nessie("merge", "dev")
    assert ran.code == 3
    assert "no such file" in ran.err
    assert gone.name[:20] in ran.err


def test_decisions_count_more_than_combining(nessie: InProcess, lake: Lake) -> None:
    lake.append("main", 10)
    lake.append("dev", 20)
    assert nessie("merge", "dev", "--ours", "db.t").code == 0
    assert lake.ids("main") == [1, 2, 3, 10]


def test_a_table_combines_beside_a_glob(nessie: InProcess, lake: Lake) -> None:
    lake.append("main", 10)
    lake.append("dev", 20)
    assert nessie("merge", "dev", "--theirs", "*").code == 0
    assert lake.ids("main") == [1, 2, 3, 10, 20]


def test_a_renamed_table_combines(nessie: InProcess, lake: Lake) -> None:
    assert nessie("content", "rename", "db.t", "db.u", "-m", "rename").code == 0
    with lake.catalog("main") as catalog:
        catalog.load_table("db.u").append(rows(10))
    lake.append("dev", 20)
    assert nessie("merge", "dev").code == 0
    with lake.catalog("main") as catalog:
        read = catalog.load_table("db.u").scan().to_arrow().to_pylist()
    assert sorted(row["id"] for row in read) == [1, 2, 3, 10, 20]


def test_another_writer_between_combination_and_commit_loses_nothing(
    nessie: InProcess, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.append("main", 10)
    lake.append("dev", 20)
    write, ids = Files.write, iter((11, 12))

    def write_after_another(files: Files, uri: str, data: bytes) -> None:
        write(files, uri, data)
        if uri.endswith(".metadata.json") and (id_ := next(ids, None)) is not None:
            lake.append("main", id_)

    with monkeypatch.context() as patch:
        patch.setattr(Files, "write", write_after_another)
        assert nessie("merge", "dev").code == 0
    assert lake.ids("main") == [1, 2, 3, 10, 11, 12, 20]
    # The files of the two attempts before are gone.
    with lake.table("main") as table:
        metadata = {Path(log.metadata_file).name for log in table.metadata.metadata_log}
        metadata.add(Path(table.metadata_location).name)
    on_dev = {path.name for path in lake.folder.rglob("*.metadata.json")} - metadata
    assert len(on_dev) == 1


_KILLED = """
import os, signal, sys
from nessie_cli.cli.main import run
from nessie_cli.iceberg.files import Files
from nessie_cli.repository.base import Repository

last = int(sys.argv[1])
write, number = Files.write, 0


def write_some(files, uri, data):
    global number
    if number == last:
        os.kill(os.getpid(), signal.SIGKILL)
    number += 1
    write(files, uri, data)


Files.write = write_some
merge = Repository.merge


def merge_once(repository, *args, **more):
    result = merge(repository, *args, **more)
    os.kill(os.getpid(), signal.SIGKILL)
    return result


Repository.merge = merge_once
sys.exit(run(["merge", "dev"]))
"""


@pytest.mark.parametrize("written", range(4))
def test_a_killed_merge_leaves_the_old_state_or_the_new_one(
    nessie: InProcess, lake: Lake, written: int
) -> None:
    lake.append("main", 10)
    lake.append("dev", 20)
    before = lake.files()
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, str(written)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    is_merged = written == 3
    assert lake.ids("main") == ([1, 2, 3, 10, 20] if is_merged else [1, 2, 3, 10])
    written_first = lake.files() - before
    assert len(written_first) == written
    assert nessie("merge", "dev").code == 0
    assert lake.ids("main") == [1, 2, 3, 10, 20]
    # Garbage collection removes the files that the killed merge left.
    for command in (
        ["mark", "--default-cutoff", "PT0S"],
        ["plan", "--warehouse", str(lake.folder), "--grace", "PT0S"],
        ["approve"],
        ["apply"],
    ):
        ran = nessie("gc", *command)
        assert ran.code == 0, ran.err
    assert is_merged or not (lake.files() & written_first)
    assert lake.ids("main") == [1, 2, 3, 10, 20]


def test_a_deep_dry_run_compares_with_the_combined_table(nessie: InProcess, lake: Lake) -> None:
    lake.append("main", 10)
    lake.append("dev", 20)
    before = lake.files()
    ran = nessie("merge", "dev", "--dry-run", "--deep")
    assert (ran.code, lake.files()) == (0, before)
    assert "no such file" not in ran.out + ran.err
    assert "rows        4    -> 5" in ran.out


def test_a_revert_says_what_it_takes_out(nessie: InProcess, lake: Lake) -> None:
    lake.append("main", 666, 667)
    lake.append("main", 10)
    for options in (["--dry-run"], []):
        ran = nessie("revert", "main~1", *options)
        assert ran.code == 0
        assert ran.err.endswith("db.t: combined with later changes: 1 file and 2 rows removed\n")
    # The revert can be reverted, too.
    lake.append("main", 11)
    for more in (["--dry-run"], ["--no-commit"]):
        (operation,) = nessie("revert", "main~1", *more, "--json").json["operations"]
        assert operation["combination"] == {
            "addedFiles": 1,
            "removedFiles": 0,
            "addedRows": 2,
            "removedRows": 0,
            "notes": [],
        }


def test_a_revert_of_an_unchanged_table_is_not_called_combined(
    nessie: InProcess, lake: Lake
) -> None:
    lake.append("main", 10)
    ran = nessie("revert", "main")
    assert (ran.code, "combined" in ran.err) == (0, False)


def test_a_revert_without_effect_is_not_called_reverted(nessie: InProcess, lake: Lake) -> None:
    """The snapshots of a table are not combined."""
    lake.append("main", 10)
    with lake.table("main") as table:
        first = table.history()[0].snapshot_id
        table.maintenance.expire_snapshots().by_id(first).commit()
    lake.append("main", 11)
    before = lake.files()
    for command in (["revert", "main~1"], ["revert", "main~1", "--dry-run"]):
        ran = nessie(*command)
        assert (ran.code, "reverted already" in ran.err) == (2, False)
        assert ran.err.startswith("nessie: there is nothing to revert: the revert of commit ")
        assert ran.err.endswith(" would change nothing\n")
    assert lake.files() == before


def test_a_revert_says_what_it_gives_back(nessie: InProcess, lake: Lake) -> None:
    lake.delete("main", 2)
    lake.append("main", 10)
    ran = nessie("revert", "main~1", "-m", "revert")
    changes = "1 file and 2 rows removed, 1 file and 3 rows added"
    notes = f"db.t: combined with later changes: {changes}\n"
    assert ran.err == notes
    assert lake.ids("main") == [1, 2, 3, 10]


def test_changed_rows_beside_added_rows_are_noted(nessie: InProcess, lake: Lake) -> None:
    lake.delete("main", 1)
    lake.append("dev", 20)
    ran = nessie("merge", "dev")
    assert (ran.code, "(write skew)" in ran.err) == (0, True)


def test_a_hook_that_refuses_is_no_conflict(nessie: InProcess, lake: Lake, tmp_path: Path) -> None:
    hook = tmp_path / ".nessie" / "hooks" / "pre-merge"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    lake.append("main", 10)
    lake.append("dev", 20)
    ran = nessie("merge", "dev")
    assert (ran.code, "the hook pre-merge refuses" in ran.err) == (6, True)
    assert nessie("merge", "dev", "--no-verify").code == 0


def test_a_rename_arrives_although_the_rows_are_there_already(
    nessie: InProcess, lake: Lake
) -> None:
    lake.append("main", 10)
    lake.append("dev", 20)
    assert nessie("transplant", "dev").code == 0
    assert nessie("--ref", "dev", "content", "rename", "db.t", "db.u", "-m", "rename").code == 0
    before = lake.files()
    assert nessie("merge", "dev").code == 0
    with lake.catalog("main") as catalog:
        read = catalog.load_table("db.u").scan().to_arrow()["id"].to_pylist()
    assert sorted(read) == [1, 2, 3, 10, 20]
    assert lake.files() == before


def test_a_commit_that_is_there_already_is_skipped(nessie: InProcess, lake: Lake) -> None:
    lake.append("main", 10)
    lake.append("dev", 20)
    assert nessie("transplant", "dev").code == 0
    head = nessie("log", "-n", "1", "--format", "%H").out
    ran = nessie("transplant", "dev")
    assert (ran.code, "it changes nothing on this branch" in ran.err) == (0, True)
    assert nessie("log", "-n", "1", "--format", "%H").out == head


def test_a_conflict_names_the_commit_and_author_of_each_side(nessie: InProcess, lake: Lake) -> None:
    for ref in ("main", "dev"):
        with lake.table(ref) as table:
            table.overwrite(rows(1, 2, 3, 4))
    ran = nessie("merge", "dev")
    assert ran.code == 3
    heads = [
        nessie("log", ref, "-n", "1", "--json").json["logEntries"][0] for ref in ("main", "dev")
    ]
    hashes = [head["commitMeta"]["hash"] for head in heads]
    assert f"changed by         {hashes[0][:12]}" in ran.err
    assert f"theirs by          {hashes[1][:12]}" in ran.err
    (conflict,) = nessie("merge", "dev", "--json").json["error"]["errorDetails"]["conflicts"]
    assert [conflict[side]["hash"] for side in ("changedBy", "theirsChangedBy")] == hashes
    assert conflict["theirsChangedBy"]["authors"] == ["etl"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, StoreUnavailable])
def test_the_files_of_a_commit_stay_if_the_merge_fails_after_it(
    tmp_path: Path, lake: Lake, error: type[BaseException]
) -> None:
    """After Ctrl-C, or an answer of a proxy instead of the server's, a commit may name them."""
    lake.append("main", 10)
    lake.append("dev", 20)
    with connect(str(tmp_path / ".nessie" / "store.sqlite")) as repository:

        def merge(options: MergeOptions) -> None:
            repository.merge("main", "dev", options)
            raise error("after the commit")

        merger = TableMerger([FileCombiner(Files(), "a test", CombinationRules())])
        with pytest.raises(error):
            merger.merge(merge, MergeOptions())
    assert lake.ids("main") == [1, 2, 3, 10, 20]


def test_the_files_of_a_refused_merge_are_removed(tmp_path: Path, lake: Lake) -> None:
    lake.append("main", 10)
    lake.append("dev", 20)
    before = lake.files()
    with connect(str(tmp_path / ".nessie" / "store.sqlite")) as repository:

        def merge(options: MergeOptions) -> None:
            repository.merge("main", "dev", replace(options, dry_run=True))
            raise NotStored

        merger = TableMerger([FileCombiner(Files(), "a test", CombinationRules())])
        with pytest.raises(NotStored):
            merger.merge(merge, MergeOptions())
    assert lake.files() == before
