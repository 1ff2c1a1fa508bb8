"""Several processes that write to one branch: after a lost race, a plan takes the lease
first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from threading import Thread

import pytest

from nessie_cli import connect, create
from nessie_cli.repository.base import Repository
from tests.repository.plans import plan
from tests.repository.vocabulary import Catalog, put, table
from tests.store.postgres_server import new_url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with (
        new_url()
        if request.param == "postgres"
        else nullcontext(f"{tmp_path}/store.sqlite") as found
    ):
        create(found).close()
        yield found


def lose_a_race(repository: Repository, other: Repository) -> None:
    """Commits on main while another process commits there as well."""
    moved: list[str] = []

    def meanwhile(c: Catalog) -> str:
        answer = c.commit("main", put("ours", table(1)))
        if not moved:
            moved.append(Catalog(other).commit("main", put("theirs", table(1))))
        return answer

    assert not isinstance(repository.commit_all([plan(meanwhile)])[0], Exception)


def test_only_contested_references_are_leased(url: str) -> None:
    with connect(url) as first, connect(url) as second:
        assert first.lease_if_contested("main").token == ""
        lose_a_race(first, second)
        assert first.lease_if_contested("dev").token == ""
        assert second.lease_if_contested("main").token == ""
        lease = first.lease_if_contested("main")
        assert lease.token
        lease.give_back()
        lease.give_back()
        assert lease.token == ""


def test_a_group_commits_under_its_lease_and_others_wait(url: str) -> None:
    with connect(url) as first, connect(url) as second:
        lose_a_race(first, second)
        lease = first.lease_if_contested("main")
        theirs = Thread(target=lambda: Catalog(second).commit("main", put("late", table(2))))
        theirs.start()
        try:
            plans = [
                plan(lambda c, n=n: c.commit("main", put(f"k{n}", table(n)))) for n in range(6)
            ]
            ours = first.commit_all(plans[:3], lease=lease) + first.commit_all(
                plans[3:], lease=lease
            )
        finally:
            lease.give_back()
        theirs.join(60)
        assert Catalog(first).hashes()[1:7] == ours[::-1], "the other one came last"


def test_an_unavailable_store_gives_no_lease(url: str) -> None:
    with connect(url) as first, connect(url) as second:
        lose_a_race(first, second)
        first.close()
        assert first.lease_if_contested("main").token == ""


def test_a_lease_is_released_after_a_lost_race(url: str) -> None:
    """A writer that waits for the lease of another reference must hold none; otherwise, two such
    writers would wait for each other."""
    with connect(url) as first, connect(url) as second:
        lose_a_race(first, second)
        Catalog(first).branch("dev")
        lease = first.lease_if_contested("main")
        moved: list[str] = []

        def on_dev(c: Catalog) -> str:
            answer = c.commit("dev", put("ours on dev", table(1)))
            if len(moved) < 2:
                moved.append(Catalog(second).commit("dev", put(f"theirs{len(moved)}", table(1))))
            return answer

        assert not isinstance(first.commit_all([plan(on_dev)], lease=lease)[0], Exception)
        assert lease.token == ""
