"""Group commit: concurrent writes share a transaction, each gets its own answer, and none is
lost or starved."""

import asyncio
import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from nessie_cli import connect, create
from nessie_cli.errors import StoreUnavailable
from nessie_cli.repository.group_commit import Lease
from nessie_cli.server.http.failures import Unavailable
from nessie_cli.server.http.messages import Limits
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from nessie_cli.server.runtime import thread_pool
from nessie_cli.server.runtime.thread_pool import QueuedWrite, Writer
from tests.server.client import EMPTY, Client, delete, put, table
from tests.server.serving import serving


class Group:
    """A repository that makes its plans durable at once, and records how many there were."""

    def __init__(self):
        self.sizes = []
        self.running = threading.Event()
        self.go_on = threading.Event()

    def lease_if_contested(self, _):
        return Lease(None, "")

    def commit_all(self, plans, **_):
        self.sizes.append(len(plans))
        return [outcome(plan) for plan in plans]


def outcome(plan):
    try:
        return plan(None)
    except ValueError as error:
        return error


def write(do, large=False):
    return QueuedWrite(lambda: None, lambda _: do(), lambda error: error, large)


def run(scenario):
    """Runs a scenario on an event loop, with a group and the writer over it."""
    group = Group()
    writer = Writer(group, most_waiting=20, most_together=8)

    def blocking():
        group.running.set()
        assert group.go_on.wait(60)
        return "first"

    async def main():
        first = writer.submit(write(blocking))
        await asyncio.to_thread(group.running.wait, 60)
        await scenario(writer, group, first)

    try:
        asyncio.run(main())
    finally:
        group.go_on.set()
        writer.close()


def test_waiting_writes_share_a_transaction_and_are_answered_in_order():
    done = []

    def one(number):
        done.append(number)
        if number == 3:
            raise ValueError(number)
        return number

    async def scenario(writer, group, first):
        waiting = [writer.submit(write(lambda number=number: one(number))) for number in range(12)]
        group.go_on.set()
        answers = await asyncio.gather(first, *waiting)
        assert answers[0] == "first"
        assert [str(answer) for answer in answers[1:]] == [str(number) for number in range(12)]
        assert isinstance(answers[4], ValueError)
        assert done == list(range(12))
        assert group.sizes == [1, 8, 4]

    run(scenario)


def test_a_large_write_has_its_own_transaction():
    async def scenario(writer, group, first):
        waiting = [
            writer.submit(write(lambda number=number: number, large=number == 2))
            for number in range(5)
        ]
        group.go_on.set()
        assert await asyncio.gather(*waiting) == list(range(5))
        assert group.sizes == [1, 2, 1, 2]

    run(scenario)


def test_writes_that_waited_behind_a_silent_store_fail_with_the_first(monkeypatch):
    """Each large one would wait for the store by itself, one after the other."""
    monkeypatch.setattr(thread_pool, "SILENCE", 0.05)

    async def scenario(writer, group, begun):
        def silent():
            group.running.set()
            assert group.go_on.wait(60)
            raise StoreUnavailable("the server did not answer for 30 seconds")

        group.go_on.set()
        await begun
        group.running.clear()
        group.go_on.clear()
        first = writer.submit(write(silent))
        await asyncio.to_thread(group.running.wait, 60)
        waiting = [writer.submit(write(lambda: "late", large=True)) for _ in range(3)]
        waiting.append(writer.submit(write(lambda: "late")))
        await asyncio.sleep(0.1)
        group.go_on.set()
        answers = await asyncio.gather(first, *waiting)
        assert isinstance(answers[0], StoreUnavailable)
        assert [type(answer) for answer in answers[1:]] == [Unavailable] * 4
        assert await writer.submit(write(lambda: "next")) == "next"
        assert group.sizes == [1, 1, 1]

    run(scenario)


def test_a_write_that_has_waited_for_too_long_is_not_carried_out(monkeypatch):
    monkeypatch.setattr(thread_pool, "LONGEST_QUEUED", 0.05)

    async def scenario(writer, group, first):
        late = writer.submit(write(lambda: "late"))
        await asyncio.sleep(0.1)
        group.go_on.set()
        assert await first == "first"
        assert isinstance(await late, Unavailable)
        assert group.sizes == [1]

    run(scenario)


class Body:
    """An object whose deletion can be observed."""


def test_a_finished_write_is_freed_before_the_next_one():
    async def main(writer):
        body = Body()
        await writer.submit(write(lambda body=body: body))
        return weakref.ref(body)

    writer = Writer(Group())
    gc.disable()
    try:
        seen, end = asyncio.run(main(writer)), time.monotonic() + 60
        # The answering thread may not have released its references yet.
        while seen() is not None:
            assert time.monotonic() < end
            time.sleep(0.01)
    finally:
        gc.enable()
        writer.close()


def test_writes_beyond_the_queue_limit_are_refused():
    async def scenario(writer, group, first):
        waiting = [writer.submit(write(lambda number=number: number)) for number in range(20)]
        with pytest.raises(Unavailable):
            writer.submit(write(lambda: None))
        group.go_on.set()
        assert await asyncio.gather(*waiting) == list(range(20))

    run(scenario)


def test_a_full_queue_is_answered_with_503_and_retry_after():
    with (
        connect("memory:") as repository,
        serving(app=application(repository, Parts(Limits(writes=0)))) as url,
    ):
        client = Client(url)
        answer = client.commit("main", EMPTY, put("a"))
        assert (answer.status, answer.body["errorCode"]) == (503, "SERVICE_UNAVAILABLE")
        assert int(answer.headers["retry-after"]) > 0
        assert client.get("/api/v2/trees/main").status == 200


WRITERS, EACH = 8, 12


def test_concurrent_writers_each_get_their_own_answer(tmp_path):
    """Some of the commits conflict. They are refused, and the others in the same transaction are
    not."""
    with create(str(tmp_path / "catalog.sqlite")) as repository, serving(repository) as url:
        first = Client(url)
        head = first.commit("main", EMPTY, put("shared")).body["targetBranch"]["hash"]

        def work(writer):
            client = Client(url)
            answers = []
            for number in range(EACH):
                answers.append(
                    client.commit(
                        "main",
                        head,
                        put(f"t{writer}-{number}", content=table(number)),
                        message=f"{writer} {number}",
                    )
                )
                refused = client.commit(
                    "main", head, delete("nosuch"), message=f"refused {writer} {number}"
                )
                assert (
                    refused.status,
                    refused.body["errorDetails"]["conflicts"][0]["conflictType"],
                ) == (409, "KEY_DOES_NOT_EXIST")
            client.close()
            return answers

        with ThreadPoolExecutor(WRITERS) as pool:
            answers = [answer for found in pool.map(work, range(WRITERS)) for answer in found]
        assert {answer.status for answer in answers} == {200}
        log = {entry.hash: entry.meta.message for entry in repository.log("main")}
        assert len(log) == 1 + WRITERS * EACH
        acknowledged = [answer.body["targetBranch"]["hash"] for answer in answers]
        assert len(set(acknowledged)) == len(acknowledged)
        assert {log[hash_] for hash_ in acknowledged} == {
            f"{writer} {number}" for writer in range(WRITERS) for number in range(EACH)
        }
        assert list(repository.check()) == []
        assert first.commit("main", first.head(), delete("shared")).status == 200
