"""A workspace for completion: namespaces, quoted keys, a branch, a tag, a merge, a deleted
branch, a staged operation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nessie_cli import CommitMeta, ContentKey, Delete, IcebergTable, Namespace, Put, create
from nessie_cli.model import ReferenceType
from tests.command.process import Forker

KEYS = (
    "db",
    "db.orders",
    'db."order.lines"',
    "db.sales",
    "db.sales.items",
    "db.sales.units",
    "web",
    'web."it\'s ""new"""',
    "éclair",
)
NAMESPACES = ("db", "db.sales", "web")


def content(key: str):
    elements = ContentKey.parse(key).elements
    return (
        Namespace(elements=elements)
        if key in NAMESPACES
        else IcebergTable(metadata_location=f"s3://lake/{key}", snapshot_id=1, schema_id=0)
    )


def fill(path: Path) -> None:
    with create(str(path), who="tester") as repository:
        for key in KEYS:
            repository.commit(
                "main", [Put(ContentKey.parse(key), content(key))], CommitMeta(f"add {key}\n\nmore")
            )
        head = repository.reference("main").hash
        repository.create_reference(ReferenceType.BRANCH, "feature/new-orders", head)
        repository.create_reference(ReferenceType.BRANCH, "feature/old", head)
        repository.create_reference(ReferenceType.TAG, "v1.0", head)
        repository.commit(
            "feature/new-orders", [Delete(ContentKey.parse("éclair"))], CommitMeta("no sweets")
        )
        repository.commit(
            "feature/new-orders",
            [Put(ContentKey(("later",)), content("later"))],
            CommitMeta("only on the branch"),
        )
        repository.merge("main", "feature/new-orders")
        gone = repository.create_reference(ReferenceType.BRANCH, "gone", head)
        repository.delete_reference("gone", expected_hash=gone.hash)


@pytest.fixture(scope="session")
def catalog(forker: Forker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the workspace; tests must not change it."""
    folder = tmp_path_factory.mktemp("catalog")
    (folder / ".nessie").mkdir()
    fill(folder / ".nessie" / "store.sqlite")
    (folder / "my notes.txt").write_text("")
    (folder / "tables").mkdir()
    (folder / "tables" / "orders.json").write_text("{}")
    (folder / ".hidden").write_text("")
    (folder / "inner").mkdir()
    deleted = forker.run(
        ["content", "delete", "db.sales.units", "-q"], folder, {"HOME": str(folder)}
    )
    assert deleted.code == 0, deleted
    return folder


@pytest.fixture
def here(catalog: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enters the workspace, without settings of the machine's user."""
    monkeypatch.chdir(catalog)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("STORE", "ENDPOINT", "PROFILE", "REF", "DEFAULT_BRANCH"):
        monkeypatch.delenv(f"NESSIE_{name}", raising=False)
    return catalog


@pytest.fixture
def words() -> Callable[..., list[str]]:
    """Returns the candidates for the last word."""
    from nessie_cli.cli.completion.answer import candidates

    return lambda *typed: [text for text, _ in candidates(typed)]


@pytest.fixture
def said() -> Callable[..., dict[str, str]]:
    """Returns the candidates with descriptions."""
    from nessie_cli.cli.completion.answer import candidates

    return lambda *typed: dict(candidates(typed))
