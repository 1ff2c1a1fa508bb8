"""Places for new stores."""

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A path without a store."""
    return str(tmp_path / "store.sqlite")


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
