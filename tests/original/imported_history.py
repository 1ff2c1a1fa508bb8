"""A history of the original server, imported and read back key by key at every commit.

`make test-original` runs it. The original's export tool is not on Maven Central, so no export that
it has written is read here; `tests/importing/history/exporter.py` writes exports in its format.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nessie_cli import create
from nessie_cli.importing.history.server import ServerHistory
from nessie_cli.model import ProblemKind
from nessie_cli.repository.store_repository import StoreRepository
from tests.importing.history.exporter import commits_of, write_export
from tests.importing.history.histories import assert_same, imported, write_varied_history
from tests.importing.history.test_export_file import import_export
from tests.repository.vocabulary import Catalog, behave, delete, put, table


@pytest.fixture
def target(tmp_path: Path) -> Iterator[StoreRepository]:
    with create(str(tmp_path / "target.sqlite"), who="importer") as repository:
        yield repository


def test_a_history_of_the_original_is_imported(source: Catalog, target: StoreRepository) -> None:
    write_varied_history(source)
    result = imported(target, ServerHistory(source.repository, "original"))
    assert assert_same(source.repository, target) == result.commits == 13
    assert (result.cut, result.duplicates) == ([], [])
    assert result.contents["UDF"] == result.contents["DELTA_LAKE_TABLE"] == 1


def test_an_export_of_it_in_its_format_is_imported(
    source: Catalog, target: StoreRepository, tmp_path: Path
) -> None:
    write_varied_history(source)
    export = write_export(
        tmp_path / "export.zip",
        commits_of(source.repository),
        list(source.repository.references()),
    )
    import_export(target, export)
    assert_same(source.repository, target)


def test_a_content_with_two_keys_is_imported_and_repaired(
    source: Catalog, target: StoreRepository
) -> None:
    """A merge of the original that leaves the deletion of a renamed content out."""
    source.write("main", {"a": 1})
    source.branch("dev")
    source.rename("dev", "a", "b", 2)
    source.write("main", {"c": 3})
    source.merge("dev", behaviors=[behave("a", "DROP")])
    result = imported(target, ServerHistory(source.repository, "original"))
    ours = Catalog(target)
    assert ours.numbers() == {"a": 1, "b": 2, "c": 3}
    heads = [problem for problem in result.duplicates if problem.where == "main"]
    assert [problem.kind for problem in heads] == [ProblemKind.DUPLICATE_ID]
    assert heads[0].replaceable is not None
    branch, key = heads[0].replaceable
    ours.commit(branch, delete(key.plain), put(key.plain, table(2)))
    assert [problem.where for problem in target.check()] == [
        problem.where for problem in result.duplicates if problem.where != "main"
    ]
