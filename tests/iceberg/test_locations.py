"""Normal forms of locations: all spellings of one file have the same form."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.locations import LocationSet, is_inside, normalised

SPELLINGS = {
    "/lake/db/t/f.parquet": [
        "/lake/db/t/f.parquet",
        "file:/lake/db/t/f.parquet",
        "file:///lake/db/t/f.parquet",
        "file://localhost/lake/db/t/f.parquet",
        "FILE:/lake/db/t/f.parquet",
        "/lake//db/t///f.parquet",
        "file:/lake/db/./t/f.parquet",
        "/lake/db/x/../t/f.parquet",
    ],
    "/lake/db": ["/lake/db/", "file:///lake/db/", "/lake/db//", "/lake/db/.", "/lake/db/t/.."],
    "/": ["/", "file:///", "//"],
    "/lake/a b/100%25=c%20d": ["/lake/a b/100%25=c%20d", "file:/lake/a b/100%25=c%20d"],
    "s3://bucket/a/b": [
        "s3://bucket/a/b",
        "s3a://bucket/a/b",
        "s3n://bucket/a/b",
        "S3://bucket/a/b",
        "s3://bucket//a///b",
        "s3a://bucket/a/b/",
    ],
    "s3://bucket/k=a%2Fb/x y": ["s3://bucket/k=a%2Fb/x y", "s3a://bucket/k=a%2Fb/x y"],
    "/lake/x?y#z": ["/lake/x?y#z", "file:/lake/x?y#z"],
    "s3://bucket": ["s3://bucket", "s3://bucket/"],
    "abfs://c@account.dfs.core.windows.net/a": [
        "abfss://c@account.dfs.core.windows.net/a",
        "abfs://c@account.dfs.core.windows.net/a",
    ],
    "gs://bucket/a": ["gs://bucket/a", "gcs://bucket//a"],
    "hdfs:///a/b": ["hdfs:///a/b", "hdfs:/a/b"],
    "hdfs://node:8020/a": ["hdfs://node:8020/a"],
}


@pytest.mark.parametrize(("normal", "spellings"), SPELLINGS.items())
def test_all_spellings_of_a_location_have_one_normal_form(
    normal: str, spellings: list[str]
) -> None:
    assert {normalised(spelling) for spelling in spellings} == {normal}
    assert normalised(normal) == normal


def test_different_files_stay_different() -> None:
    different = [
        *SPELLINGS,
        "s3://bucket2/a/b",
        "s3://bucket/a/B",
        "/lake/db/t/F.parquet",
        "/lake/db/t/f.parquet%20",
    ]
    assert len({normalised(location) for location in different}) == len(different)


@pytest.mark.parametrize(
    "location",
    ["lake/t", "file:lake/t", "file://other-host/lake/t", "", "s3://lake/t/x?y", "s3://lake/t/x#1"],
)
def test_a_relative_or_ambiguous_location_is_refused(location: str) -> None:
    with pytest.raises(InvalidInput):
        normalised(location)


def test_a_file_below_a_symbolic_link_has_one_normal_form(tmp_path: Path) -> None:
    (tmp_path / "real/t").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert normalised(f"{tmp_path}/link/t/f") == normalised(f"file:{tmp_path}/real/t/f")
    assert normalised(f"{tmp_path}/link") == normalised(f"{tmp_path}/link/t/.."), (
        "a base is a folder, and followed as one"
    )


def test_a_percent_encoded_name_means_the_existing_file(tmp_path: Path) -> None:
    (tmp_path / "a b").touch()
    assert normalised(f"file://{tmp_path}/a%20b") == normalised(f"{tmp_path}/a b")
    (tmp_path / "a%20b").touch()
    assert normalised(f"file://{tmp_path}/a%20b") == f"{normalised(str(tmp_path))}/a%20b"


def test_inside_is_by_whole_names() -> None:
    assert is_inside("/lake/t/f", "/lake/t")
    assert is_inside("/lake/t", "/lake/t")
    assert is_inside("/lake/t", "/")
    assert not is_inside("/lake/tables/f", "/lake/t")
    assert not is_inside("/lake", "/lake/t")


def test_places_agree_with_a_plain_search() -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    names = ["a", "a-b", "a/b", "a.b", "ab", "b"]
    for _ in range(300):
        bases = {
            f"s3://{'/'.join(chance.choices(names, k=chance.randint(1, 3)))}"
            for _ in range(chance.randint(0, 8))
        }
        places = LocationSet(bases)
        outermost = {
            base
            for base in bases
            if not any(is_inside(base, other) and base != other for other in bases)
        }
        assert set(places.outermost) == outermost, f"seed {seed}"
        for _ in range(20):
            location = f"s3://{'/'.join(chance.choices(names, k=chance.randint(1, 4)))}"
            expected = next((base for base in outermost if is_inside(location, base)), None)
            assert places.around(location) == expected, f"seed {seed}"
