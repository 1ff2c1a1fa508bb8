"""Fairness: processes that constantly commit to one branch all make progress, even slow
ones, and hooks run without a lease."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nessie_cli.model import CommitMeta
from nessie_cli.repository.base import Repository
from nessie_cli.repository.draft import Draft
from nessie_cli.repository.group_commit import FREE_TRIES, MOST_TRIES
from nessie_cli.repository.opening import connect, create
from nessie_cli.store.base import LEASE
from tests.repository.vocabulary import put, table
from tests.store.postgres_server import new_url

SECONDS = 3.0
MOST_RATIO = 3

WRITER = """
import json, sys, time
from nessie_cli.repository.opening import connect
from nessie_cli.repository.changes import Commit
from nessie_cli.repository.draft import ChangeSubmission
from nessie_cli.repository.group_commit import planned
from nessie_cli.model import CommitMeta
from tests.repository.vocabulary import put, table

url, name, seconds, pause = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
drafts, longest = [], 0.0
with connect(url) as repository:
    repository.reference("main")
    print("ready", flush=True)
    sys.stdin.readline()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        change, submission, calls = Commit("main", [put(f"{name} {len(drafts)}", table(1))], CommitMeta(name)), ChangeSubmission(), []
        def plan(at):
            calls.append(1)
            draft = at.draft(change, submission)
            time.sleep(pause)
            return planned(draft)
        begun = time.monotonic()
        [answer] = repository.commit_all([plan])
        assert not isinstance(answer, Exception), answer
        longest = max(longest, time.monotonic() - begun)
        drafts.append(len(calls))
print(json.dumps({"commits": len(drafts), "most drafts": max(drafts), "longest": longest}))
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "store.sqlite")
    else:
        with new_url() as found:
            yield found


def race(url: str, pauses: list[float]) -> list[dict[str, Any]]:
    """Starts a process for each pause. It commits constantly, with this pause between a draft
    and its commit. Returns their reports."""
    create(url).close()
    words = [
        [sys.executable, "-c", WRITER, url, f"writer {n}", str(SECONDS), str(pause)]
        for n, pause in enumerate(pauses)
    ]
    processes = [
        subprocess.Popen(one, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for one in words
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        reports = [json.loads(process.communicate(timeout=120)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    with connect(url) as repository:
        log = [entry.meta.message for entry in repository.log("main")]
    assert [log.count(f"writer {n}") for n in range(len(pauses))] == [
        report["commits"] for report in reports
    ]
    return reports


def test_equal_processes_get_equal_shares(url: str) -> None:
    reports = race(url, [0.002] * 4)
    commits = [report["commits"] for report in reports]
    assert max(commits) <= MOST_RATIO * min(commits)


def test_a_slow_process_is_not_starved_by_fast_ones(url: str) -> None:
    """Its draft takes as long as many commits of the others, so it loses every race without a
    lease."""
    slow, *fast = race(url, [0.1, 0, 0])
    assert slow["most drafts"] <= FREE_TRIES + 2
    assert slow["longest"] < (FREE_TRIES + 2) * LEASE
    assert min(report["commits"] for report in fast) > slow["commits"]


class RivalGuard:
    """A slow hook, while another writer commits to the same branch."""

    def __init__(self, rival: Repository, times: int) -> None:
        self._rival = rival
        self._times = times
        self.checked = 0
        self.slowest = 0.0

    def check(self, draft: Draft[Any]) -> None:
        assert draft.write is not None
        self.checked += 1
        if self.checked <= self._times:
            begun = time.monotonic()
            self._rival.commit(
                "main", [put(f"rival {self.checked}", table(1))], CommitMeta("rival")
            )
            self.slowest = max(self.slowest, time.monotonic() - begun)

    def done(self, draft: Draft[Any], answer: Any) -> None:
        """See the base class: the draft was committed."""


@pytest.mark.parametrize("times", [FREE_TRIES - 1, FREE_TRIES + 3, MOST_TRIES - 1])
def test_a_hook_never_runs_while_a_lease_is_held(url: str, times: int) -> None:
    """A rival that commits from within the hook would have to wait for a lease, even if the
    change is drafted again."""
    with create(url) as repository, connect(url) as rival:
        guard = repository.guard = RivalGuard(rival, times)
        repository.commit("main", [put("mine", table(1))], CommitMeta("mine"))
        assert guard.checked == times + 1
        assert guard.slowest < LEASE / 2
        assert [entry.meta.message for entry in repository.log("main")] == ["mine"] + [
            "rival"
        ] * times
