"""Long verbs tell how far they are: what is told grows, never passes the total, and changes
nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nessie_cli import CommitMeta, ContentKey, Delete, IcebergTable, Put, connect, create
from nessie_cli.model import ReferenceType
from nessie_cli.model.progress import FEW, with_progress
from tests.repository.plans import plan

MANY = 2 * FEW
KEYS = [ContentKey((f"t{number:05}",)) for number in range(MANY)]


class Heard(list[tuple[int, int | None]]):
    """All that was told, in order."""

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
    """A store with many tables, of which half are gone on a branch that a commit of main has left
    behind."""
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
    """A branch of many commits; its name."""
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
def test_a_verb_tells_how_far_it_is(path, verb):
    call, total = VERBS[verb]
    heard = Heard()
    with connect(path, progress=heard) as repository:
        call(repository)

    known = [(done, of) for done, of in heard if of == total]
    assert known
    assert known == sorted(known)
    assert all(0 <= done <= total for done, _ in known)


def test_a_check_tells_how_far_it_is_and_finds_what_it_finds_otherwise(path):
    heard = Heard()
    with connect(path, progress=heard) as repository:
        long = history(repository)
        heard.clear()
        assert list(repository.check()) == []
        checked = Heard(heard)
        heard.clear()
        assert len(list(repository.log(long))) == FEW + 102

    [total] = checked.totals
    assert total is not None
    assert checked.numbers == sorted(checked.numbers)
    assert total / 2 < checked.numbers[-1] < total
    assert heard.totals == {FEW + 102}
    assert heard.numbers == list(range(0, FEW + 102, 100))


def test_a_merge_counts_before_it_knows_how_much_there_is(path):
    heard = Heard()
    with connect(path, progress=heard) as repository:
        repository.merge("main", "dev")

    assert heard[0] == (0, None)
    assert (FEW - 100, None) in heard


def test_few_things_are_not_told_of_and_nobody_who_listens_costs_nothing():
    heard = Heard()
    few, many = list(range(FEW - 1)), list(range(FEW))

    assert with_progress(few, heard, len(few)) is few
    assert with_progress(many, None, len(many)) is many
    assert list(with_progress(many, heard, len(many))) == many
    assert heard.numbers == list(range(0, FEW, 100))
