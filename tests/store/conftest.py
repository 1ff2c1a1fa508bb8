"""Places for new stores, and empty stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nessie_cli.store.base import Store
from nessie_cli.store.opening import create_store

if TYPE_CHECKING:
    from tests.store.postgres_server import PostgresServer


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A path without a store."""
    return str(tmp_path / "store.sqlite")


@pytest.fixture
def other() -> Iterator[Store]:
    """An empty store beside the one that is tested."""
    with closing(create_store("memory:")) as store:
        yield store


@pytest.fixture
def filled(path: str) -> str:
    """A closed store with one branch and three objects."""
    from nessie_cli.store.sqlite.store import create_sqlite
    from tests.store.samples import commit, create, write

    store = create_sqlite(path)
    write(store, create("main", "0"))
    write(store, commit("main", "0", "1"))
    store.close()
    return path


@pytest.fixture
def postgres_url():
    """A PostgreSQL URL without a store."""
    from tests.store.postgres_server import new_url

    with new_url() as url:
        yield url


@pytest.fixture
def server() -> PostgresServer:
    """The PostgreSQL server of this process."""
    from tests.store.postgres_server import shared_server

    return shared_server()
