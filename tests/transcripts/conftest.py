"""The command line in processes, forked from one that has loaded all modules."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.command.process import Forker, Nessie, fresh, recorded


@pytest.fixture
def nessie(tmp_path: Path, forker: Forker) -> Nessie:
    """The command in an empty folder without a workspace."""
    return fresh(tmp_path, forker)


@pytest.fixture
def workspace(nessie: Nessie) -> Nessie:
    """The command in a folder with a fresh workspace."""
    nessie.ok("init")
    return nessie


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory, forker: Forker) -> Nessie:
    """What `catalog` copies; not to be changed."""
    nessie = fresh(tmp_path_factory.mktemp("catalog"), forker)
    nessie.ok("init")
    nessie.ok("content", "put", "db", "--type", "namespace")
    nessie.table("db.orders", 1)
    nessie.ok("commit", "-m", "first tables")
    return nessie


@pytest.fixture
def catalog(nessie: Nessie, made_once: Nessie) -> Nessie:
    """A workspace with one commit on main: namespace `db`, table `db.orders` at snapshot 1."""
    shutil.copytree(made_once.folder, nessie.folder, dirs_exist_ok=True)
    recorded(nessie)
    return nessie
