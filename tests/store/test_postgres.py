"""The PostgreSQL store fulfils the store contract."""

from __future__ import annotations

import pytest

from nessie_cli.store.base import Store
from nessie_cli.store.postgres import PostgresStore, create_postgres
from tests.store.contract import StoreContract
from tests.store.postgres_server import shared_server
from tests.store.samples import Clock


class TestPostgresStore(StoreContract):
    keeps_nul = False  # PostgreSQL's text cannot hold one.
    counts_only_changes = (
        False  # Any transaction of the database server may change it, refused writes included.
    )

    @pytest.fixture(autouse=True)
    def _url(self, postgres_url: str) -> None:
        self.url = postgres_url

    def make_store(self, clock: Clock) -> PostgresStore:
        return create_postgres(self.url, clock=clock)

    def drop_runs(self) -> None:
        with shared_server().connect() as connection:
            connection.execute(f"DROP TABLE {self.url.partition('schema=')[2]}.runs")

    def drop_sessions(self) -> None:
        with shared_server().connect() as connection:
            connection.execute(f"DROP TABLE {self.url.partition('schema=')[2]}.sessions")

    def test_the_change_counter_differs_after_the_connection_was_lost(self, store: Store) -> None:
        """The database server may have been replaced by one that has lost transactions and reuses
        their numbers."""
        before = store.change_counter()
        with shared_server().connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname ="
                " current_database() AND pid <> pg_backend_pid()"
            )
        after = {store.change_counter() for _ in range(2)}
        assert before is not None
        assert all(found is None or found[0] > before[0] for found in after)
        assert after != {None}
