"""The phases of a run and their states. An engine, passed as an argument, does the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.gc.apply import Mark
from nessie_cli.gc.run import Run, RunSettings, RunState

MARKED = RunState.MARKED.value.lower()
"""The name of the time of the mark in `RunInfo.times`."""
INCOMPLETE = frozenset({"BROKEN", "LISTING"})
"""Kinds of findings that make a run incomplete."""


def mark(run: Run, work: Mark, clock: Callable[[], datetime]) -> None:
    """Marks the live files, or resumes that. The caller holds the run's lock.

    Raises `InvalidInput` if the run has been marked already.
    """
    if MARKED in run.info.times:
        raise InvalidInput(
            f"run {run.id} is {run.info.state}: it has been marked already",
            hint=f"`nessie gc show {run.id}` shows the next step",
        )
    with run.failing():
        run.update(state=RunState.MARKING, error=None)
        marked = work(run.marks())
        run.reach(RunState.MARKED, clock(), marked.counts, references=marked.references)


def plan(
    run: Run,
    work: Callable[[], Mapping[str, int]],
    settings: RunSettings,
    clock: Callable[[], datetime],
) -> None:
    """Finds the candidates by these settings and revokes an approval.

    The caller holds the run's lock. Raises `InvalidInput` if the run has not been marked, and
    `NotAllowed` if deletion has begun.
    """
    if MARKED not in run.info.times:
        raise InvalidInput(
            f"run {run.id} is {run.info.state}: it has not been marked yet",
            hint=f"`nessie gc mark --resume {run.id}` resumes it",
        )
    if run.audit_path.exists():
        raise NotAllowed(
            f"run {run.id} is {run.info.state}: deletion has begun",
            hint="`nessie gc mark` begins a new run",
        )
    run.disapprove()
    with run.failing():
        run.update(state=RunState.MARKED, settings=settings, error=None)
        counts = work()
        run.reach(RunState.PLANNED, clock(), counts)


def is_incomplete(run: Run) -> bool:
    """Whether a content could not be read or a location could not be listed."""
    names = [name for name in ("findings", "plan-findings") if run.dataset(name).exists]
    return any(
        not INCOMPLETE.isdisjoint(batch.column("kind").to_pylist())
        for name in names
        for batch in run.dataset(name).batches(["kind"])
    )
