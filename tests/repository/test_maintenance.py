"""Maintenance deletes all unneeded data, keeps everything else, and does not disturb
writers."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from nessie_cli.errors import CommitNotFound, DamagedObject, InvalidInput, NessieError
from nessie_cli.model import MaintenanceReport, ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import connect, create
from tests.repository.vocabulary import Catalog, put, table
from tests.store.postgres_server import new_url
from tests.store.raw import raw

pytestmark = pytest.mark.slow

DAY = 86_400 * 1_000_000
LONG = 100 * DAY


class Clock:
    """The system clock, some microseconds ahead."""

    def __init__(self) -> None:
        self.ahead = 0

    def __call__(self) -> int:
        return time.time_ns() // 1000 + self.ahead


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with _new(request.param, tmp_path) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A store that several processes can open."""
    with _new(request.param, tmp_path) as url:
        yield url


def _new(kind: str, folder: Path) -> AbstractContextManager[str]:
    if kind == "postgres":
        return new_url()
    return nullcontext(f"sqlite:///{folder}/store.sqlite")


@pytest.fixture
def catalog(url: str, clock: Clock) -> Iterator[Catalog]:
    with create(url, clock=clock) as repository:
        yield Catalog(repository)


def deleted(report: MaintenanceReport) -> dict[str, int]:
    return {kind: found.objects for kind, found in report.reclaimed.items()}


def drop(catalog: Catalog, name: str) -> None:
    catalog.repository.delete_reference(name, expected_hash=catalog.head(name))


def readable(repository: Repository) -> Any:
    """Returns everything that is reachable from references."""
    return [
        (
            r,
            list(repository.log(r.hash, operations=True)),
            list(repository.entries(r.hash, content=True)),
        )
        for r in repository.references()
    ]


def test_the_message_of_a_tag_never_expires(catalog: Catalog, clock: Clock) -> None:
    head = catalog.write("main", {"a": 1})
    catalog.repository.create_reference(ReferenceType.TAG, "v1", head, message="Figures of March")
    later = catalog.write("main", {"a": 2})
    catalog.repository.assign_reference("v1", later, expected_hash=head)
    for days in (1, 2):
        clock.ahead = days * LONG
        catalog.repository.maintain()
        assert [entry.operation for entry in catalog.repository.reflog("v1")] == ["assign"]
        assert catalog.repository.messages(["v1"]) == {"v1": "Figures of March"}
        assert list(catalog.repository.check()) == []
        catalog.write("main", {"b": days})


def test_the_commits_of_a_deleted_branch_are_kept_until_the_reflog_expires(
    catalog: Catalog, clock: Clock
) -> None:
    catalog.write("main", {"a": 1})
    catalog.branch("dev")
    head = catalog.write("dev", {"b": 2, "c": 3})
    drop(catalog, "dev")
    clock.ahead = 89 * DAY
    report = catalog.repository.maintain()
    assert deleted(report) == {"commit": 0, "node": 0, "value": 0}
    assert (report.moves, report.requests) == (0, 0)
    assert catalog.hash(head) == head

    clock.ahead = LONG
    planned = catalog.repository.maintain(dry_run=True)
    assert planned.dry_run
    assert catalog.hash(head) == head
    assert len(list(catalog.repository.reflog())) == 5
    # The newest entry of the reflog is that of the deletion, and it is kept.
    assert deleted(planned) == {"commit": 0, "node": 0, "value": 0}
    catalog.write("main", {"d": 4})
    report = catalog.repository.maintain()
    assert deleted(report) == deleted(catalog.repository.maintain(dry_run=True)) | {
        "commit": 1,
        "node": 1,
        "value": 2,
    }
    assert (report.moves, report.requests) == (5, 0)
    assert sum(found.size for found in report.reclaimed.values()) > 0
    with pytest.raises(NessieError):
        catalog.hash(head)
    assert catalog.numbers() == {"a": 1, "d": 4}
    assert list(catalog.repository.check()) == []


def test_young_objects_are_kept_with_everything_that_they_need(
    catalog: Catalog, clock: Clock
) -> None:
    catalog.repository.put_setting("reflog-expiry", "1h")
    catalog.write("main", {"a": 1})
    catalog.branch("dev")
    for n in range(3):
        catalog.write("dev", {f"b{n}": n})
    drop(catalog, "dev")
    catalog.write("main", {"a": 2})
    clock.ahead = DAY // 2
    assert deleted(catalog.repository.maintain()) == {"commit": 0, "node": 0, "value": 0}
    assert deleted(catalog.repository.maintain(grace=timedelta(hours=2)))["commit"] == 3
    assert list(catalog.repository.check()) == []


def test_expiry_is_a_setting_and_requests_expire_with_their_moves(
    catalog: Catalog, clock: Clock
) -> None:
    repository = catalog.repository
    for name, value in (
        ("reflog-expiry", "soon"),
        ("request-expiry", "-P1D"),
        ("reflog-expiry", "59m"),
        ("request-expiry", ""),
    ):
        with pytest.raises(InvalidInput, match=r"duration|too short"):
            repository.put_setting(name, value)
    repository.put_setting("request-expiry", "P300D")
    catalog.commit("main", put("a", table(1)), request_id="one")
    clock.ahead = 50 * DAY
    catalog.commit("main", put("b", table(2)), request_id="two")
    clock.ahead = LONG
    repository.maintain()
    assert repository.find_request("one") is None
    assert repository.find_request("two") is not None
    with pytest.raises(InvalidInput, match="the shortest is 2h"):
        repository.maintain(grace=timedelta(hours=1))


def test_a_longer_expiry_does_no_harm(catalog: Catalog, clock: Clock) -> None:
    """The newest entry, and that of a tag's message, are older than the expiry that was set."""
    repository = catalog.repository
    repository.put_setting("reflog-expiry", "1h")
    head = catalog.write("main", {"a": 1})
    catalog.branch("dev")
    former = catalog.write("dev", {"b": 1})
    repository.create_reference(ReferenceType.TAG, "v1", former, message="a message")
    repository.assign_reference("v1", head, expected_hash=former)
    catalog.branch("last")
    catalog.write("last", {"c": 1})
    drop(catalog, "dev")
    drop(catalog, "last")
    clock.ahead = 2 * DAY
    report = repository.maintain(grace=timedelta(hours=2))
    assert deleted(report)["commit"] == 0
    assert report.moves > 3
    repository.put_setting("reflog-expiry", "90d")
    catalog.write("main", {"d": 1})
    assert list(repository.check()) == []
    repository.maintain()


def test_entries_of_commits_that_were_deleted_before_do_no_harm(
    tmp_path: Path, clock: Clock
) -> None:
    path = f"{tmp_path}/store.sqlite"
    with create(path, clock=clock) as repository:
        catalog = Catalog(repository)
        catalog.branch("dev")
        lost = catalog.write("dev", {"b": 2})
        catalog.write("main", {"c": 3})
        drop(catalog, "dev")
    with raw(path) as connection:
        connection.execute("DELETE FROM objects WHERE id = ?", (bytes.fromhex(lost),))
    clock.ahead = LONG
    with connect(path, clock=clock) as repository:
        assert list(repository.check()) == []
        repository.maintain()
        assert list(repository.check()) == []


@pytest.mark.parametrize("seed", range(3))
def test_reachable_objects_are_kept(catalog: Catalog, clock: Clock, seed: int) -> None:
    chance = random.Random(seed)
    names = ["main"]
    for n in range(60):
        branch = chance.choice(names)
        match chance.choice(["write", "write", "branch", "merge", "transplant", "drop", "reset"]):
            case "write":
                catalog.write(
                    branch,
                    {f"{chance.choice('abcdef')}{n % 7}": n for _ in range(chance.randint(1, 4))},
                )
            case "branch":
                names.append(f"b{n}")
                catalog.branch(names[-1], branch)
            case "merge":
                _quietly(lambda: catalog.merge(chance.choice(names), branch))  # noqa: B023 - called at once
            case "transplant":
                _quietly(lambda: catalog.transplant([catalog.head(chance.choice(names))], branch))  # noqa: B023 - called at once
            case "drop" if branch != "main":
                names.remove(branch)
                drop(catalog, branch)
            case "reset" if branch != "main":
                catalog.repository.assign_reference(
                    branch, catalog.head(), expected_hash=catalog.head(branch)
                )
    catalog.write("main", {"last": 1})
    before = readable(catalog.repository)
    clock.ahead = LONG
    planned = catalog.repository.maintain(dry_run=True)
    report = catalog.repository.maintain()
    assert deleted(planned) == deleted(report)
    assert report.reclaimed["value"].objects > 0
    assert readable(catalog.repository) == before
    assert list(catalog.repository.check()) == []
    assert deleted(catalog.repository.maintain(full=True)) == {"commit": 0, "node": 0, "value": 0}
    assert readable(catalog.repository) == before


def _quietly(act: Callable[[], object]) -> None:
    with suppress(NessieError):
        act()


LATEST = "(SELECT max(number) FROM objects WHERE kind = {})"
OLD = "(SELECT min(number) FROM objects WHERE kind = {})"
DAMAGES = {
    **{
        f"missing {name} of {where}": f"DELETE FROM objects WHERE number = {place.format(kind)}"
        for kind, name in ((1, "value"), (2, "node"), (3, "commit"))
        for where, place in (("HEAD", LATEST), ("history", OLD))
    },
    **{
        f"damaged {name}": (
            "UPDATE objects SET packed = CAST(packed || x'00' AS BLOB)"
            f" WHERE number = {LATEST.format(kind)}"
        )
        for kind, name in ((1, "value"), (2, "node"), (3, "commit"))
    },
    "unknown kind": f"UPDATE objects SET kind = 9 WHERE number = {OLD.format(3)}",
    "no object": f"UPDATE objects SET written = 'now' WHERE number = {OLD.format(3)}",
    "lost branch": "DELETE FROM refs WHERE name = 'main'",
    "damaged branch": "UPDATE refs SET check_sum = check_sum + 1 WHERE name = 'main'",
    "lost entry": "DELETE FROM reflog WHERE number = 3",
    "damaged entry": "UPDATE reflog SET digest = previous WHERE number = 3",
    "damaged setting": "UPDATE settings SET check_sum = check_sum + 1 WHERE name = 'reflog-expiry'",
    "lost setting": "DELETE FROM settings WHERE name = 'reflog-expiry'",
}


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("damage", DAMAGES)
def test_nothing_is_deleted_in_a_damaged_store(
    tmp_path: Path, clock: Clock, damage: str, dry_run: bool
) -> None:
    """All entries have expired, so `main` alone keeps most of the objects."""
    path = f"{tmp_path}/store.sqlite"
    with create(path, clock=clock) as repository:
        catalog = Catalog(repository)
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        catalog.write("dev", {"b": 2})
        drop(catalog, "dev")
        repository.put_setting("reflog-expiry", "80d")
        catalog.write("main", {f"c{n}": n for n in range(5)})
        catalog.branch("newest")
    with raw(path) as connection:
        connection.execute(DAMAGES[damage]).fetchall()
    clock.ahead = LONG
    before = rows(path)
    with pytest.raises(DamagedObject), connect(path, clock=clock) as repository:
        repository.maintain(dry_run=dry_run)
    assert rows(path) == before


def test_a_damaged_object_that_nothing_needs_stops_maintenance(
    tmp_path: Path, clock: Clock
) -> None:
    path = f"{tmp_path}/store.sqlite"
    with create(path, clock=clock) as repository:
        catalog = Catalog(repository)
        catalog.branch("dev")
        catalog.write("dev", {"b": 2})
        drop(catalog, "dev")
        catalog.write("main", {"c": 3})
    with raw(path) as connection:
        connection.execute("UPDATE objects SET packed = x'00' WHERE kind = 2 AND number < 4")
    clock.ahead = LONG
    before = rows(path)
    with connect(path, clock=clock) as repository:
        with pytest.raises(DamagedObject):
            repository.maintain()
        assert rows(path) == before


def rows(path: str) -> list[tuple[int, ...]]:
    """How many rows each table has."""
    with raw(path) as connection:
        return connection.execute(
            "SELECT (SELECT count(*) FROM objects), (SELECT count(*) FROM reflog), (SELECT"
            " count(*) FROM requests)"
        ).fetchall()


def test_a_commit_that_another_process_deleted_is_not_found(shared: str, clock: Clock) -> None:
    """A server may have it in its cache."""
    with create(shared, clock=clock) as repository, connect(shared) as server:
        catalog = Catalog(repository)
        catalog.branch("dev")
        head = catalog.write("dev", {"a": 1})
        drop(catalog, "dev")
        catalog.write("main", {"b": 1})
        assert server.commit_at(head).hash == head
        clock.ahead = LONG
        assert deleted(repository.maintain())["commit"] == 1
        with pytest.raises(CommitNotFound, match=head):
            server.create_reference(ReferenceType.BRANCH, "again", head)
        Catalog(server).write("main", {"c": 1})


def test_maintenance_keeps_objects_that_became_reachable_meanwhile(shared: str) -> None:
    """Every object counts as old here.

    So only the moves since the mark protect the objects that writers use again.
    """
    errors: list[BaseException] = []
    end = Event()

    def work(act: Callable[[Catalog, random.Random, int], None], number: int) -> None:
        chance = random.Random(number)
        try:
            with connect(shared) as repository:
                n = 0
                while not end.is_set():
                    n += 1
                    act(Catalog(repository), chance, n)
        except BaseException as error:
            errors.append(error)
            raise

    abandoned: list[str] = []

    def abandon(catalog: Catalog, chance: random.Random, n: int) -> None:
        """Creates and deletes branches, with contents that other writers also write."""
        name = f"b{chance.random()}"
        catalog.branch(name)
        abandoned.extend(
            catalog.write(name, {f"k{chance.randrange(40)}": chance.randrange(3)}) for _ in range(3)
        )
        if n % 2:
            _quietly(lambda: catalog.merge(name))
        drop(catalog, name)

    def revive(catalog: Catalog, chance: random.Random, n: int) -> None:
        """Names a commit that may be unreachable by now."""
        if not abandoned:
            return
        name = f"revived{n}"
        try:
            catalog.repository.create_reference(
                ReferenceType.BRANCH, name, chance.choice(abandoned)
            )
        except NessieError:
            return
        assert len(catalog.log(name)) > 1
        assert catalog.numbers(name)

    threads = [
        Thread(target=work, args=(act, number))
        for number, act in enumerate([abandon, abandon, revive])
    ]
    clock = Clock()
    with create(shared, clock=clock) as repository:
        Catalog(repository).write("main", {f"k{n}": n for n in range(40)})
        for thread in threads:
            thread.start()
        clock.ahead = LONG
        gone = 0
        until = time.monotonic() + 4
        while time.monotonic() < until and not errors:
            gone += deleted(repository.maintain())["commit"]
        end.set()
        for thread in threads:
            thread.join(60)
        assert errors == []
        assert gone > 0
        assert list(repository.check()) == []
        readable(repository)


KILLED = """
import sys, time
from nessie_cli.repository.opening import connect
with connect(sys.argv[1], clock=lambda: time.time_ns() // 1000 + 10**13) as repository:
    print("ready", flush=True)
    repository.maintain()
"""


def test_a_killed_maintenance_leaves_an_intact_store(shared: str, clock: Clock) -> None:
    with create(shared, clock=clock) as repository:
        catalog = Catalog(repository)
        catalog.write("main", {"keep": 1})
        catalog.branch("dev")
        for n in range(12):
            catalog.write("dev", {f"k{m}": n for m in range(300)})
        drop(catalog, "dev")
        catalog.write("main", {"keep": 2})
        before, count = readable(repository), len(list(repository.check()))
        assert count == 0
        for attempt in range(8):
            process = subprocess.Popen(
                [sys.executable, "-c", KILLED, shared], stdout=subprocess.PIPE, text=True
            )
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.01 * attempt)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            assert list(repository.check()) == []
        clock.ahead = LONG
        repository.maintain()
        assert readable(repository) == before
        assert list(repository.check()) == []
