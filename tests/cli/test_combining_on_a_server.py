"""Merges, transplants and reverts of tables in the warehouse of a server."""

from __future__ import annotations

from nessie_cli.repository.changes import PutSettings
from tests.command.in_process import InProcess
from tests.server.iceberg_rest.appends import append, ids
from tests.server.iceberg_rest.lake import Lake


def test_a_merge_into_a_branch_that_changes_only_by_merges(remote: InProcess, served: Lake) -> None:
    served.repository.submit(PutSettings({"protect.main": "merge-only"}))
    files = served.files()
    dry = remote("merge", "dev", "--dry-run")
    assert served.files() == files
    ran = remote("merge", "dev")
    assert (ran.code, ran.rows) == (0, dry.rows)
    assert ran.rows[0][1] == "combined"
    assert ids(served.url, "main") == [1, 2, 3, 10, 20]


def test_a_deep_dry_run_shows_what_is_not_written(remote: InProcess, served: Lake) -> None:
    files = served.files()
    ran = remote("merge", "dev", "--dry-run", "--deep")
    assert ran.code == 0
    assert "rows        4    -> 5" in ran.out
    assert served.files() == files


def test_branches_that_merge_in_both_directions(remote: InProcess, served: Lake) -> None:
    served.repository.submit(PutSettings({"protect.main": "merge-only"}))
    assert remote("branch", "old-main", "main").code == 0
    assert remote("merge", "dev").code == 0
    assert remote("merge", "old-main", "--into", "dev").code == 0
    append(served.url, "dev", 30)
    ran = remote("merge", "dev")
    assert (ran.code, ran.rows[0][1]) == (0, "combined")
    assert ids(served.url, "main") == [1, 2, 3, 10, 20, 30]


def test_a_load_is_taken_out(remote: InProcess, served: Lake) -> None:
    load = served.repository.reference("main").hash
    append(served.url, "main", 30)
    files = served.files()
    dry = remote("revert", load, "--dry-run")
    assert dry.code == 0
    assert served.files() == files
    ran = remote("revert", load)
    assert ran.code == 0
    assert "db.t: combined with later changes: 1 file and 1 row removed" in ran.err
    assert ids(served.url, "main") == [1, 2, 3, 30]


def test_a_load_is_taken_out_by_a_staged_batch(remote: InProcess, served: Lake) -> None:
    load = served.repository.reference("main").hash
    append(served.url, "main", 30)
    assert remote("revert", load, "-n").code == 0
    assert ids(served.url, "main") == [1, 2, 3, 10, 30]
    assert remote("commit", "-m", "take out").code == 0
    assert ids(served.url, "main") == [1, 2, 3, 30]


def test_resolve_asks_only_about_others(remote: InProcess, served: Lake) -> None:
    assert remote("resolve", "merge", "dev").code == 0
    assert ids(served.url, "main") == [1, 2, 3, 10, 20]


def test_tables_are_not_combined_on_request(remote: InProcess, served: Lake) -> None:
    files = served.files()
    assert remote("merge", "dev", "--no-combine").code == 3
    assert served.files() == files
