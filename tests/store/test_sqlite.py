"""The SQLite store fulfils the store contract."""

from pathlib import Path

import pytest

from nessie_cli.store.sqlite.store import SQLiteStore, create_sqlite
from tests.store.contract import StoreContract
from tests.store.raw import raw
from tests.store.samples import Clock


class TestSQLiteStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.path = tmp_path / "store.sqlite"

    def make_store(self, clock: Clock) -> SQLiteStore:
        return create_sqlite(str(self.path), clock=clock)

    def drop_runs(self) -> None:
        with raw(self.path) as connection:
            connection.execute("DROP TABLE runs")

    def drop_sessions(self) -> None:
        with raw(self.path) as connection:
            connection.execute("DROP TABLE sessions")
