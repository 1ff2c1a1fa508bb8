"""The part of the store contract about dumping and loading."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Any

import pytest
from msgspec import json

from nessie_cli.errors import StoreNotEmpty, StoreUnavailable
from nessie_cli.model.runs import PipelineRun, RunState
from nessie_cli.store.base import Dump, Store
from nessie_cli.store.dump import COPIED
from nessie_cli.store.records import Done, PackedObject, Stale, StoredObject, StoredRun
from nessie_cli.store.rows import pack, unpack
from tests.store.contract_concurrency import concurrently
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


class Broken(Exception):
    """Raised by a dump."""


class Wrapped:
    """A dump whose objects pass through a function."""

    def __init__(
        self, dump: Dump, change: Callable[[Iterator[PackedObject]], Iterator[PackedObject]]
    ) -> None:
        self._dump = dump
        self._change = change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dump, name)

    def objects(self) -> Iterator[PackedObject]:
        return self._change(self._dump.objects())


def everything(dump: Dump) -> dict[str, Any]:
    """Returns the contents of a dump; objects in their original order."""
    return {
        "settings": dict(dump.settings().values),
        "references": sorted(dump.references(), key=lambda one: one.name),
        "moves": list(dump.moves()),
        "requests": sorted(dump.requests(), key=lambda one: one.id),
        "objects": [
            StoredObject(
                one.id, one.kind, unpack(one.id, one.kind, one.packed), tuple(sorted(one.index))
            )
            for one in dump.objects()
        ],
    }


def contents(store: Store) -> dict[str, Any]:
    with store.dump() as dump:
        return everything(dump)


def read_one_object_and_fail(store: Store) -> None:
    with store.dump() as dump:
        next(iter(dump.objects()))
        raise Broken


def initialise(store: Store) -> None:
    """Writes the same as `nessie init`."""
    write(
        store,
        a_write(moves=[a_move("main", None, "0")], settings={"branch": "main", "only here": "1"}),
    )


def fill(store: Store) -> None:
    """Fills a store with all kinds of objects, references, settings, and deletions."""
    write(
        store, a_write(moves=[a_move("main", None, "0")], settings={"branch": "main", "gone": "1"})
    )
    for n in range(20):
        entries = (b"all", f"entry {n % 3}".encode())
        indexed = StoredObject(id_of(f"c{n}"), COMMIT, b"commit" * n, entries)
        large = an_object(f"v{n}", VALUE, 4000)
        plain = StoredObject(id_of(f"n{n}"), NODE, b"node " * 300, ())
        before, after = f"c{n - 1}" if n else "0", f"c{n}"
        move = a_move("main", before, after, message=f"ä\n{n}", request_id=f"request {n}")
        assert (
            write(store, a_write([large, plain, indexed], [move], request_id=f"request {n}"))
            == Done()
        )
    write(store, a_write(moves=[a_move("v1", None, "c3", kind="TAG"), a_move("old", None, "c4")]))
    write(store, a_write(moves=[a_move("old", "c4", None)], settings={"gone": None, "ä": "👍"}))


def a_run(state: RunState, id_: str = "") -> StoredRun:
    """Returns the first version of the record of a run with a token."""
    run = PipelineRun(
        id=id_ or f"id-{state}",
        target="main",
        base="00" * 32,
        head="ab" * 32,
        who="etl",
        began=1,
        expires=2**33,
        state=state,
        tokens=("cd" * 32,),
    )
    return StoredRun(run.id, state, json.encode(run), 1)


class DumpContract:
    """Inherited by `StoreContract`."""

    @pytest.fixture
    def source(self, other: Store) -> Store:
        fill(other)
        return other

    def test_a_dump_contains_everything(self, store: Store, source: Store) -> None:
        fill(store)
        with store.dump() as dump:
            found = everything(dump)
            counts = dump.counts
        wanted = contents(source)
        for name in ("settings", "references", "moves", "objects"):
            assert found[name] == wanted[name]
        assert {one.id for one in found["requests"]} >= {f"request {n}" for n in range(20)}
        sizes = (counts.objects, counts.references, counts.moves, counts.requests)
        assert (
            sizes
            == (60, 2, 24, 23)
            == tuple(len(found[name]) for name in ("objects", "references", "moves", "requests"))
        )

    def test_a_loaded_store_has_the_same_dump(self, store: Store, source: Store) -> None:
        reported: list[tuple[int, int | None]] = []
        with source.dump() as dump:
            store.load(dump, lambda done, total: reported.append((done, total)))
        assert contents(store) == contents(source)
        assert reported[-1][0] == reported[-1][1]

    def test_the_records_of_runs_are_loaded(self, store: Store, source: Store) -> None:
        before = [a_run(state) for state in RunState]
        for stored in before:
            assert source.runs.put(stored)
        assert store.runs.put(a_run(RunState.FAILED, "of this store"))
        with source.dump() as dump:
            assert [run.id for run in dump.runs()] == sorted(run.id for run in before)
            store.load(dump)
        for stored in before:
            loaded = store.runs.get(stored.id)
            assert loaded is not None
            if stored.state != RunState.RUNNING:
                assert loaded == stored
                continue
            run = json.decode(loaded.data, type=PipelineRun)
            assert (loaded.state, loaded.version) == (RunState.FAILED, 2)
            assert (run.state, run.reason, run.tokens, run.head) == (
                RunState.FAILED,
                COPIED,
                (),
                "ab" * 32,
            )
        assert store.runs.get("of this store") is None

    def test_a_dump_without_runs_is_loaded(self, store: Store, source: Store) -> None:
        with source.dump() as dump:
            assert list(dump.runs()) == []
            store.load(dump)
        assert store.runs.all() == []

    def test_everything_loaded_is_found(self, store: Store, source: Store) -> None:
        with source.dump() as dump:
            store.load(dump)
        assert store.references() == source.references()
        assert store.settings().values == source.settings().values
        assert [row.move for row in store.reflog("main")] == [
            row.move for row in source.reflog("main")
        ]
        assert store.request("request 7") == source.request("request 7")
        assert {one.id: one.data for one in store.scan()} == {
            one.id: one.data for one in source.scan()
        }
        for entry in (b"all", b"entry 0", b"entry 1", b"entry 2"):
            assert [id_ for _, id_ in store.find_indexed(entry, None, 99)] == [
                id_ for _, id_ in source.find_indexed(entry, None, 99)
            ]
        assert sorted(store.scan_index()) == sorted(source.scan_index())

    def test_an_empty_store_is_dumped_and_loaded(self, store: Store, other: Store) -> None:
        empty = contents(store)
        assert not any(empty.values())
        with other.dump() as dump:
            store.load(dump)
        assert contents(store) == empty

    def test_a_loaded_store_accepts_writes(self, store: Store, source: Store) -> None:
        with source.dump() as dump:
            store.load(dump)
        newest = store.find_indexed(b"all", None, 1)[0][0], store.reflog(limit=1)[0].number
        one = StoredObject(id_of("next"), COMMIT, b"next", (b"all",))
        assert (
            write(store, a_write([one], [a_move("main", "c19", "next")], settings={"ä": None}))
            == Done()
        )
        assert store.find_indexed(b"all", None, 2)[1] == (newest[0], id_of("c19"))
        assert store.find_indexed(b"all", None, 1)[0][0] > newest[0]
        assert store.reflog(limit=1)[0].number > newest[1]
        assert store.settings().values == {"branch": "main"}

    def test_a_load_may_have_several_batches(self, store: Store, other: Store) -> None:
        many = [StoredObject(id_of(str(n)), VALUE, b"", (b"%d" % n,)) for n in range(20_500)]
        large = [an_object(f"large {n}", NODE, 9 << 20) for n in range(2)]
        other.put([*many, *large])
        with other.dump() as dump:
            store.load(dump)
        with store.dump() as dump:
            assert [(one.id, one.index) for one in dump.objects()] == [
                (one.id, one.index) for one in (*many, *large)
            ]

    # -- one state --

    def test_a_dump_shows_one_state_during_writes(self, store: Store, clock: Clock) -> None:
        fill(store)
        before = contents(store)
        with store.dump() as dump:
            write(store, commit("main", "c19", "later"))
            write(store, a_write(moves=[a_move("v1", "c3", None, kind="TAG")], settings={"ä": "2"}))
            clock.now += 10_000
            delete(store, [id_of("v3")], int(clock.now))
            assert everything(dump) == before
        assert contents(store) != before

    def test_a_dump_may_be_abandoned(self, store: Store) -> None:
        fill(store)
        with store.dump() as dump:
            next(iter(dump.objects()))
        with pytest.raises(Broken):
            read_one_object_and_fail(store)
        assert write(store, commit("main", "c19", "later")) == Done()

    # -- the target --

    def test_an_initialised_store_counts_as_empty(self, store: Store, source: Store) -> None:
        initialise(store)
        version = store.settings().version
        with source.dump() as dump:
            store.load(dump)
        assert contents(store) == contents(source)
        assert store.settings().version > version
        assert store.basis("main", "").settings == store.settings()

    @pytest.mark.parametrize("replaced", [0, 1])
    @pytest.mark.parametrize("dumped", [0, 1, 2, 3])
    def test_the_settings_version_grows(
        self, store: Store, other: Store, replaced: int, dumped: int
    ) -> None:
        for n in range(dumped):
            write(other, a_write(settings={"a": str(n)}))
        for _ in range(replaced):
            write(store, a_write(settings={"a": "before"}))
        old = store.basis("main", "").settings
        with other.dump() as dump:
            store.load(dump)
        new = store.basis("main", "").settings
        assert new.values == other.settings().values
        assert new.version > old.version or new.values == old.values
        assert new.version >= dumped

    @pytest.mark.parametrize(
        "content",
        [
            a_write([an_object("a")]),
            a_write(moves=[a_move("main", None, "0"), a_move("dev", None, "0")]),
            a_write(moves=[a_move("main", None, "0"), a_move("main", "0", "1")]),
        ],
        ids=["object", "reference", "move"],
    )
    def test_a_store_with_content_is_refused(
        self, store: Store, source: Store, content: Any
    ) -> None:
        write(store, content)
        before = contents(store)
        with source.dump() as dump, pytest.raises(StoreNotEmpty, match="not empty") as caught:
            store.load(dump)
        assert caught.value.name == store.url
        assert contents(store) == before

    def test_changed_settings_count_as_content(self, store: Store, source: Store) -> None:
        initialise(store)
        write(store, a_write(settings={"protect.main": "merge-only"}))
        with source.dump() as dump, pytest.raises(StoreNotEmpty):
            store.load(dump)

    def test_a_second_load_is_refused(self, store: Store, source: Store) -> None:
        for refused in (False, True):
            with source.dump() as dump:
                if refused:
                    with pytest.raises(StoreNotEmpty):
                        store.load(dump)
                else:
                    store.load(dump)
        assert contents(store) == contents(source)

    # -- faults and other writers --

    def test_a_load_that_fails_changes_nothing(self, store: Store, source: Store) -> None:
        initialise(store)
        before, version = contents(store), store.settings().version

        def broken(objects: Iterator[PackedObject]) -> Iterator[PackedObject]:
            yield next(objects)
            raise Broken

        with source.dump() as dump, pytest.raises(Broken):
            store.load(Wrapped(dump, broken))  # type: ignore[arg-type]
        assert contents(store) == before
        assert store.settings().version == version
        with source.dump() as dump:
            store.load(dump)
        assert contents(store) == contents(source)

    def test_one_of_two_concurrent_loads_succeeds(self, store: Store, source: Store) -> None:
        def load() -> str:
            with source.dump() as dump:
                try:
                    store.load(dump)
                except StoreNotEmpty:
                    return "refused"
            return "done"

        assert sorted(concurrently(load, load, load)) == ["done", "refused", "refused"]
        assert contents(store) == contents(source)

    def test_a_commit_during_a_load_waits_and_is_stale(self, store: Store, source: Store) -> None:
        initialise(store)
        loading, outcomes = Event(), []

        def slow(objects: Iterator[PackedObject]) -> Iterator[PackedObject]:
            loading.set()
            writer.join(0.5)
            yield from objects

        def commit_once() -> None:
            loading.wait(60)
            outcomes.append(write(store, commit("main", "0", "too early")))

        writer = Thread(target=commit_once)
        writer.start()
        with source.dump() as dump:
            store.load(Wrapped(dump, slow))  # type: ignore[arg-type]
        writer.join(60)
        assert isinstance(outcomes[0], Stale)
        assert contents(store) == contents(source)

    def test_a_closed_store_is_not_dumped(self, store: Store) -> None:
        store.close()
        with pytest.raises(StoreUnavailable), store.dump():
            pass

    def test_objects_keep_their_packed_form(self, store: Store) -> None:
        """No store compresses an object again, so a second dump equals the first."""
        write(store, create("main"))
        store.put([an_object("a", NODE, 5000)])
        with store.dump() as dump:
            [one] = dump.objects()
        assert one.packed == pack(one.id, one.kind, an_object("a", NODE, 5000).data)
