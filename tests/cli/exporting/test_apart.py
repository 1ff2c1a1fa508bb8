"""`nessie export` and what it must not touch: this repository itself, and another export."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nessie_cli.errors import ReferenceMoved
from nessie_cli.exporting.state import ExportRecord
from nessie_cli.iceberg.warehouses.configuration import from_options
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    Content,
    ContentKey,
    IcebergTable,
    Put,
    ReferenceType,
    RestoredFrom,
)
from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import connect
from nessie_cli.repository.store_repository import StoreRepository
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from tests.cli.exporting.place import BRANCH, PREFIX, TAG
from tests.command.in_process import InProcess
from tests.server.serving import serving

A, B = ContentKey(("a",)), ContentKey(("b",))


# -- this repository itself ------------------------------------------------------------------------


def test_a_server_of_the_same_store_is_refused(
    nessie: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert nessie("init").code == 0
    monkeypatch.setenv(f"{PREFIX}TYPE", "rest")
    with connect(str(tmp_path / ".nessie" / "store.sqlite")) as repository:
        assert isinstance(repository, StoreRepository)
        warehouses = from_options([str(tmp_path / "warehouse")])
        app = application(repository, Parts(warehouses=warehouses))
        with serving(app=app) as url:
            for front in ("/iceberg", "/iceberg/main"):
                monkeypatch.setenv(f"{PREFIX}URI", url + front)
                nessie("export", "--to", "other").expect(2, "other is this repository itself")
                ran = nessie("export", "--to", "other", "--store", f"{url}/api/v2")
                ran.expect(2, "other is this repository itself")


def test_another_path_of_the_same_store_is_refused(
    nessie: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert nessie("init").code == 0
    link = tmp_path / "link.sqlite"
    link.symlink_to(tmp_path / ".nessie" / "store.sqlite")
    monkeypatch.setenv(f"{PREFIX}PY_CATALOG_IMPL", "nessie_cli.iceberg.catalog.NessieCatalog")
    monkeypatch.setenv(f"{PREFIX}URI", str(link))
    nessie("export", "--to", "other").expect(2, "other is this repository itself")


# -- two exports at once ---------------------------------------------------------------------------


@pytest.fixture
def repository() -> Iterator[Repository]:
    with connect("memory:") as opened:
        opened.put_setting("namespace-validation", "false")
        table = IcebergTable(metadata_location="s3://lake/t.json", snapshot_id=1)
        meta = CommitMeta("tables")
        opened.commit("main", [Put(A, table), Put(B, table)], meta)
        yield opened


class Export:
    """An export of one table that has read the record."""

    def __init__(self, repository: Repository, key: ContentKey) -> None:
        self._contents: dict[ContentKey, Content] = {key: repository.content("main", key)}
        self._origins = {key: RestoredFrom(repository.reference("main").hash, key)}
        self.record = ExportRecord(repository, "other")

    def begin(self) -> None:
        self.record.begin(self._contents, self._origins, (), CommitMeta("export"))

    def run(self) -> None:
        self.begin()
        self.record.complete()


def tagged(repository: Repository) -> set[ContentKey]:
    return {entry.key for entry in repository.entries(TAG)}


def test_an_export_that_read_the_record_before_another_one_ended_is_refused(
    repository: Repository,
) -> None:
    first, second = Export(repository, A), Export(repository, B)
    first.run()
    with pytest.raises(ReferenceMoved, match="another export") as refused:
        second.begin()
    assert refused.value.hint == "when it has ended, run the same command again"
    assert {reference.name for reference in repository.references()} == {"main", TAG}
    Export(repository, B).run()
    assert tagged(repository) == {A, B}, "the files of both are kept"


def test_an_export_that_read_the_record_before_another_one_began_is_refused(
    repository: Repository,
) -> None:
    first, second = Export(repository, A), Export(repository, B)
    first.begin()
    with pytest.raises(ReferenceMoved, match="another export"):
        second.begin()
    first.record.complete()
    assert tagged(repository) == {A}


@pytest.mark.parametrize("exports", [0, 1, 2])
def test_a_branch_that_an_export_left_without_a_commit_loses_nothing(
    repository: Repository, exports: int
) -> None:
    starts = [NO_ANCESTOR]
    for key in (A, B)[:exports]:
        Export(repository, key).run()
        starts.append(repository.reference(TAG).hash)
    for start in starts:
        repository.create_reference(ReferenceType.BRANCH, BRANCH, start)
        # A table that was dropped there is not taken for an unfinished registration.
        assert ExportRecord(repository, "other").is_interrupted is not bool(exports)
        Export(repository, B).run()
        assert tagged(repository) == ({A, B} if exports else {B})
        assert {reference.name for reference in repository.references()} == {"main", TAG}
