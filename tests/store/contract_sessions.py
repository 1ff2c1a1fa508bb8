"""The part of the store contract about the logins of browsers."""

from __future__ import annotations

from nessie_cli.store.base import Store
from nessie_cli.store.records import StoredSession
from tests.store.samples import create, write

ANN = StoredSession(b"\x00" * 32, b'{"token": "a"}', 1_000)
BOB = StoredSession(b"\xff" * 32, b"\x00\xff", 2_000)


class SessionContract:
    def test_a_session_is_returned_unchanged(self, store: Store) -> None:
        assert store.sessions.get(ANN.id) is None
        for session in (ANN, BOB):
            store.sessions.put(session)
        assert [store.sessions.get(session.id) for session in (ANN, BOB)] == [ANN, BOB]

    def test_a_session_ends_later_once_it_is_extended(self, store: Store) -> None:
        store.sessions.put(ANN)
        store.sessions.extend(ANN.id, 5_000)
        assert store.sessions.get(ANN.id) == StoredSession(ANN.id, ANN.data, 5_000)

    def test_a_deleted_session_is_not_extended(self, store: Store) -> None:
        store.sessions.put(ANN)
        store.sessions.delete(ANN.id)
        store.sessions.delete(ANN.id)
        store.sessions.extend(ANN.id, 5_000)
        assert store.sessions.get(ANN.id) is None

    def test_all_sessions_are_returned(self, store: Store) -> None:
        assert store.sessions.all() == []
        for session in (ANN, BOB):
            store.sessions.put(session)
        assert sorted(store.sessions.all(), key=lambda each: each.ends) == [ANN, BOB]

    def test_ended_sessions_are_removed(self, store: Store) -> None:
        for session in (ANN, BOB):
            store.sessions.put(session)
        assert store.sessions.expire(999) == 0
        assert store.sessions.expire(1_000) == 1
        assert [store.sessions.get(session.id) for session in (ANN, BOB)] == [None, BOB]

    def test_a_dump_has_no_sessions(self, store: Store, other: Store) -> None:
        write(store, create("main", "0"))
        store.sessions.put(ANN)
        other.sessions.put(BOB)
        with store.dump() as dump:
            other.load(dump)
        assert [other.sessions.get(session.id) for session in (ANN, BOB)] == [None, BOB]

    def test_a_store_without_the_table_gets_it(self, store: Store) -> None:
        self.drop_sessions()
        assert store.sessions.get(ANN.id) is None
        assert store.sessions.all() == []
        store.sessions.extend(ANN.id, 1)
        store.sessions.delete(ANN.id)
        assert store.sessions.expire(5_000) == 0
        store.sessions.put(ANN)
        assert store.sessions.get(ANN.id) == ANN

    def drop_sessions(self) -> None:
        """Makes the store one of a version without sessions."""
        raise NotImplementedError
