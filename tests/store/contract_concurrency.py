"""The part of the store contract that needs several threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import TypeVar

from nessie_cli.store.base import Store
from nessie_cli.store.records import Done, Outcome, Stale
from tests.store.samples import a_move, a_write, an_object, commit, create, id_of, write

T = TypeVar("T")


def together(*tasks: Callable[[], T]) -> list[T]:
    """Run all at the same time; raises the first error of any of them."""
    barrier = Barrier(len(tasks))

    def run(task: Callable[[], T]) -> T:
        barrier.wait(60)
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return [future.result(120) for future in [pool.submit(run, task) for task in tasks]]


class ConcurrencyContract:
    """Inherited by `StoreContract`."""

    def test_of_many_racing_writers_one_wins(self, store: Store) -> None:
        write(store, create("main", "0"))
        answers = together(
            *[lambda n=n: write(store, commit("main", "0", f"writer {n}")) for n in range(6)]
        )
        assert sorted(type(a).__name__ for a in answers) == ["Done"] + ["Stale"] * 5
        winner = store.reference("main")
        assert {a.current for a in answers if isinstance(a, Stale)} == {winner}
        assert len(list(store.scan())) == 3

    def test_retrying_writers_lose_no_update(self, store: Store) -> None:
        """Six threads count one reference up; each step must have happened once."""
        write(store, create("main", "0"))

        def count_up() -> None:
            for _ in range(20):
                answer: Outcome | None = None
                while answer != Done():
                    height = len(store.reflog("main")) - 1
                    answer = write(
                        store, a_write(moves=[a_move("main", str(height), str(height + 1))])
                    )

        together(*[count_up] * 6)
        assert store.reference("main").target == id_of("120")  # type: ignore[union-attr]
        assert [row.move.after for row in reversed(store.reflog())] == [
            id_of(str(n)) for n in range(121)
        ]

    def test_the_same_objects_can_be_written_at_once(self, store: Store) -> None:
        objects = [an_object(str(n), size=700) for n in range(50)]
        together(*[lambda: store.put(objects), lambda: write(store, a_write(objects))] * 3)
        assert {o.id: o for o in store.scan()} == {o.id: o for o in objects}

    def test_one_request_id_is_done_once(self, store: Store) -> None:
        write(store, create("main", "0"))
        writes = [commit("main", "0", f"writer {n}", "r") for n in range(6)]
        outcomes = together(*[lambda one=one: write(store, one) for one in writes])
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Done"] + ["Repeated"] * 5
        assert len(store.reflog("main")) == 2

    def test_writers_who_take_a_lease_win_in_turn(self, store: Store) -> None:
        """Beside a writer who never takes one: each lease holder needs one draft."""
        write(store, create("main", "0"))
        over = Event()

        def step(lease: str) -> Outcome:
            at = len(store.reflog("main")) - 1
            return store.commit([commit("main", str(at), str(at + 1))], lease=lease)[0]

        def rude() -> None:
            while not over.is_set():
                step("")

        def fair() -> list[Outcome]:
            try:
                outcomes = []
                for _ in range(10):
                    with store.lease("main") as token:
                        outcomes.append(step(token))
                return outcomes
            finally:
                over.set()

        assert together(rude, fair)[1] == [Done()] * 10

    def test_readers_see_all_of_a_write_or_nothing(self, store: Store) -> None:
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

        together(writer, reader, reader)
