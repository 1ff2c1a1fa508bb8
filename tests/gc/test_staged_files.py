"""Garbage collection keeps the files of staged tables and of views."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from nessie_cli.model import ContentKey, IcebergView
from tests.gc.lakes import ROWS, Shore, candidates, now, shore
from tests.iceberg.test_catalog_views import version

GRACE = int(timedelta(days=3).total_seconds())


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Shore]:
    with shore(tmp_path) as made:
        yield made


def staged(lake: Shore, name: str) -> Any:
    """A transaction that creates a table, with files that are written and not committed."""
    creation = lake.on().create_table_transaction(("db", name), ROWS.schema)
    creation.append(ROWS)
    return creation


def age(folder: str | Path, days: int) -> list[Path]:
    """Makes all files in a folder older, and returns them."""
    found = [path for path in Path(folder).rglob("*") if path.is_file()]
    then = now().timestamp() - days * 86400
    for path in found:
        os.utime(path, (then, then))
    return found


def folder_of(creation: Any) -> Path:
    return Path(creation.table_metadata.location)


@pytest.fixture
def around(lake: Shore) -> Any:
    """A table whose location contains those of all others, so that their files are listed too."""
    table = lake.on().create_table("db.around", ROWS.schema, f"{lake.warehouse}/db")
    table.append(ROWS)
    return table


def planned(lake: Shore, grace: int = GRACE) -> list[str]:
    return candidates(lake.planned(lake.settings("1", grace=grace)))


def test_a_staged_table_in_its_own_folder_is_never_a_candidate(lake: Shore) -> None:
    """No content names its folder, so nothing lists it."""
    lake.on().create_table("db.other", ROWS.schema)
    creation = staged(lake, "new")
    assert len(age(folder_of(creation), 30)) > 2
    assert planned(lake, 0) == []


def test_a_staged_table_inside_of_another_one_is_spared_within_the_grace_period(
    lake: Shore, around: Any
) -> None:
    creation = staged(lake, "new")
    files = age(folder_of(creation), 2)
    assert len(files) > 2
    assert planned(lake) == []
    creation.commit_transaction()
    age(folder_of(creation), 30)
    assert planned(lake) == []
    assert len(lake.on().load_table("db.new").scan().to_arrow()) == len(ROWS)


def test_an_abandoned_staged_table_inside_of_another_one_goes_after_the_grace_period(
    lake: Shore, around: Any
) -> None:
    creation = staged(lake, "new")
    files = age(folder_of(creation), 4)
    assert sorted(planned(lake)) == sorted(map(str, files))


def test_a_staged_table_that_is_committed_after_the_plan_loses_no_file(
    lake: Shore, around: Any
) -> None:
    creation = staged(lake, "new")
    files = age(folder_of(creation), 4)
    run = lake.planned(lake.settings("1", grace=GRACE))
    assert len(candidates(run)) == len(files)
    creation.commit_transaction()
    assert lake.applied(run).counts["deleted"] == 0
    assert len(lake.on().load_table("db.new").scan().to_arrow()) == len(ROWS)


def test_a_staged_replacement_of_a_table_on_one_branch_takes_nothing_from_the_other(
    lake: Shore,
) -> None:
    """The table is dropped and created again on a branch; main still has the old one."""
    first = lake.on().create_table("db.t", ROWS.schema)
    first.append(ROWS)
    lake.branch_off("etl")
    lake.on("etl").drop_table("db.t")
    second = lake.on("etl").create_table("db.t", ROWS.schema)
    assert second.location() != first.location()
    second.append(ROWS)
    age(lake.warehouse, 30)
    needed = {
        *Path(first.location()).rglob("*.parquet"),
        *Path(second.location()).rglob("*.parquet"),
    }
    assert needed.isdisjoint(map(Path, planned(lake)))
    head = lake.repository.reference("etl").hash
    lake.repository.delete_reference("etl", expected_hash=head)
    gone = {Path(path) for path in planned(lake)}
    assert set(Path(second.location()).rglob("*.parquet")) <= gone
    assert gone.isdisjoint(Path(first.location()).rglob("*.parquet"))


# -- views -----------------------------------------------------------------------------------------


def view_on(lake: Shore, name: str, branch: str = "main") -> Path:
    """Creates a view, and returns its metadata file."""
    lake.on(branch).create_view(("db", name), ROWS.schema, version())
    content = lake.repository.content(branch, ContentKey(("db", name)))
    assert isinstance(content, IcebergView)
    return Path(content.metadata_location)


def test_a_view_is_kept_as_long_as_any_branch_has_it(lake: Shore) -> None:
    file = view_on(lake, "v")
    lake.branch_off("etl")
    lake.on().drop_view("db.v")
    age(lake.warehouse, 30)
    assert planned(lake, 0) == []
    lake.on("etl").drop_view("db.v")
    assert planned(lake, 0) == [str(file)]


def test_a_view_that_is_created_again_lies_elsewhere_and_the_old_one_goes(lake: Shore) -> None:
    old = view_on(lake, "v")
    lake.on().drop_view("db.v")
    new = view_on(lake, "v")
    assert new.parent != old.parent
    age(lake.warehouse, 30)
    assert planned(lake, 0) == [str(old)]


def test_a_metadata_file_of_a_view_that_no_commit_names_yet_is_spared(lake: Shore) -> None:
    """The server writes it before it commits."""
    committed = view_on(lake, "v")
    waiting = committed.with_name("00001-0a1b2c3d-0000-4000-8000-000000000000.metadata.json")
    waiting.write_bytes(committed.read_bytes())
    assert planned(lake) == []
    age(waiting.parent, 4)
    assert planned(lake) == [str(waiting)]
