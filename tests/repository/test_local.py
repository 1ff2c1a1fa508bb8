"""Promises of the embedded repository only: counted reads, wrong clocks, several programs on
one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest

from nessie_cli.errors import InvalidInput, ReferenceConflict
from nessie_cli.model import CommitMeta, KeyRange, ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.repository.local import LocalRepository
from nessie_cli.repository.opening import connect, create
from nessie_cli.repository.snapshot import Context
from nessie_cli.store.base import Store
from nessie_cli.store.opening import open_store
from nessie_cli.store.records import Outcome, Write
from tests.repository.vocabulary import EMPTY, Catalog, key, put, table

SIZE = 5_000
BRANCHES = 300
COMMITS = 400


class Counting:
    """A store that counts the objects read from and written to a real one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reads = self.written = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        self.reads += len(ids)
        return self._store.get(ids)

    def written_before(self, id_: bytes, kind: int, limit: int) -> dict[bytes, bytes]:
        found = self._store.written_before(id_, kind, limit)
        self.reads += len(found)
        return found

    def commit(
        self, writes: Sequence[Write], *, lease: str = "", end_lease: bool = False
    ) -> list[Outcome]:
        self.written += sum(len(write.objects) for write in writes)
        return self._store.commit(writes, lease=lease, end_lease=end_lease)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with thousands of keys, hundreds of commits and branches."""
    path = tmp_path_factory.mktemp("large") / "store.sqlite"
    with create(str(path)) as repository:
        catalog = Catalog(repository)
        catalog.commit("main", *(put(f"t{n:05}", table(n)) for n in range(SIZE)))
        hashes = [catalog.write("main", {f"t{n:05}": 1}) for n in range(COMMITS)]
        for n in range(BRANCHES):
            repository.create_reference(ReferenceType.BRANCH, f"b{n:03}", hashes[n])
    return path


@pytest.fixture
def counted(large: Path, tmp_path: Path) -> Iterator[tuple[Counting, Catalog]]:
    """A repository with empty caches on a copy of the file."""
    copy = tmp_path / "store.sqlite"
    copy.write_bytes(large.read_bytes())
    store = Counting(open_store(str(copy)))
    context = Context("", lambda: 2_000_000_000_000_000, os.urandom)
    with LocalRepository(store, context) as repository:
        store.reads = store.written = 0
        yield store, Catalog(repository)


def test_listing_references_reads_no_commits(counted: tuple[Counting, Catalog]) -> None:
    store, catalog = counted
    assert len(list(catalog.repository.references())) == BRANCHES + 1
    assert len(list(islice(catalog.repository.references(prefix="b1"), 10))) == 10
    assert catalog.repository.reference("b007").hash
    assert store.reads == 0


def test_metadata_of_references_reads_few_commits_for_each(
    counted: tuple[Counting, Catalog],
) -> None:
    store, catalog = counted
    assert len(list(islice(catalog.repository.references(metadata=True), 10))) == 10
    assert store.reads <= 10 * 40


READS: list[tuple[str, Callable[[Repository], Any], int]] = [
    ("log of twenty", lambda r: list(islice(r.log("main"), 20)), 25),
    ("one key", lambda r: r.content("main", key("t02500")), 1 + 3 + 1),
    (
        "ten keys",
        lambda r: r.contents("main", [key(f"t{n:05}") for n in range(0, SIZE, 500)]),
        1 + 30 + 10,
    ),
    ("a prefix", lambda r: list(r.entries("main", KeyRange(prefix=key("t02500")))), 1 + 5),
    ("a page", lambda r: list(islice(r.entries("main"), 20)), 1 + 3 + 64),
    ("predecessor", lambda r: r.resolve(f"main~{COMMITS - 3}"), 30),
    ("ancestor", lambda r: r.is_ancestor("b000", "main"), 35),
    ("diff of ten", lambda r: list(r.diff("main~10", "main")), 70),
    ("diff with itself", lambda r: list(r.diff("main", "main")), 2),
    ("merge base", lambda r: r.merge_base("main~10", "main"), 30),
    ("last change", lambda r: r.last_change("main", key(f"t{COMMITS - 5:05}")), 12),
]


@pytest.mark.parametrize(("what", "read", "most"), READS, ids=[name for name, _, _ in READS])
def test_the_number_of_objects_read_is_limited(
    counted: tuple[Counting, Catalog], what: str, read: Callable[[Repository], Any], most: int
) -> None:
    store, catalog = counted
    read(catalog.repository)
    assert 0 < store.reads <= most, what


def test_a_commit_of_one_key_reads_and_writes_few_objects(
    counted: tuple[Counting, Catalog],
) -> None:
    store, catalog = counted
    old = catalog.content("main", "t02500")
    store.reads = 0
    catalog.commit("main", put("t02500", table(77, old.id)))
    assert store.reads <= 8
    assert store.written <= 1 + 1 + 3


def test_a_content_that_is_only_compared_is_not_stored(counted: tuple[Counting, Catalog]) -> None:
    store, catalog = counted
    old = catalog.content("main", "t02500")
    before = store.written
    catalog.commit("main", put("t02500", table(77, old.id), expected=old))
    assert store.written - before <= 1 + 1 + 3
    never, objects = table(123_456, old.id), len(list(store.scan()))
    with pytest.raises(ReferenceConflict) as refused:
        catalog.commit("main", put("t02500", table(78, old.id), expected=never))
    # The expected content is shown, although it was never stored.
    assert refused.value.conflicts[0].expected == never
    assert len(list(store.scan())) == objects


def test_the_cost_of_a_merge_depends_on_the_changes(counted: tuple[Counting, Catalog]) -> None:
    store, catalog = counted
    catalog.branch("dev")
    catalog.write("dev", {f"t{n:05}": 2 for n in range(1000, 1100, 10)})
    catalog.write("main", {f"t{n:05}": 3 for n in range(2000, 2100, 10)})
    store.reads = store.written = 0
    catalog.merge("dev")
    assert store.reads <= 20 * 3 + 10
    assert store.written <= 10 * 3 + 1


# -- clock and committer --


@pytest.mark.parametrize(
    "clock",
    [lambda: 1_700_000_000_000_000, iter(range(2_000_000_000_000_000, 0, -1_000_000_000)).__next__],
    ids=["stands", "backwards"],
)
def test_commit_times_grow_even_if_the_clock_does_not(clock: Callable[[], int]) -> None:
    with create("memory:", clock=clock) as repository:
        catalog = Catalog(repository)
        for n in range(10):
            catalog.write("main", {"a": n})
        catalog.branch("dev")
        catalog.write("dev", {"b": 1})
        catalog.write("main", {"c": 1})
        catalog.merge("dev")
        entries = catalog.log()
        assert all(
            newer.meta.commit_time > older.meta.commit_time for newer, older in pairwise(entries)
        )  # type: ignore[operator]
        for entry in entries:
            assert catalog.hash(f"main*{entry.meta.commit_time.isoformat()}") == entry.hash  # type: ignore[union-attr]


def test_the_committer_is_given_on_opening(tmp_path: Path) -> None:
    with create(f"{tmp_path}/store.sqlite", who="ann <ann@example.org>") as repository:
        catalog = Catalog(repository)
        catalog.write("main", {"a": 1})
        meta = catalog.top().meta
        assert (meta.committer, meta.authors) == (
            "ann <ann@example.org>",
            ("ann <ann@example.org>",),
        )
        assert next(repository.reflog()).who == "ann <ann@example.org>"


def test_the_default_branch_may_have_another_name() -> None:
    with create("memory:", default_branch="trunk") as repository:
        assert repository.config().default_branch == "trunk"
        assert repository.resolve("-").name == "trunk"
        with pytest.raises(InvalidInput, match="Default branch 'trunk' cannot be deleted"):
            repository.delete_reference("trunk", expected_hash=EMPTY)


# -- several programs on one file --


def test_several_processes_see_each_others_changes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.sqlite"
    with create(url) as first, connect(url) as second:
        ours, theirs = Catalog(first), Catalog(second)
        head = ours.write("main", {"a": 1})
        assert theirs.head() == head
        assert theirs.numbers() == {"a": 1}
        theirs.write("main", {"a": 2})
        assert ours.numbers() == {"a": 2}
        theirs.branch("dev")
        assert ours.repository.reference("dev").hash == theirs.head()
        second.put_setting("require-expected-content", "true")
        assert first.config().settings["require-expected-content"] == "true"
        with pytest.raises(InvalidInput):
            ours.write("main", {"a": 3})


def test_concurrent_commits_to_one_branch_are_not_lost(tmp_path: Path) -> None:
    url = f"{tmp_path}/store.sqlite"
    create(url).close()

    def work(number: int) -> list[str]:
        with connect(url) as repository:
            catalog = Catalog(repository)
            return [
                catalog.commit("main", put(f"k{number}-{n}", table(n)), message=f"{number} {n}")
                for n in range(12)
            ]

    with ThreadPoolExecutor(6) as pool:
        made = [hash_ for hashes in pool.map(work, range(6)) for hash_ in hashes]
    with connect(url) as repository:
        catalog = Catalog(repository)
        assert sorted(catalog.hashes()) == sorted(made)
        assert len(catalog.numbers()) == 72
        assert list(repository.check()) == []


def test_one_of_several_concurrent_changes_of_a_key_wins(tmp_path: Path) -> None:
    url = f"{tmp_path}/store.sqlite"
    with create(url) as repository:
        start = Catalog(repository).write("main", {"k": 0})
        content_id = Catalog(repository).id("main", "k")

    def work(number: int) -> bool:
        with connect(url) as repository:
            try:
                repository.commit(
                    "main",
                    [put("k", table(number, content_id))],
                    CommitMeta("m"),
                    expected_hash=start,
                )
            except ReferenceConflict as refused:
                return not refused.conflicts
            return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(work, range(1, 13))) == 1


def test_threads_may_share_one_repository() -> None:
    with create("memory:") as repository:
        catalog = Catalog(repository)

        def work(number: int) -> int:
            for n in range(10):
                catalog.commit("main", put(f"k{number}-{n}", table(n)))
                assert list(repository.entries("main"))
            return number

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        assert len(catalog.numbers()) == 40
        assert len(catalog.log()) == 40
        assert list(repository.check()) == []
