"""Large metadata files are read one at a time, whatever number of clients ask for them."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from nessie_cli import create
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Namespace, Put
from nessie_cli.server.http.failures import Unavailable
from nessie_cli.server.runtime.memory import MOST_WAITING, LargeFiles
from tests.server.iceberg_rest.lake import SCHEMA
from tests.server.iceberg_rest.test_large_metadata import (
    REMOVE,
    TABLES,
    large_file,
    properties,
    updates,
)
from tests.server.processes import started
from tests.server.test_memory import resident
from tests.server.waits import PATIENCE, SOON, shortest, worst_wait

NAMES = [f"t{number}" for number in range(8)]
LARGE = 400_000
"""Properties of a table: 8 MB of metadata, and many times that in memory."""
MOST_MEMORY = 600 << 20


class Served:
    def __init__(self, pid: int, url: str, location: str) -> None:
        self.pid = pid
        self.url = url
        self.location = location

    def status(self, path: str, body: Any = None) -> int:
        """Sends a request. Answers are not parsed: this process measures the waits."""
        request = urllib.request.Request(
            f"{self.url}/iceberg/v1/main{path}",
            None if body is None else json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            while answer.read(1 << 16):
                pass
            return int(answer.status)

    def register(self, name: str) -> int:
        body = {"name": name, "metadata-location": self.location, "overwrite": True}
        return self.status("/namespaces/db/register", body)

    def change(self, name: str) -> int:
        return self.status(f"{TABLES}/{name}", updates(REMOVE))

    def load_refs(self, name: str) -> int:
        return self.status(f"{TABLES}/{name}?snapshots=refs")

    def all_at_once(self, sends: Sequence[Callable[[], int]]) -> tuple[list[int], float]:
        """Returns the statuses of requests, and the longest wait of a health check."""
        with ThreadPoolExecutor(len(sends)) as pool:
            pending = [pool.submit(send) for send in sends]
            wait: float = worst_wait(self.url, pending)
        return [one.result() for one in pending], wait


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server in a process of its own, with large tables."""
    folder = tmp_path_factory.mktemp("lake")
    store, warehouse = str(folder / "catalog.sqlite"), folder / "warehouse"
    location = large_file(warehouse, "large", **properties(LARGE))
    table = IcebergTable(metadata_location=location, snapshot_id=-1)
    tables = [Put(ContentKey(("db", name)), table) for name in NAMES]
    namespace = Put(ContentKey(("db",)), Namespace(elements=("db",)))
    with create(store) as repository:
        repository.commit("main", [namespace, *tables], CommitMeta("large tables"))
    with started("--store", store, "--warehouse", str(warehouse)) as (process, url):
        yield Served(process.pid, url, location)


@pytest.mark.parametrize("request_", [Served.register, Served.change, Served.load_refs])
def test_many_requests_for_large_files_need_the_memory_of_one(
    served: Served, request_: Callable[[Served, str], int]
) -> None:
    statuses: list[list[int]] = []

    def attempt() -> float:
        found, wait = served.all_at_once([partial(request_, served, name) for name in NAMES])
        statuses.append(found)
        return wait

    assert shortest(attempt) < SOON
    assert statuses[0] == [200] * len(NAMES)
    assert resident(served.pid, "VmHWM") < MOST_MEMORY


def test_small_requests_do_not_wait_for_large_files(served: Served) -> None:
    done: list[str] = []

    def change(name: str) -> int:
        status = served.change(name)
        done.append(name)
        return status

    def create_small() -> int:
        status = served.status(TABLES, {"name": "small", "schema": SCHEMA})
        done.append("small")
        return status

    large = [partial(change, name) for name in NAMES]
    statuses, _ = served.all_at_once([*large, create_small])
    assert statuses == [200] * (len(NAMES) + 1)
    assert done.index("small") < len(NAMES) // 2


# -- turns -----------------------------------------------------------------------------------------


def test_one_turn_follows_another() -> None:
    files, running, most = LargeFiles(lambda: None), 0, 0

    def work(_: int) -> None:
        nonlocal running, most
        files.begin(1 << 20)
        running += 1
        most = max(most, running)
        time.sleep(0.005)
        running -= 1
        files.end()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(40)))
    assert most == 1


def test_too_many_waiting_files_are_refused() -> None:
    files = LargeFiles(lambda: None)
    refused: list[Exception] = []
    files.begin(1)

    def wait() -> None:
        try:
            files.begin(MOST_WAITING)
        except Unavailable as error:
            refused.append(error)
            files.end()  # the turn of the main thread, so that the other one gets it
        else:
            files.end()

    both = [threading.Thread(target=wait) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(PATIENCE)
    assert len(refused) == 1
    files.begin(MOST_WAITING + 1)
    files.end()


def test_a_long_wait_for_a_turn_is_refused() -> None:
    files = LargeFiles(lambda: None, longest_queued=0.05)
    files.begin(1)
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(files.begin, MOST_WAITING)
        try:
            with pytest.raises(Unavailable, match="come again later"):
                late.result(PATIENCE)
        finally:
            files.end()
        # The late file neither waits any more nor has a turn.
        pool.submit(files.begin, MOST_WAITING).result(PATIENCE)
        files.end()


def test_work_between_turns_is_done_only_then() -> None:
    ended: list[str] = []
    files = LargeFiles(lambda: ended.append("turn"))
    files.begin(1)

    def work() -> bool:
        ended.append("work")
        return True

    assert not files.between_turns(work)
    files.end()
    assert files.between_turns(work)
    assert not files.between_turns(lambda: False)
    assert ended == ["turn", "work"]
