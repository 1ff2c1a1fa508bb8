"""Runs that are killed at random moments, beside readers of one state of three tables.

`NESSIE_TEST_KILLS=200` sets the number of kills; 200 need `-o faulthandler_timeout=0`, too.
"""

from __future__ import annotations

import os
import random
import shlex
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

import pytest

from nessie_cli import connect
from nessie_cli.model.runs import RunState
from tests.cli.run.conftest import state, writer
from tests.cli.run.test_embedded import Workspace
from tests.command.process import Forker, fresh

KILLS = int(os.environ.get("NESSIE_TEST_KILLS", "8"))
BEFORE_CHECKS, AFTER_CHECKS = 2.0, 0.025
"""Seconds that the parts of a run take."""
TABLES = ("a", "b", "c")


@pytest.fixture
def workspace(tmp_path: Path, forker: Forker) -> Iterator[Workspace]:
    found = Workspace(fresh(tmp_path, forker), tmp_path)
    found.nessie.ok("run", "--", *writer(*(f"{name}=1" for name in TABLES)))
    yield found
    found.nothing_is_left()


class Readers:
    """Threads that read the head of main, and then the tables at its hash."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._end = threading.Event()
        self.mixtures: list[dict[str, int]] = []
        self.reads = 0
        self._threads = [threading.Thread(target=self._read) for _ in range(2)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _read(self) -> None:
        with connect(self._store) as repository:
            while not self._end.wait(0.02):
                head = repository.reference("main").hash
                numbers = [state(repository, head).get(name) for name in TABLES]
                self.reads += 1
                if len(set(numbers)) != 1:
                    self.mixtures.append(dict(zip(TABLES, numbers, strict=True)))


def test_kills_leave_the_target_before_or_after(workspace: Workspace) -> None:
    chance = random.Random(33)
    counts = dict.fromkeys(("killed", "before", "published", "resumed", "discarded"), 0)
    with Readers(workspace.store) as readers, workspace.repository() as repository:
        for number in range(2, KILLS + 2):
            before = repository.reference("main").hash
            words = [f"{name}={number}" for name in TABLES]
            # Most kills come during the publication, which is short, so the check begins them.
            late = number % 4 > 0
            delay = chance.uniform(0, AFTER_CHECKS)
            kill = f"(sleep {delay:.4f}; kill -9 $PPID) >/dev/null 2>&1 &"
            check = f"test -e k{number} || {{ touch k{number}; {kill} }}" if late else "true"
            process = workspace.started(
                "--check", check, "--tag", f"v{number}", "--", *writer(*words)
            )
            if not late:
                time.sleep(chance.uniform(0, BEFORE_CHECKS))
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
            counts["killed"] += process.wait() == -signal.SIGKILL

            records = [record.run for record in repository.runs.all()]
            (run,) = [run for run in records if run.tag == f"v{number}"] or [None]
            if run is None:
                counts["before"] += 1
                assert repository.reference("main").hash == before
                continue
            resumed = workspace.nessie("run", "--resume", run.id)
            if resumed.code == 0:
                counts["published" if run.state is RunState.PUBLISHED else "resumed"] += 1
                assert state(repository) == dict.fromkeys(TABLES, number)
                published = repository.commit_at("main")
                assert published.parent == before, "there is a second publication"
                assert published.meta.properties["run"] == (run.id,)
                assert repository.reference(f"v{number}").hash == published.hash
                assert workspace.nessie("run", "--resume", run.id).code == 0
                assert repository.reference("main").hash == published.hash
            else:
                resumed.expect(2, "did not end well")
                counts["discarded"] += 1
                assert repository.reference("main").hash == before
                workspace.nessie("run", "--discard", run.id).expect(0)
        assert readers.mixtures == []
        assert readers.reads > KILLS
        assert [ref.name for ref in repository.references() if ref.name.startswith("run/")] == []
        states = {record.run.state for record in repository.runs.all()}
        assert states <= {RunState.PUBLISHED, RunState.DISCARDED}
    print(shlex.join(f"{name}={count}" for name, count in counts.items()), readers.reads)


@pytest.mark.parametrize("step", ["merge", "result", "tag", "branch"])
def test_a_kill_between_the_steps_of_the_publication(workspace: Workspace, step: str) -> None:
    """The publication is made up to a step, and then the record is that of before."""
    workspace.nessie.ok("run", "--no-merge", "--tag", "v2", "--", *writer("a=2", "b=2", "c=2"))
    with workspace.repository() as repository:
        from nessie_cli.model import ReferenceType
        from nessie_cli.revisions import Revision
        from nessie_cli.runs.lifecycle import delete_branch, join

        run = next(r.run for r in repository.runs.all() if r.run.state is RunState.READY)
        active = join(repository, run.id)
        active.take_over()
        active.change(pid=1 << 22)
        result = repository.merge(
            "main", Revision(None, run.head), request_id=active.publication_id(run.head)
        ).resultant_hash
        if step in ("result", "tag", "branch"):
            active.change(result=result)
        if step in ("tag", "branch"):
            repository.create_reference(
                ReferenceType.TAG, "v2", result, request_id=active.request_id("tag")
            )
        if step == "branch":
            delete_branch(repository, active.run)
        else:
            # An orphan of the command has written since.
            from tests.cli.run.conftest import write

            write(repository, active.branch, "late", 1)
        workspace.nessie("run", "--discard", run.id).expect(2, "is published as")
        workspace.nessie("run", "--resume", run.id).expect(0)
        assert repository.reference("main").hash == repository.reference("v2").hash == result
        assert state(repository) == dict.fromkeys(TABLES, 2)
        assert join(repository, run.id).run.state is RunState.PUBLISHED
        # The branch with the commit of the orphan stays until it expires.
        left = [ref.name for ref in repository.references() if ref.name.startswith("run/")]
        assert left == ([] if step == "branch" else [active.branch])
