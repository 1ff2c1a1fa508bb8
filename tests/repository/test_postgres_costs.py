"""Round trips of a group of writes on PostgreSQL.

One commits all of them; another one reads first if other processes may have written.
"""

from __future__ import annotations

import time
from functools import partial

from nessie_cli import connect, create
from nessie_cli.model import CommitMeta, CommitResult, ContentKey, Put, ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import Commit
from nessie_cli.repository.writing import Planned, planned
from nessie_cli.store.base import LEASE
from tests.repository.vocabulary import table
from tests.store.postgres_server import new_url, shared_server
from tests.store.test_postgres_costs import Counter

BRANCHES = 8


def test_a_group_of_commits_costs_one_round_trip_or_two_after_a_pause() -> None:
    server = shared_server()
    with new_url() as url:
        create(url).close()
        counter = Counter(server.port)
        with connect(url.replace(f":{server.port}/", f":{counter.port}/")) as repository:
            root = repository.reference("main").hash
            for number in range(BRANCHES):
                repository.create_reference(ReferenceType.BRANCH, f"b{number}", root)
            # psycopg prepares a statement at its sixth execution.
            for version in range(8):
                before = counter.answers
                assert _commit_all(repository, version) == [True] * BRANCHES * 2
            assert counter.answers == before + 1
            time.sleep(LEASE + 0.1)
            before = counter.answers
            assert _commit_all(repository, version + 1) == [True] * BRANCHES * 2
            assert counter.answers == before + 2
        counter.close()


def test_a_commit_to_a_branch_moved_by_another_process_costs_few_round_trips() -> None:
    """The cost does not depend on the number of commits since the expected hash."""
    server = shared_server()
    with new_url() as url, create(url) as other:
        counter = Counter(server.port)
        with connect(url.replace(f":{server.port}/", f":{counter.port}/")) as repository:
            costs = []
            for version in range(8):
                expected = _commit(repository, f"ours{version}", None)
                for number in range(12):
                    _commit(other, f"t{number}v{version}", None)
                before = counter.answers
                _commit(repository, f"more{version}", expected)
                costs.append(counter.answers - before)
        counter.close()
    # The initial state, commits, nodes, the commit itself, and one or two nodes that were not
    # written recently.
    assert min(costs) <= 6, costs


def test_two_processes_on_one_branch_need_one_more_round_trip() -> None:
    """The additional one is for the lease. The initial state of the plans includes the changes
    of the other process, and the last commit ends the lease."""
    server = shared_server()
    with new_url() as url, create(url) as other:
        counter = Counter(server.port)
        with connect(url.replace(f":{server.port}/", f":{counter.port}/")) as repository:
            _lose_a_race(repository, other)
            costs = []
            for version in range(1, 11):
                for number in range(4):
                    _commit(other, f"theirs{number}v{version}", None)
                before = counter.answers
                with repository.lease_if_contested("main") as lease:
                    assert lease.token
                    lease.last = True
                    plans = [partial(_plan, "main", number, version) for number in range(4)]
                    answers = repository.commit_all(plans, begin=[("main", "")], lease=lease)
                assert [answer.applied for answer in answers] == [True] * 4
                costs.append(counter.answers - before)
        counter.close()
    # psycopg prepares a statement at its sixth execution.
    assert costs[-3:] == [3, 3, 3]


def _lose_a_race(repository: Repository, other: Repository) -> None:
    moved = False

    def plan(at: Repository) -> Planned[CommitResult]:
        nonlocal moved
        found = _plan("main", 0, 0, at)
        if not moved:
            moved = True
            _commit(other, "theirs", None)
        return found

    assert repository.commit_all([plan])[0].applied


def _commit(repository: Repository, name: str, expected: str | None) -> str:
    operations = [Put(ContentKey((name,)), table(1))]
    return repository.commit(
        "main", operations, CommitMeta("load"), expected_hash=expected
    ).reference.hash


def _commit_all(repository: Repository, version: int) -> list[bool]:
    names = [f"b{number % BRANCHES}" for number in range(BRANCHES * 2)]
    plans = [partial(_plan, name, number, version) for number, name in enumerate(names)]
    begin = [(name, "") for name in dict.fromkeys(names)]
    return [answer.applied for answer in repository.commit_all(plans, begin=begin)]


def _plan(name: str, number: int, version: int, at: Repository) -> Planned[CommitResult]:
    operation = Put(ContentKey((f"t{number}v{version}",)), table(version))
    return planned(at.draft(Commit(name, [operation], CommitMeta("load"))))
