"""`nessie store maintain` deletes expired runs."""

from __future__ import annotations

import pytest

from nessie_cli.model import ReferenceType
from nessie_cli.model.runs import RunStage
from nessie_cli.runs import lifecycle
from nessie_cli.runs.lifecycle import ActiveRun, RunPlan, begin


@pytest.fixture
def failed(catalog) -> ActiveRun:
    """An expired run that has failed after a commit."""
    active = begin(catalog.repository, RunPlan("main", catalog.head("main")), "etl")
    catalog.update(active.branch, "db.orders", 7)
    active.fail(RunStage.COMMAND, "it has failed", exit_code=1, head=active.head())
    active.change(expires=1)
    return active


def branches(catalog) -> set[str]:
    return {reference.name for reference in catalog.repository.references(ReferenceType.BRANCH)}


def ids(catalog) -> list[str]:
    return [record.run.id for record in catalog.repository.runs.all()]


def test_the_branch_and_the_record_are_deleted(nessie, catalog, failed) -> None:
    dry = nessie.ok("store", "maintain", "--dry-run")
    assert dry.lines[0].startswith("would be expired: ")
    assert dry.lines[0].endswith(", 1 run")
    assert failed.branch in branches(catalog)
    assert ids(catalog) == [failed.run.id]

    assert nessie.ok("store", "maintain", "--json").json["expired"]["runs"] == 1
    assert failed.branch not in branches(catalog)
    assert ids(catalog) == []
    assert nessie.ok("store", "maintain", "--json").json["expired"]["runs"] == 0


def test_a_published_run_stays_until_it_expires(nessie, catalog) -> None:
    active = begin(catalog.repository, RunPlan("main", catalog.head("main")), "etl")
    active.published(catalog.head("main"))
    nessie.ok("store", "maintain")
    assert ids(catalog) == [active.run.id]
    active.change(expires=1)
    nessie.ok("store", "maintain")
    assert ids(catalog) == []


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_run_with_commits_on_another_branch_is_remembered(
    nessie, catalog, failed, is_killed, monkeypatch
) -> None:
    if is_killed:
        # Its process was killed before it could record the failure, some time ago.
        monkeypatch.setattr(lifecycle, "TOKEN_LIFE", -1)
        failed.take_over()
        failed.change(head="", stage=RunStage.COMMAND)
    nessie.ok("branch", "copy", failed.branch)
    assert nessie.ok("store", "maintain", "--json").json["expired"]["runs"] == 1
    assert failed.branch not in branches(catalog)
    assert ids(catalog) == [failed.run.id]
    refused = nessie("merge", "copy", "--into", "main")
    assert refused.code == 6
    assert failed.run.id in refused.err
    assert nessie.ok("store", "maintain", "--json").json["expired"]["runs"] == 0

    nessie.ok("branch", "-d", "copy", "--yes")
    assert nessie.ok("store", "maintain", "--json").json["expired"]["runs"] == 1
    assert ids(catalog) == []


def test_a_run_whose_commits_the_target_has_is_forgotten(nessie, catalog, failed) -> None:
    nessie.ok("merge", failed.branch, "--into", "main", "--allow-failed-run")
    nessie.ok("store", "maintain")
    assert ids(catalog) == []


def test_a_published_run_with_a_tag_is_joined_by_its_key(nessie, catalog) -> None:
    plan = RunPlan("main", catalog.head("main"), key="nightly", tag="loaded")
    begin(catalog.repository, plan, "etl").published(catalog.head("main"))
    assert begin(catalog.repository, plan, "etl").run.result == catalog.head("main")


def test_a_branch_that_cannot_be_deleted_is_reported(nessie, catalog, failed) -> None:
    nessie.ok("config", "set", "protect.run/*", "no-delete", "--repository")
    ran = nessie.ok("store", "maintain")
    assert f"run {failed.run.id} has expired, but {failed.branch} was not deleted: " in ran.err
    assert "0 runs" in ran.out
    assert failed.branch in branches(catalog)
    assert ids(catalog) == [failed.run.id]
