"""The part of the store contract about `commit`: outcomes, groups, leases."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from nessie_cli.store.base import LEASE, Store
from nessie_cli.store.records import (
    Done,
    Repeated,
    RequestRecord,
    Requirement,
    Stale,
    StoredReference,
    StoredSettings,
    Write,
)
from tests.store.samples import a_move, a_write, an_object, commit, create, id_of, stale, write


class CommitContract:
    """Inherited by `StoreContract`."""

    # -- moves --

    def test_a_write_applies_all_its_parts(self, store: Store) -> None:
        assert (
            write(store, a_write([an_object("a")], [a_move("main", None, "0")], {"age": "7"}))
            == Done()
        )
        assert store.get([an_object("a").id]) == {an_object("a").id: an_object("a").data}
        assert store.reference("main") == StoredReference("main", "BRANCH", id_of("0"))
        assert store.settings().values == {"age": "7"}

    def test_an_empty_write_is_done(self, store: Store) -> None:
        assert write(store, a_write()) == Done()
        assert store.commit([]) == []
        assert store.reflog() == []

    def test_a_reference_is_created_moved_and_deleted(self, store: Store) -> None:
        for before, after in ((None, "1"), ("1", "2"), ("2", "2"), ("2", None), (None, "3")):
            assert write(store, a_write(moves=[a_move("main", before, after)])) == Done()
            expected = StoredReference("main", "BRANCH", id_of(after)) if after else None
            assert store.reference("main") == expected

    @pytest.mark.parametrize(("before", "after"), [("1", "2"), ("1", None), (None, "2")])
    def test_a_stale_move_returns_the_current_reference(
        self, store: Store, before: str | None, after: str | None
    ) -> None:
        write(store, create("main", "other"))
        assert write(store, a_write(moves=[a_move("main", before, after)])) == stale(
            "main", StoredReference("main", "BRANCH", id_of("other"))
        )

    def test_a_move_of_a_missing_reference_is_stale(self, store: Store) -> None:
        assert write(store, a_write(moves=[a_move("main", "1", "2")])) == stale("main", None)
        assert write(store, a_write(moves=[a_move("main", "1", None)])) == stale("main", None)

    def test_a_reference_that_changed_its_kind_is_stale(self, store: Store) -> None:
        write(store, create("v1", "1", kind="TAG"))
        moved = stale("v1", StoredReference("v1", "TAG", id_of("1")))
        assert write(store, a_write(moves=[a_move("v1", "1", "2")])) == moved
        assert write(store, a_write(moves=[a_move("v1", "1", None)])) == moved
        assert write(store, a_write(moves=[a_move("v1", None, "2")])) == moved

    def test_a_stale_write_leaves_nothing_behind(self, store: Store) -> None:
        write(
            store, a_write([], [a_move("main", None, "1"), a_move("dev", None, "1")], {"age": "7"})
        )
        before = (store.references(), store.reflog())
        moves = [
            a_move("dev", "1", "2", request_id="r"),
            a_move("new", None, "2", request_id="r"),
            a_move("main", "0", "2", request_id="r"),
        ]
        assert isinstance(
            write(
                store, a_write([an_object("a")], moves, {"age": None, "size": "1"}, request_id="r")
            ),
            Stale,
        )
        assert (store.references(), store.reflog()) == before
        assert store.settings().values == {"age": "7"}
        assert list(store.scan()) == []
        assert store.request("r") is None

    def test_moves_of_one_reference_chain(self, store: Store) -> None:
        moves = [
            a_move("main", None, "1"),
            a_move("main", "1", "2"),
            a_move("main", "2", None),
            a_move("main", None, "3"),
        ]
        assert write(store, a_write(moves=moves)) == Done()
        assert store.reference("main") == StoredReference("main", "BRANCH", id_of("3"))
        assert [row.move for row in reversed(store.reflog())] == moves

    def test_a_broken_chain_of_moves_is_stale(self, store: Store) -> None:
        answer = write(store, a_write(moves=[a_move("main", None, "1"), a_move("main", "2", "3")]))
        assert answer == stale("main", StoredReference("main", "BRANCH", id_of("1")))
        assert store.reference("main") is None

    def test_a_rename_is_two_moves(self, store: Store) -> None:
        write(store, create("old", "1"))
        assert (
            write(store, a_write(moves=[a_move("old", "1", None), a_move("new", None, "1")]))
            == Done()
        )
        assert [r.name for r in store.references()] == ["new"]

    # -- requirements --

    def test_a_required_object_must_exist(self, store: Store) -> None:
        store.put([an_object("there")])
        for required in (["missing"], ["there", "missing"], ["new", "missing"]):
            ids = [id_of(text) for text in required]
            outcome = write(
                store, a_write([an_object("new")], [a_move("main", None, "there")], required=ids)
            )
            assert outcome == Stale(Requirement.OBJECT)
        assert store.references() == []
        assert store.get([id_of("new")]) == {}
        for name, text in (("a", "there"), ("b", "new")):
            assert (
                write(
                    store,
                    a_write([an_object("new")], [a_move(name, None, text)], required=[id_of(text)]),
                )
                == Done()
            )

    def test_a_required_object_may_come_from_an_earlier_write_of_the_call(
        self, store: Store
    ) -> None:
        writes = [
            a_write([an_object("lost")], [a_move("main", "0", "1")]),
            a_write([an_object("new")]),
            a_write(moves=[a_move("a", None, "lost")], required=[id_of("lost")]),
            a_write(moves=[a_move("b", None, "new")], required=[id_of("new")]),
        ]
        assert store.commit(writes) == [
            stale("main", None),
            Done(),
            Stale(Requirement.OBJECT),
            Done(),
        ]
        assert [one.name for one in store.references()] == ["b"]

    def test_settings_must_have_the_required_version(self, store: Store) -> None:
        """A commit that was drafted before branch protection was switched on must not be applied
        after it."""
        seen = store.settings()
        assert (
            write(
                store,
                a_write(settings={"protect.main": "merge-only"}, settings_version=seen.version),
            )
            == Done()
        )
        late = a_write([an_object("a")], [a_move("main", None, "1")], settings_version=seen.version)
        assert write(store, late) == Stale(Requirement.SETTINGS)
        assert (store.references(), list(store.scan())) == ([], [])
        assert write(
            store, a_write(settings={"protect.main": None}, settings_version=seen.version)
        ) == Stale(Requirement.SETTINGS)
        assert store.settings() == StoredSettings({"protect.main": "merge-only"}, seen.version + 1)
        now = a_write(moves=[a_move("main", None, "1")], settings_version=seen.version + 1)
        assert write(store, now) == Done()
        assert write(store, a_write(moves=[a_move("dev", None, "1")])) == Done()

    def test_the_version_of_settings_grows_by_one_per_write_that_changes_them(
        self, store: Store
    ) -> None:
        changes: list[dict[str, str | None]] = [
            {"a": "1", "b": "2"},
            {"a": "1"},
            {},
            {"a": None, "b": None},
            {"never there": None},
            {"a": "3"},
        ]
        versions = []
        for change in changes:
            write(store, a_write(settings=change))
            versions.append(store.settings().version)
        assert versions == [1, 2, 2, 3, 4, 5]
        assert store.settings() == StoredSettings({"a": "3"}, 5)

    def test_writes_of_one_call_see_the_settings_of_earlier_ones(self, store: Store) -> None:
        writes = [
            a_write(settings={"a": "1"}, settings_version=0),
            a_write(settings={"b": "1"}, settings_version=0),
            a_write(settings={"c": "1"}, settings_version=1),
            a_write(moves=[a_move("main", None, "1")], settings_version=2),
        ]
        assert store.commit(writes) == [Done(), Stale(Requirement.SETTINGS), Done(), Done()]
        assert store.settings() == StoredSettings({"a": "1", "c": "1"}, 2)

    # -- requests --

    def test_a_request_is_found_by_its_id(self, store: Store) -> None:
        one = commit("main", "0", "1", "r1")
        assert write(store, one) == stale("main", None)
        assert store.request("r1") is None
        write(store, create("main", "0"))
        assert write(store, one) == Done()
        assert store.request("r1") == one.request
        assert store.request("r") is None
        assert store.request("") is None

    def test_a_repeated_request_writes_nothing_and_returns_the_recorded_one(
        self, store: Store
    ) -> None:
        first = create("main", "1")
        write(store, first)
        again = a_write(
            [an_object("a")], [a_move("dev", None, "1")], {"a": "1"}, request_id=first.request.id
        )
        before = (store.references(), store.reflog(), store.settings())
        assert write(store, again) == Repeated(first.request)
        assert write(store, first) == Repeated(first.request)
        assert (store.references(), store.reflog(), store.settings()) == before
        assert list(store.scan()) == []

    def test_a_request_id_occurs_once_in_a_call(self, store: Store) -> None:
        """The second write is repeated only if the first is done."""
        lost = a_write(moves=[a_move("a", "0", "1")], request_id="r")
        first, second = (
            a_write(moves=[a_move(name, None, "1")], request_id="r") for name in ("b", "c")
        )
        assert store.commit([lost, first, second]) == [
            stale("a", None),
            Done(),
            Repeated(first.request),
        ]
        assert [one.name for one in store.references()] == ["b"]
        assert store.request("r") == first.request

    def test_the_request_id_is_checked_before_other_requirements(self, store: Store) -> None:
        """A repeated request may find that its own first commit moved the reference."""
        store.commit([create("main", "0"), commit("main", "0", "1", "r")])
        repeated = commit("main", "0", "1", "r")
        assert write(store, repeated) == Repeated(repeated.request)

    def test_writes_without_a_request_id_are_never_repeated(self, store: Store) -> None:
        write(store, create("main", "0"))
        for n in range(3):
            one = commit("main", str(n), str(n + 1))
            nameless = Write(RequestRecord("", "", b"", b"", 0), one.objects, one.moves)
            assert write(store, nameless) == Done()
        assert store.request("") is None
        assert store.basis("main", "").request is None

    # -- groups --

    def test_each_write_of_a_call_has_its_own_outcome(self, store: Store) -> None:
        write(store, create("main", "0"))
        writes = [
            commit("main", "0", "1"),
            a_write(
                [an_object("a")], [a_move("dev", None, "1"), a_move("main", "0", "2")], {"x": "1"}
            ),
            commit("main", "1", "2"),
            a_write(moves=[a_move("main", "2", None)]),
            commit("main", "2", "3"),
            create("main", "4", kind="TAG"),
        ]
        tag = StoredReference("main", "TAG", id_of("4"))
        at_1 = StoredReference("main", "BRANCH", id_of("1"))
        assert store.commit(writes) == [
            Done(),
            stale("main", at_1),
            Done(),
            Done(),
            stale("main", None),
            Done(),
        ]
        assert store.references() == [tag]
        assert store.settings() == StoredSettings()
        assert store.get(
            [id_of("a"), id_of("value 1"), id_of("value 2"), id_of("value 3")]
        ).keys() == {id_of("value 1"), id_of("value 2")}
        assert [row.move.after for row in store.reflog("main")] == [
            id_of("4"),
            None,
            id_of("2"),
            id_of("1"),
            id_of("0"),
        ]

    def test_many_writes_of_one_call(self, store: Store) -> None:
        write(store, create("main", "0"))
        writes = [commit("main", str(n), str(n + 1)) for n in range(100)]
        writes += [create(f"branch {n}", str(n)) for n in range(100)]
        assert store.commit(writes) == [Done()] * 200
        assert store.reference("main") == StoredReference("main", "BRANCH", id_of("100"))
        assert [row.move for row in reversed(store.reflog())][1:] == [
            one.moves[0] for one in writes
        ]
        assert len(store.references()) == 101
        assert all(store.request(one.request.id) == one.request for one in writes)
        assert [type(outcome) for outcome in store.commit(writes)] == [Repeated] * 200

    def test_an_object_of_several_writes_is_stored_once(self, store: Store) -> None:
        writes = [a_write([an_object("a"), an_object(str(n))]) for n in range(3)]
        assert store.commit(writes) == [Done()] * 3
        assert list(store.scan()) == [an_object("a"), *(an_object(str(n)) for n in range(3))]

    # -- leases --

    def test_a_lease_has_one_holder_at_a_time(self, store: Store) -> None:
        order: list[int] = []
        with ThreadPoolExecutor(4) as pool:
            with store.lease("main"):
                waiting = []
                for n in range(4):
                    waiting.append(pool.submit(self._lease_once, store, order, n))
                    time.sleep(0.1)
                assert order == []
            for future in waiting:
                future.result(30)
        assert order == [0, 1, 2, 3]

    @staticmethod
    def _lease_once(store: Store, order: list[int], n: int) -> None:
        with store.lease("main"):
            order.append(n)
            time.sleep(0.01)

    def test_leases_of_other_references_do_not_wait(self, store: Store) -> None:
        begun = time.monotonic()
        with store.lease("a") as a, store.lease("b") as b, ThreadPoolExecutor(1) as pool:
            assert a != b
            assert store.commit([create("a")], lease=a) == [Done()]
            assert pool.submit(store.commit, [create("c")]).result(30) == [Done()]
        assert time.monotonic() - begun < LEASE / 2

    def test_commits_of_others_wait_until_a_lease_is_released(self, store: Store) -> None:
        write(store, create("main", "0"))
        with ThreadPoolExecutor(1) as pool:
            with store.lease("main") as token:
                other = pool.submit(write, store, commit("main", "0", "other"))
                time.sleep(0.1)
                assert not other.done()
                assert store.commit([commit("main", "0", "1")], lease=token) == [Done()]
                assert store.commit([commit("main", "1", "2")], lease=token) == [Done()]
            assert other.result(30) == stale("main", StoredReference("main", "BRANCH", id_of("2")))

    def test_the_last_commit_under_a_lease_ends_it(self, store: Store) -> None:
        """It ends after the writes are done, because the next holder reads their changes."""
        write(store, create("main", "0"))

        def read_under_a_lease() -> StoredReference | None:
            with store.lease("main"):
                return store.reference("main")

        with ThreadPoolExecutor(1) as pool:
            for n in range(20):
                with store.lease("main") as token:
                    waiting = pool.submit(read_under_a_lease)
                    time.sleep(0.01)
                    writes = [commit("main", str(n), str(n + 1))]
                    assert store.commit(writes, lease=token, end_lease=True) == [Done()]
                assert waiting.result(30) == StoredReference("main", "BRANCH", id_of(str(n + 1)))
        # The lease is over: a commit of another writer does not wait for it.
        begun = time.monotonic()
        assert write(store, commit("main", "20", "21")) == Done()
        assert time.monotonic() - begun < LEASE / 2

    def test_a_refused_last_commit_ends_its_lease(self, store: Store) -> None:
        write(store, create("main", "0"))
        begun = time.monotonic()
        with store.lease("main") as token:
            outcomes = store.commit([commit("main", "x", "y")], lease=token, end_lease=True)
            assert isinstance(outcomes[0], Stale)
        with store.lease("main"):
            pass
        assert time.monotonic() - begun < LEASE / 2

    def test_a_lease_that_is_not_released_expires(self, store: Store) -> None:
        write(store, create("main", "0"))
        held = store.lease("main")
        held.__enter__()
        begun = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            committed = pool.submit(write, store, commit("main", "0", "1"))
            with store.lease("main") as token:
                waited = time.monotonic() - begun
                assert store.commit([create("dev")], lease=token) == [Done()]
            assert committed.result(30) == Done()
        assert LEASE / 2 < waited < LEASE * 2
        held.__exit__(None, None, None)
        assert write(store, commit("main", "1", "2")) == Done()
        assert time.monotonic() - begun < LEASE * 3

    def test_an_error_under_a_lease_releases_it(self, store: Store) -> None:
        begun = time.monotonic()
        for _ in range(3):
            with pytest.raises(KeyError), store.lease("main"):
                raise KeyError
        assert write(store, create("main")) == Done()
        assert time.monotonic() - begun < LEASE / 2
