"""Listing the files below a local location."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nessie_cli.gc.listing import Listed, Unlisted, files_below
from nessie_cli.gc.removal import RemovalCandidate, RemovalOutcome, RemovalScope, Remover


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake house" / "t%20x"
    (folder / "data" / "day=1").mkdir(parents=True)
    (folder / "data" / "day=1" / "a b.parquet").write_text("1234")
    (folder / "ä.json").write_text("12")
    (tmp_path / "secret").write_text("x")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "data" / "loop").symlink_to(folder)
    return folder


@pytest.mark.parametrize("form", ["{}", "{}/", "file:{}", "file://{}", "file://{}/"])
def test_every_file_is_listed_once_in_the_form_of_its_base_and_no_link_followed(lake, form):
    base = form.format(lake)
    found = sorted(files_below(base, {}))
    stem = base.rstrip("/")
    assert [(one.location, one.size) for one in found if isinstance(one, Listed)] == [
        (f"{stem}/data/day=1/a b.parquet", 4),
        (f"{stem}/ä.json", 2),
    ]
    assert len(found) == 2


def test_the_time_is_exact_to_the_microsecond(lake):
    path = lake / "ä.json"
    (found,) = [one for one in files_below(str(lake), {}) if one.location == str(path)]
    assert isinstance(found, Listed)
    assert (
        int(found.modified.timestamp() * 1_000_000) // 1000 == path.stat().st_mtime_ns // 1_000_000
    )


def test_a_missing_base_has_no_files_and_a_base_that_is_a_file_is_reported(lake):
    assert list(files_below(str(lake / "nothing"), {})) == []
    assert list(files_below(str(lake / "ä.json"), {})) == [
        Unlisted(str(lake / "ä.json"), "is not a folder")
    ]


def test_a_failed_listing_is_reported_and_the_rest_continues(lake):
    deep = lake / "deep"
    deep.mkdir()
    name = "d" * 200
    place = deep
    # Not even root can list a path beyond the limit of the system, but it can be made step by step.
    before = os.open(".", os.O_RDONLY)
    try:
        os.chdir(deep)
        for _ in range(22):
            Path(name).mkdir()
            os.chdir(name)
    finally:
        os.fchdir(before)
        os.close(before)
    found = list(files_below(str(lake), {}))
    unlisted = [one for one in found if isinstance(one, Unlisted)]
    assert len(unlisted) == 1
    assert unlisted[0].message == "File name too long"
    assert unlisted[0].location.startswith(str(place))
    assert len(found) == 3
    shutil.rmtree(deep)


def test_an_unknown_scheme_is_reported():
    (found,) = files_below("nowhere://x/y", {})
    assert isinstance(found, Unlisted)
    assert "nowhere" in found.message


def test_other_schemes_are_listed_by_fsspec():
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe({"/lake/t/data/a": b"12", "/lake/t/b": b"1"})
    try:
        found = sorted(files_below("memory://lake/t", {}))
        assert [(one.location, one.size) for one in found] == [
            ("memory://lake/t/b", 1),
            ("memory://lake/t/data/a", 2),
        ]
    finally:
        memory.rm("/lake", recursive=True)


def test_a_file_without_a_known_time_is_compared_by_its_size():
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe({"/lake/t/a": b"12", "/lake/t/b": b"1"})
    try:
        found = [
            RemovalCandidate(
                f"memory://lake/t/{name}", 2, datetime(2023, 1, 1, tzinfo=UTC), "memory://lake/t"
            )
            for name in "ab"
        ]
        removed = Remover(RemovalScope(["memory://lake/t"]), {}).remove(found)
        assert [one.outcome for one in removed] == [RemovalOutcome.DELETED, RemovalOutcome.CHANGED]
        assert memory.find("/lake") == ["/lake/t/b"]
    finally:
        memory.rm("/lake", recursive=True)
