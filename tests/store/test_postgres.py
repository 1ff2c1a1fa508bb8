"""The PostgreSQL store keeps the store contract."""

from __future__ import annotations

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.store.base import Store
from nessie_cli.store.postgres import PostgresStore, create_postgres
from tests.store.contract import StoreContract
from tests.store.samples import Clock, a_move, a_write, write


class TestPostgresStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _url(self, postgres_url: str) -> None:
        self.url = postgres_url

    def make_store(self, clock: Clock) -> PostgresStore:
        return create_postgres(self.url, clock=clock)

    def test_the_reflog_keeps_every_field(self, store: Store) -> None:
        """Instead of the contract's: PostgreSQL has no text with a NUL."""
        move = a_move("main", None, "1", kind="TAG", request_id="a request", message="many\nlines, 'quotes' and 👍")
        write(store, a_write(moves=[move]))
        assert [row.move for row in store.reflog()] == [move]
        with pytest.raises(InvalidInput, match="NUL"):
            write(store, a_write(moves=[a_move("main", "1", "2", message="\0")]))

    def test_the_change_counter_differs_after_each_change_and_no_other_call(self, store: Store) -> None:
        """Instead of the contract's: finding out would take a round trip, so the answer is always that it is unavailable."""
        assert store.change_counter() is None
