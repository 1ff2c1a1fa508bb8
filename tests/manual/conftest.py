"""The pages, and a repository in which every example works."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.importing.sql_lake import SqlLake
from tests.command.process import Nessie, fresh, recorded
from tests.json import heap
from tests.json.lake import theirs

ROOT = Path(__file__).parents[2]


if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))


@pytest.fixture(scope="session")
def tree():
    """The command tree as the generator reads it."""
    from manual import tree

    return tree.read()


@pytest.fixture(scope="session")
def pages(tree):
    """All pages by name."""
    from manual.pages import every_page

    return {page.name: page for page in every_page(tree)}


@pytest.fixture(scope="session")
def world(tmp_path_factory, forker):
    """The folder that `place` copies: a repository with all references, keys and files of the
    examples. Tests must not change it."""
    nessie = fresh(tmp_path_factory.mktemp("world"), forker)
    nessie.environment["NESSIE_AUTHOR"] = "ada"
    build(nessie)
    return nessie


@pytest.fixture
def place(world, tmp_path, forker):
    """A copy of the world to run one example in."""
    copy = Nessie(tmp_path / "work", tmp_path / "home", forker)
    shutil.copytree(world.folder, copy.folder)
    shutil.copytree(Path(world.environment["HOME"]), tmp_path / "home", dirs_exist_ok=True)
    recorded(copy)
    copy.environment["NESSIE_AUTHOR"] = "ada"
    copy.environment["PATH"] = f"{copy.folder / 'bin'}{os.pathsep}{os.defpath}"
    return copy


@pytest.fixture
def warehouse(nothing):
    """A table whose file is on this machine, unlike one in `place`; a garbage collection run has
    been planned."""
    heap.planned(nothing.folder)
    recorded(nothing)
    return nothing


@pytest.fixture
def sources(place):
    """As `place`, with the catalog `prod` and the folder of a warehouse to import from."""
    folder = place.folder / "elsewhere on this machine"
    lake = SqlLake(folder, "prod")
    lake.create("sales.q1", "hr.people")
    theirs(folder, "warehouse")
    (Path(place.environment["HOME"]) / ".pyiceberg.yaml").write_text(
        f"catalog:\n  prod:\n    type: sql\n    uri: {lake.uri}\n"
    )
    return place


@pytest.fixture
def begun(nothing):
    """As `warehouse`, with a run that was stopped while it was marking."""
    heap.begun(nothing.folder)
    recorded(nothing)
    return nothing


@pytest.fixture
def nothing(tmp_path, forker):
    """An empty folder."""
    return fresh(tmp_path, forker)


def table(nessie, key: str, number: int, *more: str) -> None:
    # `--deep` reads metadata files; those in buckets would need a network.
    location = (
        "s3://lake/db/rates/00001.json"
        if key == "db.rates"
        else f"file://{nessie.folder}/00002.json"
    )
    nessie.table(key, number, *more, location=location)


def build(nessie) -> None:
    nessie.ok("init")
    for namespace in ("db", "db.sales"):
        nessie.ok("content", "put", namespace, "--type", "namespace", "-m", f"add {namespace}")
    tables = (
        "db.orders",
        "db.items",
        "db.customers",
        "db.sales.orders",
        "db.sales.items",
        "db.sales.units",
    )
    for key in tables:
        table(nessie, key, 1, "-m", f"add {key}")
    nessie.ok("tag", "v1.2")
    nessie.ok("tag", "v1")
    for number, key in enumerate(tables[:4], 2):
        table(nessie, key, number, "-m", f"nightly load {number}")
    table(nessie, "db.sales.orders", 6)
    table(nessie, "db.sales.items", 6)
    nessie.ok("commit", "-m", "nightly load 6")
    table(nessie, "db.rates", 1, "-m", "add db.rates")
    table(nessie, "db.sales.units", 9, "-m", "count units anew")
    nessie.ok("branch", "feature")
    nessie.ok("branch", "release")
    for number, key in enumerate(("db.sales.items", "db.sales.orders", "db.customers"), 20):
        table(nessie, key, number, "-m", f"feature: {key}", "--ref", "feature")
    (nessie.folder / "other/.nessie").mkdir(parents=True)
    (nessie.folder / "other/.nessie/config.toml").write_text('store = "../.nessie/store.sqlite"\n')
    files(nessie.folder)


def files(folder: Path) -> None:
    """Creates the files that examples read, and programs that do nothing."""
    (folder / "bin").mkdir()
    for program in ("pytest", "python", "spark-submit"):
        (folder / "bin" / program).write_text("#!/bin/sh\n")
        (folder / "bin" / program).chmod(0o755)
    (folder / "checks").mkdir()
    (folder / "checks" / "orders.sql").write_text("SELECT 1 WHERE false\n")
    (folder / "message.txt").write_text("nightly load\n\nOne line more.\n")
    table_ = '{"type": "ICEBERG_TABLE", "metadataLocation": "s3://lake/x.json", "snapshotId": 5, "schemaId": 0, "specId": 0, "sortOrderId": 0}'
    (folder / "orders.json").write_text(table_)
    (folder / "operations.json").write_text(
        f'[{{"type": "PUT", "key": {{"elements": ["bulk"]}}, "content": {table_}}}]'
    )
    metadata = json.loads((ROOT / "tests/manual/table-metadata.json").read_text())
    # The examples put this file with many snapshots.
    ids = {one["snapshot-id"] for one in metadata["snapshots"]}
    metadata["snapshots"] += [
        metadata["snapshots"][0] | {"snapshot-id": number}
        for number in range(100)
        if number not in ids
    ]
    (folder / "00002.json").write_text(json.dumps(metadata))
