"""The verbs of a run, each under its lock and with its state kept: mark, plan, approve, apply. The work itself is an engine's, handed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.gc.applying import Mark
from nessie_cli.gc.run import Run, Settings, State

MARKED = State.MARKED.value.lower()
"""The name of the time at which a run was marked."""
INCOMPLETE = frozenset({"BROKEN", "LISTING"})
"""Findings of these kinds mean that something was left out that the run should have looked at."""


def mark(run: Run, work: Mark, clock: Callable[[], datetime]) -> None:
    """Mark what is live, or go on with that; to be called under the run's lock. Raises `InvalidInput` for a run that has been marked."""
    if MARKED in run.info.times:
        raise InvalidInput(
            f"run {run.id} is {run.info.state}: it has been marked already. Hint: `nessie gc show {run.id}` shows the next step"
        )
    with run.failing():
        run.update(state=State.MARKING, error=None)
        found = work(run.marks())
        run.reach(State.MARKED, clock(), found.counts, references=found.references)


def plan(
    run: Run,
    work: Callable[[], Mapping[str, int]],
    settings: Settings,
    clock: Callable[[], datetime],
) -> None:
    """Find the candidates by these settings; an approval that there was counts no more. To be called under the run's lock.

    Raises `InvalidInput` for a run that has not been marked, `NotAllowed` for one that deletions have begun of.
    """
    if MARKED not in run.info.times:
        raise InvalidInput(
            f"run {run.id} is {run.info.state}: it has not been marked yet. Hint: `nessie gc mark --resume {run.id}` resumes it"
        )
    if run.audit_path.exists():
        raise NotAllowed(
            f"run {run.id} is {run.info.state}: files of it have been deleted. Hint: `nessie gc mark` begins a new run"
        )
    run.disapprove()
    with run.failing():
        run.update(state=State.MARKED, settings=settings, error=None)
        counts = work()
        run.reach(State.PLANNED, clock(), counts)


def is_incomplete(run: Run) -> bool:
    """Whether a content could not be read, or a place not be listed, so that something was left out."""
    names = [name for name in ("findings", "plan-findings") if run.dataset(name).exists]
    return any(
        not INCOMPLETE.isdisjoint(batch.column("kind").to_pylist())
        for name in names
        for batch in run.dataset(name).batches(["kind"])
    )
