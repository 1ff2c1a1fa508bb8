"""The store contract: what every backend has to do. A backend's test class inherits it whole and says how a store is made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from nessie_cli.store.base import Done, Stale, Store, StoredObject, StoredReference, Write
from tests.store.contract_concurrency import ConcurrencyContract
from tests.store.samples import COMMIT, NODE, VALUE, Clock, a_move, an_object, commit, create, id_of

HOUR = 3600


class Boom(Exception):
    """Thrown into a block."""


class StoreContract(ConcurrencyContract):
    """Inherit, and override `make_store`."""

    def make_store(self, clock: Clock) -> Store:
        """An empty store of this kind."""
        raise NotImplementedError

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def store(self, clock: Clock) -> Iterator[Store]:
        store = self.make_store(clock)
        yield store
        store.close()

    # -- objects -----------------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 4096, 2_000_000])
    def test_an_object_comes_back_as_it_was(self, store: Store, size: int) -> None:
        put = an_object("some object", NODE, size)
        store.put([put])
        assert store.get([put.id]) == {put.id: put.data}

    @pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 100, 2500])
    def test_get_answers_those_that_exist(self, store: Store, count: int) -> None:
        objects = [an_object(str(n)) for n in range(count)]
        store.put(objects[::2])
        assert store.get([o.id for o in objects]) == {o.id: o.data for o in objects[::2]}

    def test_what_was_written_before_an_object_is_of_its_kind(self, store: Store) -> None:
        """A store may leave out as much as it likes."""
        objects = [an_object(str(n), (COMMIT, NODE, VALUE)[n % 3]) for n in range(60)]
        store.put(objects)
        for place in (0, 3, 30, 57):
            for limit in (0, 1, 5, 100):
                found = store.written_before(objects[place].id, COMMIT, limit)
                expected = {o.id: o.data for o in objects[: place + 1] if o.kind == COMMIT}
                assert found.items() <= expected.items()
                assert len(found) <= limit + 1
        assert store.written_before(id_of("x"), COMMIT, 10) == {}

    def test_get_accepts_an_id_twice(self, store: Store) -> None:
        objects = [an_object(str(n)) for n in range(3)]
        store.put(objects)
        assert store.get([o.id for o in objects] * 2) == {o.id: o.data for o in objects}

    def test_an_empty_store_has_nothing(self, store: Store) -> None:
        assert store.get([id_of("x")]) == {}
        assert list(store.scan()) == []
        assert store.references() == []
        assert store.reference("main") is None
        assert store.reflog() == []
        assert store.settings() == {}
        assert store.find_request("x") == []
        assert store.find_ids(VALUE, "", 10) == []

    def test_put_takes_an_iterator_of_many(self, store: Store) -> None:
        store.put(an_object(str(n)) for n in range(12_000))
        assert sum(1 for _ in store.scan()) == 12_000

    def test_putting_an_object_again_keeps_one(self, store: Store) -> None:
        store.put([an_object("a"), an_object("a")])
        store.put([an_object("a")])
        store.write(Write([an_object("a"), an_object("a")]))
        assert list(store.scan()) == [an_object("a")]

    def test_scan_shows_every_object_of_a_kind(self, store: Store) -> None:
        objects = {o.id: o for kind in (VALUE, NODE, COMMIT) for o in (an_object(f"{kind} {n}", kind, n * 5) for n in range(300))}
        store.put(objects.values())
        assert {o.id: o for o in store.scan()} == objects
        assert {o.id: o for o in store.scan(NODE)} == {o.id: o for o in objects.values() if o.kind == NODE}
        assert list(store.scan(99)) == []

    def test_a_scan_goes_on_while_objects_are_written_and_deleted(self, store: Store, clock: Clock) -> None:
        old = [an_object(str(n)) for n in range(1000)]
        store.put(old)
        scan = store.scan()
        seen = {next(scan).id}
        clock.now += HOUR
        store.delete([old[0].id], int(clock.now))
        store.put([an_object("new")])
        seen |= {o.id for o in scan}
        assert seen >= {o.id for o in old[1:]}

    # -- short ids ---------------------------------------------------------------------------------------------------------------

    def test_find_ids_by_any_length_of_prefix(self, store: Store) -> None:
        objects = [an_object(str(n), COMMIT) for n in range(400)]
        store.put(objects)
        ids = sorted(o.id for o in objects)
        wanted = ids[200].hex()
        for length in range(65):
            assert store.find_ids(COMMIT, wanted[:length], 1000) == [i for i in ids if i.hex().startswith(wanted[:length])]

    def test_find_ids_of_the_highest_and_lowest(self, store: Store) -> None:
        low, high = StoredObject(bytes(32), COMMIT, b"low"), StoredObject(b"\xff" * 32, COMMIT, b"high")
        store.put([low, high])
        assert store.find_ids(COMMIT, "0", 9) == [low.id]
        assert store.find_ids(COMMIT, "f", 9) == store.find_ids(COMMIT, "f" * 64, 9) == [high.id]
        assert store.find_ids(COMMIT, "", 9) == [low.id, high.id]

    def test_find_ids_keeps_to_kind_and_limit(self, store: Store) -> None:
        store.put([StoredObject(bytes([7]) * 31 + bytes([n]), COMMIT if n % 2 else NODE, b"") for n in range(10)])
        assert [i[-1] for i in store.find_ids(COMMIT, "07", 3)] == [1, 3, 5]
        assert [i[-1] for i in store.find_ids(NODE, "0707", 100)] == [0, 2, 4, 6, 8]

    @pytest.mark.parametrize("prefix", ["zz", "0x12", " ab", "ab ", "AB", "g", "f" * 65, "é"])
    def test_find_ids_answers_nothing_for_what_no_hex_form_begins_with(self, store: Store, prefix: str) -> None:
        store.put([StoredObject(b"\xab" * 32, COMMIT, b""), StoredObject(b"\xff" * 32, COMMIT, b"")])
        assert store.find_ids(COMMIT, prefix, 10) == []

    # -- marks -------------------------------------------------------------------------------------------------------------------

    def test_marked_objects_come_last_written_first_page_by_page(self, store: Store) -> None:
        marked = [StoredObject(id_of(str(n)), COMMIT, b"", (b"even" if n % 2 == 0 else b"odd", b"all")) for n in range(9)]
        for object_ in marked[:6]:
            store.write(Write([object_]))
        store.put(marked[6:])
        found = store.find_marked(b"all", None, 100)
        assert [id_ for _, id_ in found] == [o.id for o in reversed(marked)]
        assert [id_ for _, id_ in store.find_marked(b"odd", None, 2)] == [id_of("7"), id_of("5")]
        assert store.find_marked(b"all", found[3][0], 2) == found[4:6]
        assert store.find_marked(b"none", None, 5) == []
        assert sorted(store.scan_marks()) == sorted((mark, o.id) for o in marked for mark in o.marks)

    def test_a_stale_write_leaves_no_marks(self, store: Store) -> None:
        stale = Write([StoredObject(id_of("lost"), COMMIT, b"", (b"m",))], [a_move("main", "nowhere", "lost")])
        assert isinstance(store.write(stale), Stale)
        assert store.find_marked(b"m", None, 5) == []

    def test_an_object_that_is_written_again_is_found_once(self, store: Store) -> None:
        for _ in range(2):
            store.write(Write([StoredObject(id_of("twice"), COMMIT, b"", (b"m",))]))
        assert [id_ for _, id_ in store.find_marked(b"m", None, 5)] == [id_of("twice")]

    # -- age ---------------------------------------------------------------------------------------------------------------------

    def test_delete_takes_only_what_was_written_before(self, store: Store, clock: Clock) -> None:
        store.put([an_object("old")])
        clock.now += 10
        store.put([an_object("young")])
        ids = [an_object("old").id, an_object("young").id, id_of("missing")]
        assert store.delete(ids, int(clock.now) - 10) == 0
        assert store.delete(ids, int(clock.now)) == 1
        assert list(store.scan()) == [an_object("young")]
        assert store.delete(ids, int(clock.now) + 1) == 1
        assert store.delete([], int(clock.now) + 1) == 0

    @pytest.mark.parametrize("again", ["put", "write"])
    def test_an_old_object_that_is_written_again_is_young(self, store: Store, clock: Clock, again: str) -> None:
        store.put([an_object("a"), an_object("b")])
        clock.now += HOUR + 1
        store.put([an_object("a")]) if again == "put" else store.write(Write([an_object("a")]))
        assert store.delete([an_object("a").id, an_object("b").id], int(clock.now)) == 1
        assert list(store.scan()) == [an_object("a")]

    # -- moves -------------------------------------------------------------------------------------------------------------------

    def test_a_write_does_all_of_it(self, store: Store) -> None:
        assert store.write(Write([an_object("a")], [a_move("main", None, "0")], {"age": "7"})) == Done()
        assert store.get([an_object("a").id]) == {an_object("a").id: an_object("a").data}
        assert store.reference("main") == StoredReference("main", "BRANCH", id_of("0"))
        assert store.settings() == {"age": "7"}

    def test_an_empty_write_is_done(self, store: Store) -> None:
        assert store.write(Write()) == Done()
        assert store.reflog() == []

    def test_a_reference_is_made_moved_and_deleted(self, store: Store) -> None:
        for before, after in ((None, "1"), ("1", "2"), ("2", "2"), ("2", None), (None, "3")):
            assert store.write(Write(moves=[a_move("main", before, after)])) == Done()
            expected = StoredReference("main", "BRANCH", id_of(after)) if after else None
            assert store.reference("main") == expected

    @pytest.mark.parametrize(("before", "after"), [("1", "2"), ("1", None), (None, "2")])
    def test_a_stale_move_tells_what_stands_there(self, store: Store, before: str | None, after: str | None) -> None:
        store.write(create("main", "other"))
        assert store.write(Write(moves=[a_move("main", before, after)])) == Stale("main", StoredReference("main", "BRANCH", id_of("other")))

    def test_a_move_of_a_missing_reference_is_stale(self, store: Store) -> None:
        assert store.write(Write(moves=[a_move("main", "1", "2")])) == Stale("main", None)
        assert store.write(Write(moves=[a_move("main", "1", None)])) == Stale("main", None)

    def test_a_reference_that_became_another_kind_has_moved(self, store: Store) -> None:
        store.write(create("v1", "1", kind="TAG"))
        stale = Stale("v1", StoredReference("v1", "TAG", id_of("1")))
        assert store.write(Write(moves=[a_move("v1", "1", "2")])) == stale
        assert store.write(Write(moves=[a_move("v1", "1", None)])) == stale
        assert store.write(Write(moves=[a_move("v1", None, "2")])) == stale

    def test_a_stale_write_leaves_nothing_behind(self, store: Store) -> None:
        store.write(Write([], [a_move("main", None, "1"), a_move("dev", None, "1")], {"age": "7"}))
        before = (store.references(), store.reflog())
        moves = [a_move("dev", "1", "2", request_id="r"), a_move("new", None, "2", request_id="r"), a_move("main", "0", "2", request_id="r")]
        assert isinstance(store.write(Write([an_object("a")], moves, {"age": None, "size": "1"})), Stale)
        assert (store.references(), store.reflog()) == before
        assert store.settings() == {"age": "7"}
        assert list(store.scan()) == []
        assert store.find_request("r") == []

    def test_moves_of_one_reference_chain(self, store: Store) -> None:
        moves = [a_move("main", None, "1"), a_move("main", "1", "2"), a_move("main", "2", None), a_move("main", None, "3")]
        assert store.write(Write(moves=moves)) == Done()
        assert store.reference("main") == StoredReference("main", "BRANCH", id_of("3"))
        assert [row.move for row in reversed(store.reflog())] == moves

    def test_a_broken_chain_is_stale_as_the_chain_stood(self, store: Store) -> None:
        answer = store.write(Write(moves=[a_move("main", None, "1"), a_move("main", "2", "3")]))
        assert answer == Stale("main", StoredReference("main", "BRANCH", id_of("1")))
        assert store.reference("main") is None

    def test_a_rename_is_two_moves(self, store: Store) -> None:
        store.write(create("old", "1"))
        assert store.write(Write(moves=[a_move("old", "1", None), a_move("new", None, "1")])) == Done()
        assert [r.name for r in store.references()] == ["new"]

    # -- listings ----------------------------------------------------------------------------------------------------------------

    NAMES = ("A", "a", "a.b", "a/b", "a/c", "ab", "b", "z\U0010ffff", "z\U0010ffffz", "zz", "\ud7ff", "\ud7ffx", "\ue000", "Ä", "ä/1", "👍")

    @pytest.mark.parametrize("prefix", ["", "a", "a/", "ab", "b", "z", "z\U0010ffff", "\ud7ff", "ä", "👍", "nothing", "%", "_"])
    @pytest.mark.parametrize("start", ["", "a", "a/b", "a/b0", "b", "zz", "\uffff"])
    def test_references_of_a_prefix_from_a_start(self, store: Store, prefix: str, start: str) -> None:
        store.write(Write(moves=[a_move(name, None, "0", kind="TAG" if n % 3 else "BRANCH") for n, name in enumerate(self.NAMES)]))
        for kind in (None, "BRANCH", "TAG"):
            expected = [
                name
                for name in sorted(self.NAMES)
                if name.startswith(prefix) and name >= start and (kind is None or kind == ("TAG" if self.NAMES.index(name) % 3 else "BRANCH"))
            ]
            assert [r.name for r in store.references(kind, prefix, start)] == expected
            for limit in (0, 1, 2, 100):
                assert [r.name for r in store.references(kind, prefix, start, limit)] == expected[:limit]

    # -- reflog and requests -----------------------------------------------------------------------------------------------------

    def test_the_reflog_is_newest_first_and_numbers_grow(self, store: Store) -> None:
        store.write(create("main", "1"))
        store.write(create("dev", "1"))
        store.write(Write(moves=[a_move("main", "1", "2"), a_move("dev", "1", "2")]))
        rows = store.reflog()
        assert [row.move.name for row in rows] == ["dev", "main", "dev", "main"]
        assert [row.number for row in rows] == sorted({row.number for row in rows}, reverse=True)
        assert store.reflog("main") == [rows[1], rows[3]]
        assert store.reflog("none") == []

    def test_the_reflog_keeps_every_field(self, store: Store) -> None:
        move = a_move("main", None, "1", kind="TAG", request_id="a request", message="many\nlines, 'quotes' and 👍\0")
        store.write(Write(moves=[move]))
        assert [row.move for row in store.reflog()] == [move]

    def test_the_reflog_remembers_deleted_references(self, store: Store) -> None:
        store.write(create("gone", "1"))
        store.write(Write(moves=[a_move("gone", "1", None)]))
        assert [(row.move.before, row.move.after) for row in store.reflog("gone")] == [(id_of("1"), None), (None, id_of("1"))]

    def test_the_reflog_is_paged(self, store: Store) -> None:
        store.write(Write(moves=[a_move("main", str(n) if n else None, str(n + 1)) for n in range(10)] + [a_move("dev", None, "1")]))
        for name in (None, "main"):
            rows, before = [], None
            while page := store.reflog(name, before, 3):
                rows += page
                before = page[-1].number
            assert rows == store.reflog(name)
        assert store.reflog(limit=0) == []

    def test_a_request_is_found_by_its_id(self, store: Store) -> None:
        moves = [a_move("main", None, "1", request_id="r1"), a_move("dev", None, "1", request_id="r1")]
        store.write(Write(moves=moves))
        store.write(Write(moves=[a_move("main", "1", "2", request_id="r2")]))
        assert [row.move for row in store.find_request("r1")] == moves
        assert store.find_request("r") == store.find_request("r3") == []

    def test_moves_without_a_request_id_are_no_request(self, store: Store) -> None:
        store.write(create("main"))
        assert store.find_request("") == []

    # -- settings ----------------------------------------------------------------------------------------------------------------

    def test_settings_are_set_replaced_and_removed(self, store: Store) -> None:
        store.write(Write(settings={"a": "1", "b": "", "ä": "👍\n"}))
        store.write(Write(settings={"a": "2", "b": None, "never there": None}))
        assert store.settings() == {"a": "2", "ä": "👍\n"}

    def test_a_reference_is_read_together_with_all_settings(self, store: Store) -> None:
        assert store.standing("main") == (None, {})
        store.write(create("main", "1"))
        assert store.standing("main") == (store.reference("main"), {})
        store.write(Write(settings={"main": "1", "": ""}))
        assert store.standing("main") == (StoredReference("main", "BRANCH", id_of("1")), {"main": "1", "": ""})
        assert store.standing("other") == (None, {"main": "1", "": ""})

    # -- exclusive blocks --------------------------------------------------------------------------------------------------------

    def test_what_an_exclusive_block_wrote_is_there_after_it(self, store: Store) -> None:
        with store.exclusive():
            assert store.write(commit("main", "1", "2")) == Stale("main", None)
            store.write(create("main", "1"))
            assert store.write(commit("main", "1", "2")) == Done()
            assert store.reference("main") == StoredReference("main", "BRANCH", id_of("2"))
            store.put([an_object("more")])
        assert store.reference("main") == StoredReference("main", "BRANCH", id_of("2"))
        assert len(list(store.scan())) == 4

    def test_a_stale_write_in_an_exclusive_block_undoes_only_itself(self, store: Store) -> None:
        with store.exclusive():
            store.write(create("main", "1"))
            moves = [a_move("other", None, "1"), a_move("main", "0", "2")]
            assert isinstance(store.write(Write([an_object("a")], moves)), Stale)
            assert [r.name for r in store.references()] == ["main"]
        assert [r.name for r in store.references()] == ["main"]
        assert list(store.scan()) == []

    def test_an_exception_undoes_the_whole_exclusive_block(self, store: Store, clock: Clock) -> None:
        store.write(Write([an_object("kept")], [a_move("main", None, "1")], {"a": "1"}))
        before = (list(store.scan()), store.references(), store.reflog(), store.settings())
        clock.now += HOUR * 2
        with suppress(Boom), store.exclusive():
            store.write(commit("main", "1", "2", request_id="r"))
            store.write(Write(moves=[a_move("main", "2", None)], settings={"a": None, "b": "2"}))
            store.put([an_object("more")])
            store.delete([an_object("kept").id], int(clock.now))
            raise Boom
        assert (list(store.scan()), store.references(), store.reflog(), store.settings()) == before
        assert store.find_request("r") == []
        assert store.write(commit("main", "1", "3")) == Done()

    def test_exclusive_blocks_nest(self, store: Store) -> None:
        with store.exclusive():
            store.write(create("a"))
            with suppress(Boom), store.exclusive():
                store.write(create("b"))
                raise Boom
            with store.exclusive():
                store.write(create("c"))
        assert [r.name for r in store.references()] == ["a", "c"]

    def test_an_outer_exception_undoes_inner_exclusive_blocks(self, store: Store) -> None:
        with suppress(Boom), store.exclusive():
            with store.exclusive():
                store.write(create("a"))
            raise Boom
        assert store.references() == []

    def test_a_put_that_fails_in_its_iterator_leaves_the_store_usable(self, store: Store) -> None:
        def objects() -> Iterator[StoredObject]:
            yield an_object("a")
            raise Boom

        with pytest.raises(Boom):
            store.put(objects())
        assert store.write(create("main")) == Done()

    # -- closing -----------------------------------------------------------------------------------------------------------------

    def test_closing_twice_is_harmless(self, store: Store) -> None:
        store.close()
        store.close()
