"""Progress of long verbs: it grows, never exceeds the total, and changes no result."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nessie_cli import CommitMeta, ContentKey, Delete, IcebergTable, Put, connect, create
from nessie_cli.model import ReferenceType
from nessie_cli.model.progress import FEW, with_progress
from tests.repository.plans import plan

MANY = 2 * FEW
KEYS = [ContentKey((f"t{number:05}",)) for number in range(MANY)]


class Recorded(list[tuple[int, int | None]]):
    """Records all progress, in order."""

    def __call__(self, done: int, total: int | None) -> None:
        self.append((done, total))

    @property
    def totals(self) -> set[int | None]:
        return {total for _, total in self}

    @property
    def numbers(self) -> list[int]:
        return [done for done, _ in self]


@pytest.fixture
def path(tmp_path):
    """A store with many tables, half of which are missing on a branch; main has moved on since."""
    path = str(tmp_path / "store.sqlite")
    with create(path) as repository:
        puts = [
            Put(key, IcebergTable(metadata_location="s3://x", snapshot_id=number))
            for number, key in enumerate(KEYS)
        ]
        head = repository.commit("main", puts, CommitMeta("all")).reference.hash
        repository.create_reference(ReferenceType.BRANCH, "dev", head)
        repository.commit("dev", [Delete(key) for key in KEYS[::2]], CommitMeta("half"))
        repository.commit("main", [Delete(KEYS[1])], CommitMeta("one less"))
    return path


def history(repository) -> str:
    """Creates a branch of many commits; returns its name."""
    repository.create_reference(ReferenceType.BRANCH, "long", repository.reference("main").hash)
    calls = [
        plan(
            lambda c, number=number: c.repository.commit(
                "long", [Delete(KEYS[number])], CommitMeta(str(number))
            )
        )
        for number in range(2, FEW + 102)
    ]
    assert not [answer for answer in repository.commit_all(calls) if isinstance(answer, Exception)]
    return "long"


VERBS: dict[str, tuple[Callable, int]] = {
    "commit": (
        lambda r: r.commit("main", [Delete(key) for key in KEYS[2:]], CommitMeta("less")),
        2 * (MANY - 2),
    ),
    "merge": (lambda r: r.merge("main", "dev"), MANY // 2),
    "transplant": (lambda r: r.transplant("main", [r.reference("dev").hash]), 1),
    "entries": (lambda r: list(r.entries("main")), MANY - 1),
}


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_report_progress(path, verb):
    call, total = VERBS[verb]
    recorded = Recorded()
    with connect(path, progress=recorded) as repository:
        call(repository)

    known = [(done, of) for done, of in recorded if of == total]
    assert known
    assert known == sorted(known)
    assert all(0 <= done <= total for done, _ in known)


def test_a_check_reports_progress_and_the_same_problems(path):
    recorded = Recorded()
    with connect(path, progress=recorded) as repository:
        long = history(repository)
        recorded.clear()
        assert list(repository.check()) == []
        checked = Recorded(recorded)
        recorded.clear()
        assert len(list(repository.log(long))) == FEW + 102

    [total] = checked.totals
    assert total is not None
    assert checked.numbers == sorted(checked.numbers)
    assert total / 2 < checked.numbers[-1] < total
    assert recorded.totals == {FEW + 102}
    assert recorded.numbers == list(range(0, FEW + 102, 100))


def test_a_merge_reports_progress_before_the_total_is_known(path):
    recorded = Recorded()
    with connect(path, progress=recorded) as repository:
        repository.merge("main", "dev")

    assert recorded[0] == (0, None)
    assert (FEW - 100, None) in recorded


def test_short_work_reports_no_progress():
    recorded = Recorded()
    few, many = list(range(FEW - 1)), list(range(FEW))

    assert with_progress(few, recorded, len(few)) is few
    assert with_progress(many, None, len(many)) is many
    assert list(with_progress(many, recorded, len(many))) == many
    assert recorded.numbers == list(range(0, FEW, 100))
