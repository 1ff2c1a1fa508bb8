"""The part of the store contract that needs several threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, Event

from nessie_cli.store.base import Done, Stale, Store, Write
from tests.store.samples import a_move, an_object, commit, create, id_of


def together(*tasks: Callable[[], object]) -> list[object]:
    """Run all at the same time; raises what any of them raised."""
    barrier = Barrier(len(tasks))

    def run(task: Callable[[], object]) -> object:
        barrier.wait(60)
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return [future.result(120) for future in [pool.submit(run, task) for task in tasks]]


class ConcurrencyContract:
    """Inherited by `StoreContract`."""

    def test_of_many_racing_writers_one_wins(self, store: Store) -> None:
        store.write(create("main", "0"))
        answers = together(*[lambda n=n: store.write(commit("main", "0", f"writer {n}")) for n in range(6)])
        assert sorted(type(a).__name__ for a in answers) == ["Done"] + ["Stale"] * 5
        winner = store.reference("main")
        assert {a.current for a in answers if isinstance(a, Stale)} == {winner}
        assert len(list(store.scan())) == 3

    def test_retrying_writers_lose_no_update(self, store: Store) -> None:
        """Six threads count one reference up; each step must have happened once."""
        store.write(create("main", "0"))

        def count_up() -> None:
            for _ in range(20):
                answer: Done | Stale | None = None
                while answer != Done():
                    height = len(store.reflog("main")) - 1
                    answer = store.write(Write(moves=[a_move("main", str(height), str(height + 1))]))

        together(*[count_up] * 6)
        assert store.reference("main").target == id_of("120")  # type: ignore[union-attr]
        assert [row.move.after for row in reversed(store.reflog())] == [id_of(str(n)) for n in range(121)]

    def test_the_same_objects_can_be_written_at_once(self, store: Store) -> None:
        objects = [an_object(str(n), size=700) for n in range(50)]
        together(*[lambda: store.put(objects), lambda: store.write(Write(objects))] * 3)
        assert {o.id: o for o in store.scan()} == {o.id: o for o in objects}

    def test_an_exclusive_block_keeps_other_writers_out(self, store: Store) -> None:
        store.write(create("main", "0"))
        inside, wrote = Event(), Event()

        def other() -> object:
            inside.wait(60)
            answer = store.write(commit("main", "0", "other"))
            wrote.set()
            return answer

        def holder() -> object:
            with store.exclusive():
                inside.set()
                assert not wrote.wait(0.1)
                return store.write(commit("main", "0", "mine"))

        assert together(holder, other) == [Done(), Stale("main", store.reference("main"))]
        assert store.reference("main").target == id_of("mine")  # type: ignore[union-attr]

    def test_nobody_sees_inside_an_exclusive_block(self, store: Store) -> None:
        store.write(create("main", "0"))
        written, seen = Event(), []

        def reader() -> None:
            written.wait(60)
            seen.append(store.reference("main").target)  # type: ignore[union-attr]

        def holder() -> None:
            with suppress(ZeroDivisionError), store.exclusive():
                store.write(commit("main", "0", "1"))
                written.set()
                # The reader may be made to wait for the block, so it is not waited for inside.
                raise ZeroDivisionError

        together(holder, reader)
        assert seen == [id_of("0")]

    def test_readers_see_all_of_a_write_or_nothing(self, store: Store) -> None:
        """Two references move together, so one listing must show them equal."""
        store.write(Write(moves=[a_move("a", None, "0"), a_move("b", None, "0")]))
        readers_left = [1, 1]

        def writer() -> None:
            n = 0
            while readers_left or n < 20:
                moves = [a_move("a", str(n), str(n + 1)), a_move("b", str(n), str(n + 1))]
                assert store.write(Write([an_object(str(n))], moves)) == Done()
                n += 1

        def reader() -> None:
            try:
                for _ in range(200):
                    a, b = store.references()
                    assert a.target == b.target
            finally:
                readers_left.pop()

        together(writer, reader, reader)
