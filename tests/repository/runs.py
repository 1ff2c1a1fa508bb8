"""Runs for tests below the command line."""

from __future__ import annotations

from nessie_cli.model.runs import RunStage
from nessie_cli.repository.base import Repository
from nessie_cli.runs.lifecycle import ActiveRun, RunPlan, begin
from tests.repository.vocabulary import Catalog


def begun(
    repository: Repository, target: str = "main", *, key: str = "", tag: str = ""
) -> ActiveRun:
    """Begins a run at the head of its target."""
    plan = RunPlan(target, repository.reference(target).hash, key=key, tag=tag)
    return begin(repository, plan, "etl")


def failed(repository: Repository, *names: str) -> ActiveRun:
    """Returns a run whose command has failed after it had committed tables, one by one."""
    active = begun(repository)
    for number, name in enumerate(names):
        Catalog(repository).write(active.branch, {name: 10 + number})
    active.fail(RunStage.COMMAND, "the command ended with exit code 2", head=active.head())
    return active
