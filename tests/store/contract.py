"""The store contract: the duties of every backend.

The test class of a backend inherits all of it and overrides `make_store`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.repository import reading
from nessie_cli.store.base import Store
from nessie_cli.store.records import Basis, Done, Stale, StoredObject, StoredSettings
from tests.store.contract_commit import CommitContract
from tests.store.contract_concurrency import ConcurrencyContract
from tests.store.contract_dump import DumpContract
from tests.store.contract_maintenance import MaintenanceContract
from tests.store.contract_runs import RunContract
from tests.store.contract_sessions import SessionContract
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


class Boom(Exception):
    """Raised inside a call."""


class StoreContract(
    CommitContract,
    ConcurrencyContract,
    DumpContract,
    MaintenanceContract,
    RunContract,
    SessionContract,
):
    """Inherit, and override `make_store`.

    The attributes describe behaviour that the interface leaves open.
    """

    keeps_nul: ClassVar[bool] = True
    """Whether text may contain a NUL; otherwise it is refused."""
    counts_only_changes: ClassVar[bool] = True
    """Whether only changes move the change counter; otherwise a few other calls do as well."""

    def make_store(self, clock: Clock) -> Store:
        """Returns an empty store of this kind."""
        raise NotImplementedError

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def store(self, clock: Clock) -> Iterator[Store]:
        store = self.make_store(clock)
        yield store
        store.close()

    # -- objects --

    @pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 4096, 2_000_000])
    def test_an_object_is_returned_unchanged(self, store: Store, size: int) -> None:
        put = an_object("some object", NODE, size)
        store.put([put])
        assert store.get([put.id]) == {put.id: put.data}

    @pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 100, 2500])
    def test_get_returns_existing_objects(self, store: Store, count: int) -> None:
        objects = [an_object(str(n)) for n in range(count)]
        store.put(objects[::2])
        assert store.get([o.id for o in objects]) == {o.id: o.data for o in objects[::2]}

    def test_objects_written_before_an_object_are_of_its_kind(self, store: Store) -> None:
        """A store may omit as many objects as it likes."""
        objects = [an_object(str(n), (COMMIT, NODE, VALUE)[n % 3]) for n in range(60)]
        store.put(objects)
        for place in (0, 3, 30, 57):
            for limit in (0, 1, 5, 100):
                found = store.written_before(objects[place].id, COMMIT, limit)
                expected = {o.id: o.data for o in objects[: place + 1] if o.kind == COMMIT}
                assert found.items() <= expected.items()
                assert len(found) <= limit + 1
        assert store.written_before(id_of("x"), COMMIT, 10) == {}

    @pytest.mark.parametrize("most", [0, 1, 4096, 3 * 4096, 20 * 4096, 1 << 30])
    def test_get_some_ends_by_size(self, store: Store, most: int) -> None:
        """SQLite reads up to 8 objects at a time, and PostgreSQL knows packed sizes."""
        objects = [an_object(str(n), VALUE, 4096) for n in range(40)]
        store.put(objects[::2])
        some = store.get_some([o.id for o in objects], most)
        assert list(some) == [o.id for o in objects[::2]][: len(some)]
        assert some.items() <= {o.id: o.data for o in objects[::2]}.items()
        needed = min(20, max(1, most // 4096))
        assert needed <= len(some) <= needed + 8
        assert store.get_some([id_of("x"), id_of("y")], most) == {}
        assert store.get_some([], most) == {}

    def test_get_accepts_an_id_twice(self, store: Store) -> None:
        objects = [an_object(str(n)) for n in range(3)]
        store.put(objects)
        assert store.get([o.id for o in objects] * 2) == {o.id: o.data for o in objects}

    def test_an_empty_store_has_no_objects(self, store: Store) -> None:
        assert store.get([id_of("x")]) == {}
        assert list(store.scan()) == []
        assert store.references() == []
        assert store.reference("main") is None
        assert store.reflog() == []
        assert store.settings().values == {}
        assert store.request("x") is None
        assert store.basis("main", "x") == Basis(None, StoredSettings(), None)
        assert list(store.scan_index()) == []
        assert store.find_ids(VALUE, "", 10) == []

    def test_put_takes_an_iterator_of_many(self, store: Store) -> None:
        store.put(an_object(str(n)) for n in range(12_000))
        assert sum(1 for _ in store.scan()) == 12_000

    def test_an_object_is_stored_once(self, store: Store) -> None:
        store.put([an_object("a"), an_object("a")])
        store.put([an_object("a")])
        write(store, a_write([an_object("a"), an_object("a")]))
        assert list(store.scan()) == [an_object("a")]

    def test_scan_shows_every_object_of_a_kind(self, store: Store) -> None:
        objects = {
            o.id: o
            for kind in (VALUE, NODE, COMMIT)
            for o in (an_object(f"{kind} {n}", kind, n * 5) for n in range(300))
        }
        store.put(objects.values())
        assert {o.id: o for o in store.scan()} == objects
        assert {o.id: o for o in store.scan(NODE)} == {
            o.id: o for o in objects.values() if o.kind == NODE
        }
        assert list(store.scan(99)) == []

    def test_a_scan_continues_while_objects_are_written_and_deleted(
        self, store: Store, clock: Clock
    ) -> None:
        old = [an_object(str(n)) for n in range(1000)]
        store.put(old)
        scan = store.scan()
        seen = {next(scan).id}
        clock.now += HOUR
        delete(store, [old[0].id], int(clock.now))
        store.put([an_object("new")])
        seen |= {o.id for o in scan}
        assert seen >= {o.id for o in old[1:]}

    # -- short ids --

    def test_find_ids_by_any_length_of_prefix(self, store: Store) -> None:
        objects = [an_object(str(n), COMMIT) for n in range(400)]
        store.put(objects)
        ids = sorted(o.id for o in objects)
        wanted = ids[200].hex()
        for length in range(65):
            assert store.find_ids(COMMIT, wanted[:length], 1000) == [
                i for i in ids if i.hex().startswith(wanted[:length])
            ]

    def test_find_ids_of_the_highest_and_lowest(self, store: Store) -> None:
        low, high = (
            StoredObject(bytes(32), COMMIT, b"low"),
            StoredObject(b"\xff" * 32, COMMIT, b"high"),
        )
        store.put([low, high])
        assert store.find_ids(COMMIT, "0", 9) == [low.id]
        assert store.find_ids(COMMIT, "f", 9) == store.find_ids(COMMIT, "f" * 64, 9) == [high.id]
        assert store.find_ids(COMMIT, "", 9) == [low.id, high.id]

    def test_find_ids_respects_kind_and_limit(self, store: Store) -> None:
        store.put(
            [
                StoredObject(bytes([7]) * 31 + bytes([n]), COMMIT if n % 2 else NODE, b"")
                for n in range(10)
            ]
        )
        assert [i[-1] for i in store.find_ids(COMMIT, "07", 3)] == [1, 3, 5]
        assert [i[-1] for i in store.find_ids(NODE, "0707", 100)] == [0, 2, 4, 6, 8]

    @pytest.mark.parametrize("prefix", ["zz", "0x12", " ab", "ab ", "AB", "g", "f" * 65, "é"])
    def test_find_ids_finds_nothing_for_invalid_prefixes(self, store: Store, prefix: str) -> None:
        store.put(
            [StoredObject(b"\xab" * 32, COMMIT, b""), StoredObject(b"\xff" * 32, COMMIT, b"")]
        )
        assert store.find_ids(COMMIT, prefix, 10) == []

    # -- index --

    def test_indexed_objects_are_listed_newest_first_in_pages(self, store: Store) -> None:
        indexed = [
            StoredObject(id_of(str(n)), COMMIT, b"", (b"even" if n % 2 == 0 else b"odd", b"all"))
            for n in range(9)
        ]
        for object_ in indexed[:6]:
            write(store, a_write([object_]))
        store.put(indexed[6:])
        found = store.find_indexed(b"all", None, 100)
        assert [id_ for _, id_ in found] == [o.id for o in reversed(indexed)]
        assert [id_ for _, id_ in store.find_indexed(b"odd", None, 2)] == [id_of("7"), id_of("5")]
        assert store.find_indexed(b"all", found[3][0], 2) == found[4:6]
        assert store.find_indexed(b"none", None, 5) == []
        assert sorted(store.scan_index()) == sorted(
            (entry, o.id) for o in indexed for entry in o.index
        )

    def test_a_stale_write_leaves_no_index_entries(self, store: Store) -> None:
        lost = a_write(
            [StoredObject(id_of("lost"), COMMIT, b"", (b"m",))], [a_move("main", "nowhere", "lost")]
        )
        assert isinstance(write(store, lost), Stale)
        assert store.find_indexed(b"m", None, 5) == []

    def test_an_object_that_is_written_again_is_indexed_once(self, store: Store) -> None:
        for _ in range(2):
            write(store, a_write([StoredObject(id_of("twice"), COMMIT, b"", (b"m",))]))
        assert [id_ for _, id_ in store.find_indexed(b"m", None, 5)] == [id_of("twice")]

    # -- listings --

    NAMES = (
        "A",
        "a",
        "a.b",
        "a/b",
        "a/c",
        "ab",
        "b",
        "z\U0010ffff",
        "z\U0010ffffz",
        "zz",
        "\ud7ff",
        "\ud7ffx",
        "\ue000",
        "Ä",
        "ä/1",
        "👍",
    )

    @pytest.mark.parametrize(
        "prefix",
        ["", "a", "a/", "ab", "b", "z", "z\U0010ffff", "\ud7ff", "ä", "👍", "nothing", "%", "_"],
    )
    @pytest.mark.parametrize("start", ["", "a", "a/b", "a/b0", "b", "zz", "\uffff"])
    def test_references_of_a_prefix_from_a_start(
        self, store: Store, prefix: str, start: str
    ) -> None:
        write(
            store,
            a_write(
                moves=[
                    a_move(name, None, "0", kind="TAG" if n % 3 else "BRANCH")
                    for n, name in enumerate(self.NAMES)
                ]
            ),
        )
        for kind in (None, "BRANCH", "TAG"):
            expected = [
                name
                for name in sorted(self.NAMES)
                if name.startswith(prefix)
                and name >= start
                and (kind is None or kind == ("TAG" if self.NAMES.index(name) % 3 else "BRANCH"))
            ]
            assert [r.name for r in store.references(kind, prefix, start)] == expected
            for limit in (0, 1, 2, 100):
                assert [r.name for r in store.references(kind, prefix, start, limit)] == expected[
                    :limit
                ]

    # -- reflog and requests --

    def test_the_reflog_is_newest_first_and_numbers_grow(self, store: Store) -> None:
        write(store, create("main", "1"))
        write(store, create("dev", "1"))
        write(store, a_write(moves=[a_move("main", "1", "2"), a_move("dev", "1", "2")]))
        rows = store.reflog()
        assert [row.move.name for row in rows] == ["dev", "main", "dev", "main"]
        assert [row.number for row in rows] == sorted({row.number for row in rows}, reverse=True)
        assert store.reflog("main") == [rows[1], rows[3]]
        assert store.reflog("none") == []

    def test_the_newest_move_of_each_of_several_references(self, store: Store) -> None:
        write(
            store,
            a_write(
                moves=[
                    a_move("a", None, "0"),
                    a_move("a", "0", "1"),
                    a_move("b", None, "0"),
                    a_move("b", "0", None),
                    a_move("c", None, "0"),
                ]
            ),
        )
        newest = {row.move.name: row for row in store.reflog()[::-1]}
        found = store.newest_moves(["a", "none", "b", "a", "nul\0"])
        assert sorted(found, key=lambda row: row.number) == [newest["a"], newest["b"]]
        assert store.newest_moves([]) == []

    def test_the_reflog_keeps_every_field(self, store: Store) -> None:
        move = a_move(
            "main",
            None,
            "1",
            kind="TAG",
            request_id="a request",
            message="many\nlines, 'quotes' and 👍",
        )
        write(store, a_write(moves=[move]))
        assert [row.move for row in store.reflog()] == [move]

    def test_text_with_a_nul_is_stored_or_refused(self, store: Store) -> None:
        first, second = a_move("main", None, "1"), a_move("main", "1", "2", message="a\0b")
        write(store, a_write(moves=[first]))
        if self.keeps_nul:
            assert write(store, a_write(moves=[second])) == Done()
            assert [row.move for row in store.reflog()] == [second, first]
            return
        for refused in (
            a_write(moves=[second]),
            a_write(settings={"a": "\0"}),
            a_write(moves=[a_move("\0", None, "1")]),
        ):
            with pytest.raises(InvalidInput, match="NUL"):
                write(store, refused)
            assert store.request(refused.request.id) is None
        assert [row.move for row in store.reflog()] == [first]
        assert store.settings() == StoredSettings()

    def test_the_reflog_has_deleted_references(self, store: Store) -> None:
        write(store, create("gone", "1"))
        write(store, a_write(moves=[a_move("gone", "1", None)]))
        assert [(row.move.before, row.move.after) for row in store.reflog("gone")] == [
            (id_of("1"), None),
            (None, id_of("1")),
        ]

    def test_an_entry_without_hashes_is_in_the_reflog_and_moves_nothing(self, store: Store) -> None:
        """Changes of settings are such entries."""
        move = a_move("setting:a", None, None, kind="SETTING", message='[null,"1"]')
        before = store.references()
        assert write(store, a_write(moves=[move], settings={"a": "1"})) == Done()
        assert [row.move for row in store.reflog("setting:a")] == [move]
        assert store.reference("setting:a") is None
        assert store.references() == before
        assert write(store, a_write(moves=[move])) == Done()
        assert len(store.reflog("setting:a")) == 2

    def test_the_reflog_is_paged(self, store: Store) -> None:
        write(
            store,
            a_write(
                moves=[a_move("main", str(n) if n else None, str(n + 1)) for n in range(10)]
                + [a_move("dev", None, "1")]
            ),
        )
        for name in (None, "main"):
            rows, before = [], None
            while page := store.reflog(name, before, 3):
                rows += page
                before = page[-1].number
            assert rows == store.reflog(name)
        assert store.reflog(limit=0) == []

    @pytest.mark.parametrize("name", [None, "main"])
    def test_long_texts_of_the_reflog_are_read_a_few_at_a_time(
        self, store: Store, monkeypatch: pytest.MonkeyPatch, name: str | None
    ) -> None:
        texts = ["short", *["long " * 20_000] * 30]
        moves = [
            a_move("main", str(number) if number else None, str(number + 1), message=text)
            for number, text in enumerate(texts)
        ]
        write(store, a_write(moves=moves))
        for place in ("store.rows", "store.postgres.store"):
            monkeypatch.setattr(f"nessie_cli.{place}.MOVES_TOGETHER", 250_000)
        assert 3 <= len(store.reflog(name, limit=100)) <= 10
        # All are read, those behind a batch that ended early as well.
        assert [row.move for row in reading.moves(store, name)] == moves[::-1]

    # -- settings --

    def test_settings_are_set_replaced_and_removed(self, store: Store) -> None:
        write(store, a_write(settings={"a": "1", "b": "", "ä": "👍\n"}))
        write(store, a_write(settings={"a": "2", "b": None, "never there": None}))
        assert store.settings().values == {"a": "2", "ä": "👍\n"}

    def test_a_basis_is_a_reference_all_settings_and_a_request(self, store: Store) -> None:
        first = create("main", "1")
        write(store, first)
        assert store.basis("main", "") == Basis(store.reference("main"), StoredSettings(), None)
        write(store, a_write(settings={"main": "1", "": ""}))
        settings = StoredSettings({"main": "1", "": ""}, 1)
        assert store.basis("main", first.request.id) == Basis(
            store.reference("main"), settings, first.request
        )
        assert store.basis("other", "unused") == Basis(None, settings, None)

    def test_several_bases_are_in_the_requested_order(self, store: Store) -> None:
        first = create("main", "1")
        store.commit([first, create("dev", "2"), a_write(settings={"a": "1"})])
        wanted = [
            ("other", ""),
            ("main", first.request.id),
            ("dev", "unused"),
            ("main", ""),
            ("\0", "\0"),
            ("main", ""),
        ]
        assert store.bases(wanted) == [store.basis(*one) for one in wanted]
        assert store.bases(wanted)[1] == Basis(
            store.reference("main"), StoredSettings({"a": "1"}, 1), first.request
        )

    # -- change counter --

    def test_the_change_counter_moves_with_each_change_and_no_other_call(
        self, store: Store, clock: Clock
    ) -> None:
        changes: list[Callable[[], object]] = [
            lambda: write(store, create("main")),
            lambda: store.put([an_object("a"), an_object("b")]),
            lambda: delete(store, [an_object("a").id], int(clock.now) + 1),
            lambda: write(store, a_write(settings={"a": "1"})),
        ]
        seen = [store.change_counter()]
        for change in changes:
            change()
            seen.append(store.change_counter())
            reads = [
                (store.change_counter(), store.basis("main", "r"), store.change_counter())
                for _ in range(50)
            ]
            refused = [
                (
                    store.change_counter(),
                    write(store, commit("main", "elsewhere", "1")),
                    store.change_counter(),
                )
            ]
            same = [before == after for before, _, after in (*reads, *refused)]
            assert all(same) if self.counts_only_changes else any(same)
        assert None not in seen
        assert len(set(seen)) == len(changes) + 1

    def test_heads_are_the_references_as_they_are_in_the_requested_order(
        self, store: Store
    ) -> None:
        write(store, create("main", "1"))
        write(store, create("v1", "1", kind="TAG"))
        names = ["other", "v1", "main", "\0", "main"]
        changes = [
            commit("main", "1", "2"),
            commit("main", "2", "3"),
            a_write(moves=[a_move("main", "3", "1")]),
            a_write(moves=[a_move("v1", "1", None, kind="TAG")]),
            create("other", "3"),
        ]
        for change in changes:
            for _ in range(2):
                assert store.heads(names) == [store.reference(name) for name in names]
            assert write(store, change) == Done()
        assert store.heads(names) == [store.reference(name) for name in names]
        assert store.heads([]) == []

    # -- put, closing --

    def test_a_put_that_fails_in_its_iterator_leaves_the_store_usable(self, store: Store) -> None:
        def objects() -> Iterator[StoredObject]:
            yield an_object("a")
            raise Boom

        with pytest.raises(Boom):
            store.put(objects())
        assert write(store, create("main")) == Done()

    def test_closing_twice_is_harmless(self, store: Store) -> None:
        store.close()
        store.close()
