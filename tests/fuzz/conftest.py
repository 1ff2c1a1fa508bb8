"""A folder to damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command.process import Forker, Nessie, fresh
from tests.fuzz.damage import Folder


def table(nessie: Nessie, key: str, snapshot: int, *more: str) -> None:
    """Puts a table whose metadata file does not exist, so that no network is used."""
    nessie.table(key, snapshot, *more, location=f"/nowhere/{snapshot}.json")


def fill(nessie: Nessie) -> None:
    """Creates two branches in conflict, a tag, two staged batches (one of them stashed), a run
    of `gc`, settings of both kinds, and files of many kinds."""
    nessie.ok("init")
    nessie.ok("content", "put", "db", "--type", "namespace", "-m", "a place")
    table(nessie, "db.orders", 1, "-m", "orders")
    table(nessie, "db.items", 1, "-m", "items")
    nessie.ok("branch", "dev")
    nessie.ok("tag", "v1")
    table(nessie, "db.orders", 2, "-m", "here")
    table(nessie, "db.orders", 3, "-m", "there", "--ref", "dev")
    table(nessie, "db.more", 4)
    nessie.ok("stash")
    table(nessie, "db.items", 5)
    assert nessie("gc", "mark").code == nessie("gc", "plan", "--warehouse", "/nowhere").code == 8, (
        "no metadata file is there"
    )
    nessie.ok("config", "set", "alias.lg", "log --oneline")
    nessie.ok("config", "set", "author", "Ada", "--user")
    work = nessie.folder
    (work / "batch").write_text('[{"type": "DELETE", "key": {"elements": ["db", "items"]}}]')
    (work / "content").write_text(
        '{"type": "ICEBERG_TABLE", "metadataLocation": "s3://x", "snapshotId": 1, "schemaId": 1, "specId": 1, "sortOrderId": 1}'
    )
    (work / "metadata").write_text('{"format-version": 2, "schemas": 7}')
    (work / "binary").write_bytes(bytes(range(256)) * 8)
    (work / "deep").write_text("[" * 100_000)
    (work / "folder").mkdir()
    (work / "loop").symlink_to("loop")


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory, forker: Forker) -> Path:
    """The folder that tests copy; they must not change it."""
    nessie = fresh(tmp_path_factory.mktemp("whole"), forker)
    fill(nessie)
    return nessie.folder.parent


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Folder:
    """A copy of it."""
    return Folder(whole, tmp_path / "here")
