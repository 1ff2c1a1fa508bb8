"""The part of the store contract about maintenance: age, deletion, expiry."""

from __future__ import annotations

import threading
from collections.abc import Container, Sequence

import pytest
from msgspec import structs

from nessie_cli.store.base import Store
from nessie_cli.store.records import Deleted, Done, Expired, ReflogRow, StoredObject, Write
from tests.store.samples import (
    COMMIT,
    NODE,
    VALUE,
    Clock,
    a_move,
    a_write,
    an_object,
    commit,
    create,
    delete,
    id_of,
    write,
)

HOUR = 3600
TIME = 1_700_000_000_000_001
"""The time of the moves and requests of samples, in microseconds."""


class MaintenanceContract:
    """Inherited by `StoreContract`."""

    # -- age --

    def test_only_objects_written_before_a_time_are_deleted(
        self, store: Store, clock: Clock
    ) -> None:
        store.put([an_object("old")])
        clock.now += 10
        store.put([an_object("young")])
        store.put([an_object("newest")])
        ids = [an_object("old").id, an_object("young").id, id_of("missing")]
        assert delete(store, ids, int(clock.now) - 10) == 0
        assert delete(store, ids, int(clock.now)) == 1
        assert list(store.scan()) == [an_object("young"), an_object("newest")]
        assert delete(store, ids, int(clock.now) + 1) == 1
        assert delete(store, [], int(clock.now) + 1) == 0

    def test_numbers_are_never_reused(self, store: Store, clock: Clock) -> None:
        """A store may keep its newest object for that."""
        numbers = []
        for n in range(4):
            store.put([StoredObject(id_of(str(n)), COMMIT, b"", (b"e",))])
            numbers.append(store.find_indexed(b"e", None, 1)[0][0])
            assert delete(store, [id_of(str(n))], int(clock.now) + 1) in (0, 1)
        assert numbers == sorted(set(numbers))

    def test_a_deleted_object_is_not_found_by_its_index_entry(
        self, store: Store, clock: Clock
    ) -> None:
        store.put([StoredObject(id_of(str(n)), COMMIT, b"", (b"e",)) for n in range(3)])
        assert delete(store, [id_of("0"), id_of("1")], int(clock.now) + 1) == 2
        for _ in range(2):
            assert [id_ for _, id_ in store.find_indexed(b"e", None, 9)] == [id_of("2")]
            assert list(store.scan_index()) == [(b"e", id_of("2"))]
            with store.maintenance() as maintenance:
                maintenance.compact()

    @pytest.mark.parametrize("again", ["put", "write"])
    def test_an_old_object_that_is_written_again_is_young(
        self, store: Store, clock: Clock, again: str
    ) -> None:
        store.put([an_object("b"), an_object("a")])
        clock.now += HOUR + 1
        if again == "put":
            store.put([an_object("a")])
        else:
            write(store, a_write([an_object("a")]))
        assert delete(store, [an_object("a").id, an_object("b").id], int(clock.now)) == 1
        assert list(store.scan()) == [an_object("a")]

    # -- listing --

    def test_objects_are_listed_with_the_newest_of_a_kind_first(
        self, store: Store, clock: Clock
    ) -> None:
        for n in range(6):
            clock.now += 1
            store.put([an_object(str(n), (COMMIT, VALUE)[n % 2], 100 * n)])
        with store.maintenance() as maintenance:
            listed = list(maintenance.objects())
            assert maintenance.size().total > 0
        assert [one.id for one in listed if one.kind == COMMIT] == [
            id_of("4"),
            id_of("2"),
            id_of("0"),
        ]
        assert [one.id for one in listed if one.kind == VALUE] == [
            id_of("5"),
            id_of("3"),
            id_of("1"),
        ]
        assert {one.id: clock.now - one.written for one in listed} == {
            id_of(str(n)): 5 - n for n in range(6)
        }
        assert all(one.size > 0 for one in listed if one.id != id_of("0"))

    def test_many_objects_are_listed_once(self, store: Store) -> None:
        store.put(an_object(str(n), (VALUE, NODE)[n % 2]) for n in range(11_000))
        with store.maintenance() as maintenance:
            assert len({one.id for one in maintenance.objects()}) == 11_000

    # -- deletion beside writers --

    def test_a_deletion_gets_the_moves_since_a_mark(self, store: Store, clock: Clock) -> None:
        store.put([an_object("a"), an_object("b"), an_object("newest")])
        write(store, create("main", "0"))
        seen: list[Sequence[ReflogRow]] = []

        def reached(rows: Sequence[ReflogRow]) -> Container[bytes]:
            seen.append(rows)
            assert store.get([id_of("a")]), "the store can be read meanwhile"
            return {row.move.after for row in rows} | {id_of("a")} if rows else set()  # type: ignore[return-value]

        with store.maintenance() as maintenance:
            since = maintenance.last_move()
            write(store, a_write(moves=[a_move("main", "0", "1"), a_move("main", "1", "2")]))
            ids = [id_of("a"), id_of("b")]
            assert maintenance.delete(ids, int(clock.now) + 1, since, reached).objects == 1
            assert [row.move.after for row in seen[0]] == [id_of("2"), id_of("1")]
            assert set(store.get(ids)) == {id_of("a")}
            deleted = maintenance.delete(ids, int(clock.now) + 1, maintenance.last_move(), reached)
            assert deleted.objects == 1
            assert deleted.size > 0
            assert seen[1] == []
            assert maintenance.delete(ids, int(clock.now) + 1, since, lambda _: ()) == Deleted()

    def test_no_reference_moves_while_a_deletion_decides(self, store: Store, clock: Clock) -> None:
        """Either the deletion sees a move, or the move happens after it."""
        store.put([an_object("a"), an_object("newest")])
        write(store, create("main", "0"))
        deciding, decided = threading.Event(), threading.Event()
        order: list[str] = []

        def move() -> None:
            deciding.wait(30)
            assert write(store, commit("main", "0", "1")) == Done()
            order.append("moved")
            decided.set()

        def reached(rows: Sequence[ReflogRow]) -> Container[bytes]:
            deciding.set()
            assert not decided.wait(0.3)
            order.append("decided")
            assert rows == []
            return ()

        mover = threading.Thread(target=move)
        mover.start()
        with store.maintenance() as maintenance:
            maintenance.delete([id_of("a")], int(clock.now) + 1, maintenance.last_move(), reached)
        mover.join(30)
        assert order == ["decided", "moved"]

    def test_an_error_in_a_deletion_deletes_nothing(self, store: Store, clock: Clock) -> None:
        store.put([an_object("a"), an_object("newest")])

        def fail(_: Sequence[ReflogRow]) -> Container[bytes]:
            raise LookupError("stop")

        with store.maintenance() as maintenance, pytest.raises(LookupError, match="stop"):
            maintenance.delete([id_of("a")], int(clock.now) + 1, 0, fail)
        assert store.get([id_of("a")])
        write(store, create("main", "0"))

    # -- expiry --

    def test_moves_and_requests_expire_by_their_age(self, store: Store) -> None:
        for n in range(5):
            move = structs.replace(
                a_move("main", None if n == 0 else str(n - 1), str(n)), time=TIME + 10 * n
            )
            one = a_write(moves=[move], request_id=str(n))
            write(
                store,
                structs.replace(one, request=structs.replace(one.request, time=TIME + 10 * n)),
            )
        with store.maintenance() as maintenance:
            assert maintenance.expire(
                TIME + 20, TIME + 11, maintenance.last_move(), dry_run=True
            ) == Expired(2, 2)
            assert len(store.reflog()) == 5
            assert maintenance.expire(TIME + 20, TIME + 11, maintenance.last_move()) == Expired(
                2, 2
            )
            assert maintenance.expire(TIME + 20, TIME + 11, maintenance.last_move()) == Expired(
                0, 0
            )
        assert [row.move.after for row in store.reflog()] == [id_of("4"), id_of("3"), id_of("2")]
        assert [bool(store.request(str(n))) for n in range(5)] == [False, False, True, True, True]
        assert store.reference("main").target == id_of("4")  # type: ignore[union-attr]

    def test_moves_after_the_given_one_are_kept(self, store: Store) -> None:
        write(store, create("main", "0"))
        with store.maintenance() as maintenance:
            last = maintenance.last_move()
            for n in range(3):
                write(store, commit("main", str(n), str(n + 1)))
            for dry_run in (True, False):
                assert maintenance.expire(TIME + 10**15, 0, last, dry_run=dry_run) == Expired(1, 0)
        assert [row.move.after for row in store.reflog()] == [id_of("3"), id_of("2"), id_of("1")]

    def test_the_newest_move_is_kept_and_numbers_are_not_reused(self, store: Store) -> None:
        write(store, create("main", "0"))
        write(store, commit("main", "0", "1"))
        last = store.reflog()[0].number
        with store.maintenance() as maintenance:
            assert (
                maintenance.expire(TIME + 10**15, TIME + 10**15, maintenance.last_move()).moves == 1
            )
            assert maintenance.last_move() == last
        write(store, commit("main", "1", "2"))
        assert [row.number > last for row in store.reflog()] == [True, False]

    def test_thousands_expire(self, store: Store) -> None:
        write(
            store,
            a_write(
                moves=[
                    a_move("main", None if n == 0 else str(n - 1), str(n)) for n in range(11_000)
                ]
            ),
        )
        with store.maintenance() as maintenance:
            assert maintenance.expire(
                TIME + 1, TIME + 1, maintenance.last_move(), dry_run=True
            ) == Expired(10_999, 1)
            assert maintenance.expire(TIME + 1, TIME + 1, maintenance.last_move()) == Expired(
                10_999, 1
            )
        assert len(store.reflog()) == 1

    def test_the_newest_move_of_a_reference_with_a_message_is_kept(self, store: Store) -> None:
        noted = [
            a_move(name, None, "0", kind="TAG", message=name)
            for name in ("kept", "moved", "gone", "again")
        ]
        moved = [a_move("moved", "0", "1", kind="TAG", message="moved")]
        gone = [a_move(name, "0", None, kind="TAG", message=name) for name in ("gone", "again")]
        again = [a_move("again", None, "0", kind="TAG"), a_move("last", None, "0", kind="TAG")]
        write(store, a_write(moves=[*noted, *moved, *gone, *again]))
        for _ in range(2):
            with store.maintenance() as maintenance:
                last = maintenance.last_move()
                planned = maintenance.expire(TIME + 1, TIME, last, dry_run=True)
                assert maintenance.expire(TIME + 1, TIME, last) == planned
            assert [row.move for row in store.reflog()] == [again[1], *moved, noted[0]]
        assert planned.moves == 0

    def test_a_store_is_intact_after_its_entries_expired(self, store: Store) -> None:
        """References that exist, are deleted and are created again, and a setting."""

        def set_to(value: str | None) -> Write:
            entry = a_move("setting:a", None, None, kind="SETTING", message=f"to {value}")
            return a_write(moves=[entry], settings={"a": value})

        def move(name: str, after: str | None) -> Write:
            return a_write(moves=[a_move(name, "0", after)])

        for one in (create("main"), create("gone"), create("again"), set_to("1")):
            write(store, one)
        for one in (move("gone", None), move("again", None), create("again")):
            write(store, one)
        for value in ("2", None):
            assert list(store.verify_file()) == []
            write(store, move("main", "0"))
            with store.maintenance() as maintenance:
                maintenance.expire(2**62, 2**62, maintenance.last_move())
            assert len(store.reflog()) == 1
            assert list(store.verify_file()) == []
            for one in (create("gone"), move("again", "0"), set_to(value), move("gone", None)):
                write(store, one)

    @pytest.mark.parametrize("full", [False, True])
    def test_compacting_changes_nothing_that_can_be_read(
        self, store: Store, clock: Clock, full: bool
    ) -> None:
        store.put(an_object(str(n)) for n in range(2000))
        write(store, create("main", "0"))
        delete(store, [id_of(str(n)) for n in range(1000)], int(clock.now) + 1)
        before = (list(store.scan()), store.reflog(), store.references())
        with store.maintenance() as maintenance:
            maintenance.compact(full=full)
            sizes = maintenance.size()
        assert (list(store.scan()), store.reflog(), store.references()) == before
        assert sizes.total > 0
