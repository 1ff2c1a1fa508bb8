"""The PostgreSQL store keeps the store contract."""

from __future__ import annotations

import pytest

from nessie_cli.store.postgres import PostgresStore, create_postgres
from tests.store.contract import StoreContract
from tests.store.samples import Clock


class TestPostgresStore(StoreContract):
    keeps_nul = False  # PostgreSQL's text cannot hold one.
    counts_changes = False  # It would take a round trip.

    @pytest.fixture(autouse=True)
    def _url(self, postgres_url: str) -> None:
        self.url = postgres_url

    def make_store(self, clock: Clock) -> PostgresStore:
        return create_postgres(self.url, clock=clock)
