"""A revert or restore of some tables of a run names the run and its other tables."""

from __future__ import annotations

import pytest

from nessie_cli.model import CommitMeta
from nessie_cli.model.runs import PROPERTY, PipelineRun
from nessie_cli.runs.lifecycle import RunPlan, begin
from nessie_cli.runs.publication import publish

TABLES = ("db.orders", "db.items")


@pytest.fixture
def run(catalog) -> PipelineRun:
    """A published run that has changed two tables in two commits, and a namespace."""
    active = begin(catalog.repository, RunPlan("main", catalog.head("main")), "etl")
    for name in TABLES:
        catalog.update(active.branch, name, 7)
    active.end_command(0)
    active.change(head=active.head())
    meta = CommitMeta("load", properties={PROPERTY: (active.run.id,)})
    publish(active, lambda merge, options, _: merge(options), None, meta)
    return active.run


def warning(run: PipelineRun, taken: str = "db.orders", other: str = "db.items") -> str:
    return f"warning: this reverts {taken} of run {run.id} ({run.result[:12]}), but not {other}\n"


def splits(run: PipelineRun, taken: str = "orders", other: str = "items") -> list[object]:
    keys, others = ([{"elements": ["db", name]}] for name in (taken, other))
    return [{"run": run.id, "hash": run.result, "keys": keys, "otherKeys": others}]


@pytest.mark.parametrize("message", [[], ["-m", "back"]])
def test_a_restore_of_one_table(nessie, catalog, run, message) -> None:
    restore = ("restore", "db.orders", "--at", "main~1", *message)
    ran = nessie(*restore, "--json")
    assert ran.json["splitRuns"] == splits(run)
    nessie.ok("undo") if message else nessie.ok("reset")
    assert nessie(*restore).err.endswith(warning(run))


def test_the_last_of_several_restores_completes_the_state_before(nessie, catalog, run) -> None:
    nessie.ok("restore", "db.orders", "--at", "main~1", "-m", "back")
    ran = nessie.ok("restore", "db.items", "--at", "main~2", "-m", "back")
    assert "warning" not in ran.err


def test_a_restore_of_all_tables_and_one_to_a_later_state(nessie, catalog, run) -> None:
    assert "warning" not in nessie.ok("restore", *TABLES, "--at", "main~1").err
    nessie.ok("reset")
    catalog.update("main", "db.orders", 8)
    assert "warning" not in nessie.ok("restore", "db.orders", "--at", "main~1").err


def test_a_revert_that_keeps_a_table(nessie, catalog, run) -> None:
    catalog.update("main", "db.items", 8)
    revert = ("revert", run.result, "--ours", "db.items")
    assert nessie.ok(*revert, "--dry-run", "--json").json["splitRuns"] == splits(run)
    assert nessie.ok(*revert, "-n").err.endswith(warning(run))
    nessie.ok("reset")
    assert nessie.ok(*revert).err == warning(run)


def test_a_revert_of_one_commit_of_the_branch_of_a_run(nessie, catalog, run) -> None:
    later = catalog.repository.commit_at(run.result).meta.parents[1]
    ran = nessie.ok("revert", later)
    assert ran.err == warning(run, "db.items", "db.orders")


def test_a_whole_revert_and_one_of_another_commit(nessie, catalog, run) -> None:
    catalog.create("main", "db.more")
    assert "splitRuns" not in nessie.ok("revert", "main", "--dry-run", "--json").json
    assert "splitRuns" not in nessie.ok("revert", run.result, "--dry-run", "--json").json
    assert "splitRuns" not in nessie.ok("revert", "main~2..main", "--dry-run", "--json").json


def test_a_property_of_users_is_no_run(nessie, catalog) -> None:
    for name in TABLES:
        nessie.ok("content", "put", name, "--snapshot-id", "9")
    nessie.ok("commit", "-m", "load", "--property", "run=42")
    assert "warning" not in nessie.ok("restore", "db.orders", "--at", "main~1").err
