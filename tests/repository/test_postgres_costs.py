"""Round trips of a group of writes on PostgreSQL: one reads the initial state, two commit."""

from __future__ import annotations

from functools import partial

from nessie_cli import connect, create
from nessie_cli.model import CommitMeta, CommitResult, ContentKey, Put, ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import Commit
from nessie_cli.repository.group_commit import Planned, planned
from tests.repository.vocabulary import table
from tests.store.postgres_server import new_url, shared_server
from tests.store.test_postgres_costs import Counter

BRANCHES = 8


def test_a_group_of_commits_costs_three_round_trips() -> None:
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
            assert counter.answers == before + 3
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
    # The initial state, commits, nodes, two for the commit itself, and one or two nodes that were
    # not written recently.
    assert min(costs) <= 6, costs


def test_two_processes_on_one_branch_read_what_the_other_one_wrote() -> None:
    """The last commit ends the lease."""
    server = shared_server()
    with new_url() as url, create(url) as other:
        counter = Counter(server.port)
        with connect(url.replace(f":{server.port}/", f":{counter.port}/")) as repository:
            costs = []
            for version in range(1, 11):
                _lose_a_race(repository, other, version)
                for number in range(4):
                    _commit(other, f"theirs{number}v{version}", None)
                before = counter.answers
                with repository.lease_if_contested("main") as lease:
                    assert lease.token
                    lease.last = True
                    plans = [partial(_plan, "main", number, version) for number in range(4)]
                    answers = repository.commit_all(plans, prefetch=[("main", "")], lease=lease)
                assert [answer.applied for answer in answers] == [True] * 4
                costs.append(counter.answers - before)
        counter.close()
    # The lease, the initial state, the new commit and nodes, and two for the commit itself.
    assert min(costs[-3:]) <= 6, costs


def _lose_a_race(repository: Repository, other: Repository, version: int) -> None:
    moved = False

    def plan(at: Repository) -> Planned[CommitResult]:
        nonlocal moved
        found = _plan("main", -1, version, at)
        if not moved:
            moved = True
            _commit(other, f"first{version}", None)
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
    return [answer.applied for answer in repository.commit_all(plans, prefetch=begin)]


def _plan(name: str, number: int, version: int, at: Repository) -> Planned[CommitResult]:
    operation = Put(ContentKey((f"t{number}v{version}",)), table(version))
    return planned(at.draft(Commit(name, [operation], CommitMeta("load"))))
