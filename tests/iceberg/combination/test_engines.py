"""Reading and encoding manifests elsewhere gives the same table."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.combination import engines as local
from nessie_cli.iceberg.combination.engines import Engine, LocalEngine, ManifestJob, Read
from tests.iceberg.combination.engines import Sides, manifests_of, random_sides, result_of
from tests.iceberg.combination.test_combination import Lake, append, delete

J = TypeVar("J", bound=ManifestJob)
R = TypeVar("R")


class Pickling(Engine):
    """Sends each job and its result through bytes, as to another process."""

    def __init__(self, read: Read) -> None:
        self._read = read

    def map(self, work: Callable[[Read, J], R], jobs: Sequence[J]) -> Iterator[R]:
        for data in [pickle.dumps((work, job)) for job in jobs]:
            task, job = pickle.loads(data)
            yield pickle.loads(pickle.dumps(task(self._read, job)))


@pytest.mark.parametrize("seed", range(6))
def test_the_result_does_not_depend_on_the_engine(tmp_path: Path, seed: int) -> None:
    lake = Lake(tmp_path, 1 + seed % 2)
    sides = random_sides(lake, random.Random(seed))
    assert result_of(lake, sides, Pickling(lake.read)) == result_of(lake, sides)


def test_new_manifests_keep_the_statistics_of_their_files(tmp_path: Path) -> None:
    lake = Lake(tmp_path, 2)
    ours, theirs = lake.branch("ours", append(10)), lake.branch("theirs", append(20), delete(2))
    files = {
        entry.file.path: entry.file.row
        for location in (lake.base, ours, theirs)
        for manifest in manifests_of(lake._document(location)["snapshots"][-1]["manifest-list"])
        for entry in manifest.entries
    }
    result = result_of(lake, Sides(lake.base, ours, theirs))
    rows = {identity.path: row for each in result.entries for _, identity, _, _, row in each}
    assert len(rows) == 4
    assert all(row == files[path] and row["lower_bounds"] for path, row in rows.items())


def test_a_merge_opens_each_manifest_once(tmp_path: Path) -> None:
    lake = Lake(tmp_path, 2)
    ours, theirs = lake.branch("ours", append(10)), lake.branch("theirs", append(20), delete(2))
    lake.read_files.clear()
    result_of(lake, Sides(lake.base, ours, theirs))
    assert set(lake.read_files.values()) == {1}


def test_many_manifests_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path, 2)
    sides = Sides(lake.base, lake.branch("ours", append(10)), lake.branch("theirs", append(20)))
    expected = result_of(lake, sides)
    monkeypatch.setattr(local, "MOST_REMEMBERED", 0)
    lake.read_files.clear()
    assert result_of(lake, sides, LocalEngine(lake.read)) == expected
    assert max(lake.read_files.values()) == 2


def test_a_missing_manifest_is_named(tmp_path: Path) -> None:
    lake = Lake(tmp_path, 2)
    sides = Sides(lake.base, lake.branch("ours", append(10)), lake.branch("theirs", append(20)))

    def read(location: str) -> bytes:
        raise InvalidInput(f"{location}: no such file")

    with pytest.raises(InvalidInput, match=r"\.avro: no such file"):
        result_of(lake, sides, Pickling(read))
