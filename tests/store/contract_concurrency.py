"""The part of the store contract that needs several threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from time import monotonic
from typing import TypeVar

import pytest

from nessie_cli.store.base import LEASE, Store
from nessie_cli.store.records import Done, Outcome, Stale
from tests.store.samples import a_move, a_write, an_object, commit, create, id_of, write

T = TypeVar("T")


def concurrently(*tasks: Callable[[], T]) -> list[T]:
    """Runs tasks concurrently; raises the first error of any of them."""
    barrier = Barrier(len(tasks))

    def run(task: Callable[[], T]) -> T:
        barrier.wait(60)
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return [future.result(120) for future in [pool.submit(run, task) for task in tasks]]


class ConcurrencyContract:
    """Inherited by `StoreContract`."""

    def test_one_of_many_racing_writers_wins(self, store: Store) -> None:
        write(store, create("main", "0"))
        answers = concurrently(
            *[lambda n=n: write(store, commit("main", "0", f"writer {n}")) for n in range(6)]
        )
        assert sorted(type(a).__name__ for a in answers) == ["Done"] + ["Stale"] * 5
        winner = store.reference("main")
        assert {a.current for a in answers if isinstance(a, Stale)} == {winner}
        assert len(list(store.scan())) == 3

    def test_retrying_writers_lose_no_update(self, store: Store) -> None:
        """Six threads increment a reference; no increment may be lost."""
        write(store, create("main", "0"))

        def count_up() -> None:
            for _ in range(20):
                answer: Outcome | None = None
                while answer != Done():
                    height = len(store.reflog("main")) - 1
                    answer = write(
                        store, a_write(moves=[a_move("main", str(height), str(height + 1))])
                    )

        concurrently(*[count_up] * 6)
        assert store.reference("main").target == id_of("120")  # type: ignore[union-attr]
        assert [row.move.after for row in reversed(store.reflog())] == [
            id_of(str(n)) for n in range(121)
        ]

    def test_the_same_objects_can_be_written_concurrently(self, store: Store) -> None:
        objects = [an_object(str(n), size=700) for n in range(50)]
        concurrently(*[lambda: store.put(objects), lambda: write(store, a_write(objects))] * 3)
        assert {o.id: o for o in store.scan()} == {o.id: o for o in objects}

    def test_a_request_id_is_committed_once(self, store: Store) -> None:
        write(store, create("main", "0"))
        writes = [commit("main", "0", f"writer {n}", "r") for n in range(6)]
        outcomes = concurrently(*[lambda one=one: write(store, one) for one in writes])
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Done"] + ["Repeated"] * 5
        assert len(store.reflog("main")) == 2

    def test_lease_holders_win_in_turn(self, store: Store) -> None:
        """Each lease holder needs one draft, although another writer never takes a lease."""
        write(store, create("main", "0"))
        over = Event()

        def step(lease: str) -> Outcome:
            at = len(store.reflog("main")) - 1
            return store.commit([commit("main", str(at), str(at + 1))], lease=lease)[0]

        def without_lease() -> None:
            while not over.is_set():
                step("")

        def with_lease() -> list[Outcome]:
            try:
                outcomes = []
                for _ in range(10):
                    with store.lease("main") as token:
                        outcomes.append(step(token))
                return outcomes
            finally:
                over.set()

        assert concurrently(without_lease, with_lease)[1] == [Done()] * 10

    @pytest.mark.parametrize("end_lease", [False, True])
    def test_the_holder_of_a_lease_does_not_wait_for_another_one(
        self, store: Store, end_lease: bool
    ) -> None:
        """Two holders that commit to both references would wait for each other."""
        write(store, create("a", "0"))
        write(store, create("b", "0"))
        writes = [commit("a", "0", "1"), commit("b", "0", "1")]
        with store.lease("a") as token, store.lease("b"):
            start = monotonic()
            assert store.commit(writes, lease=token, end_lease=end_lease) == [Done(), Done()]
            assert monotonic() - start < LEASE / 2

    def test_readers_see_a_write_completely_or_not_at_all(self, store: Store) -> None:
        """Two references move together, so one listing must show them equal."""
        write(store, a_write(moves=[a_move("a", None, "0"), a_move("b", None, "0")]))
        readers_left = [1, 1]

        def writer() -> None:
            n = 0
            while readers_left or n < 20:
                moves = [a_move("a", str(n), str(n + 1)), a_move("b", str(n), str(n + 1))]
                assert write(store, a_write([an_object(str(n))], moves)) == Done()
                n += 1

        def reader() -> None:
            try:
                for _ in range(200):
                    a, b = store.references()
                    assert a.target == b.target
            finally:
                readers_left.pop()

        concurrently(writer, reader, reader)
