"""A filtered log has exactly the matching entries of the whole log, on random histories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from nessie_cli.kernel.ancestry import AncestryIndex
from nessie_cli.kernel.objects import Cache, Objects
from nessie_cli.model import CommitMeta, LogEntry, MergeBehavior
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.repository.filtered_log import LogSource, search_log
from nessie_cli.repository.local import LocalRepository
from nessie_cli.repository.log_filter import LogFilter, Walk
from nessie_cli.repository.opening import create
from tests.repository.vocabulary import NS, Catalog, key, put, table
from tests.store.test_sqlite_damage import change

BRANCHES = ("main", "dev", "wild")


class History:
    """Some sixty commits by three writers on three branches that are merged into each other, and
    three ways to filter their logs."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        ticks = count(1_700_000_000_000_000, 1_000_000)
        made = create("memory:", clock=ticks.__next__)
        assert isinstance(made, LocalRepository)
        self.repository = made
        self.catalog = catalog = Catalog(self.repository)
        catalog.write("main", {"ns": NS, "a": 0, "ns.a": 0, "b": 0})
        for name in BRANCHES[1:]:
            catalog.branch(name)
        for number in range(1, 60):
            self._step(number)
        catalog.tag("v1", "dev~1")
        store = made._store
        objects = Objects(store.get, Cache())
        ancestry = AncestryIndex(objects, store.find_indexed, 1)
        self._source = LogSource(objects, store.find_indexed, ancestry.is_ancestor, short=0, rare=1)

    def _step(self, number: int) -> None:
        random = self.random
        branch = random.choice(BRANCHES)
        if random.random() < 0.2:
            source = random.choice([name for name in BRANCHES if name != branch])
            self.repository.merge(
                branch, source, MergeOptions(default_behavior=MergeBehavior.FORCE)
            )
            return
        name = random.choice(["a", "ns.a", "b", "c"])
        old = self.repository.contents(branch, [key(name)]).get(key(name))
        meta = CommitMeta(
            f"load {number % 7}", authors=random.choice([(), (f"w{number % 3}",), ("w0", "w1")])
        )
        self.repository.commit(branch, [put(name, table(number, old.id if old else None))], meta)

    def by_index(self, walk: Walk, conditions: LogFilter) -> Iterator[LogEntry | None]:
        """Uses the commit index and jump pointers wherever possible."""
        starts = (
            [r.hash for r in self.repository.references()]
            if walk.start is None
            else [self.catalog.hash(str(walk.start))]
        )
        exclude = [] if walk.exclude is None else [self.catalog.hash(str(walk.exclude))]
        ids = ([bytes.fromhex(hash_) for hash_ in some] for some in (starts, exclude))
        commits = search_log(self._source, *ids, walk, conditions, operations=False)
        return (commit.entry for commit in commits)

    def by_default(self, walk: Walk, conditions: LogFilter) -> Iterator[LogEntry | None]:
        """Uses the default implementation, without an index."""
        return Repository.filtered_log(self.repository, walk, conditions)

    def plain(self, walk: Walk) -> list[LogEntry]:
        """Returns all commits of a walk, newest first."""
        repository = self.repository
        if walk.start is None:
            found = [
                e
                for r in repository.references()
                for e in repository.log(r.hash, operations=True, all_parents=not walk.first_parent)
            ]
        elif walk.exclude is None:
            found = list(
                repository.log(walk.start, operations=True, all_parents=not walk.first_parent)
            )
        elif walk.first_parent:
            end = (
                repository.merge_base(walk.start, walk.exclude) if walk.symmetric else walk.exclude
            )
            found = [
                e
                for e in repository.log(walk.start, operations=True)
                if not repository.is_ancestor(e.hash, end)
            ]
        else:
            found = list(repository.log_excluding(walk.start, [walk.exclude], operations=True))
            if walk.symmetric:
                found += repository.log_excluding(walk.exclude, [walk.start], operations=True)
        return sorted(
            {entry.hash: entry for entry in found}.values(),
            key=lambda entry: (-time_of(entry).timestamp(), entry.hash),
        )

    def walk(self) -> Walk:
        """Returns a random walk."""
        random = self.random
        start = random.choice([*BRANCHES, "v1", f"main~{random.randrange(1, 9)}"])
        exclude = random.choice([*BRANCHES, "v1", "main~5"])
        return random.choice([
            Walk(start), Walk(start), Walk(start, first_parent=True), Walk(None), Walk(None, first_parent=True),
            Walk(start, exclude), Walk(start, exclude, symmetric=True),
            Walk(start, exclude, first_parent=True), Walk(start, exclude, symmetric=True, first_parent=True),
        ])  # fmt: skip

    def conditions(self) -> LogFilter:
        """Returns random conditions."""
        random = self.random
        times = sorted(map(time_of, self.plain(Walk(None))))

        def perhaps(value: Any, otherwise: Any) -> Any:
            return value if random.random() < 0.25 else otherwise

        return LogFilter(
            authors=perhaps((re.compile("w1|^e"),), ()),
            committers=perhaps((re.compile(random.choice(["et", "none"])),), ()),
            message=perhaps(re.compile(r"load [135]$"), None),
            since=perhaps(random.choice(times), None),
            until=perhaps(random.choice([*times, times[0] - timedelta(1)]), None),
            merges=perhaps(random.random() < 0.7, None),
            keys=tuple(
                map(key, perhaps(random.choice([["a"], ["ns"], ["ns.a", "b"], ["none"]]), []))
            ),
            skip=perhaps(random.randrange(4), 0),
        )


def time_of(entry: LogEntry) -> datetime:
    assert entry.meta.commit_time is not None
    return entry.meta.commit_time


def passing(entries: Iterable[LogEntry], conditions: LogFilter) -> list[str]:
    def passes(entry: LogEntry) -> bool:
        meta = entry.meta
        return (
            (
                not conditions.authors
                or any(
                    p.search(a)
                    for p in conditions.authors
                    for a in meta.authors or (meta.committer or "",)
                )
            )
            and (
                not conditions.committers
                or any(p.search(meta.committer or "") for p in conditions.committers)
            )
            and (conditions.message is None or bool(conditions.message.search(meta.message)))
            and (conditions.since is None or time_of(entry) >= conditions.since)
            and (conditions.until is None or time_of(entry) <= conditions.until)
            and (conditions.merges is None or (len(meta.parents) > 1) == conditions.merges)
            and (
                not conditions.keys
                or any(
                    o.key.starts_with(k) for o in entry.operations or () for k in conditions.keys
                )
            )
        )

    return [entry.hash for entry in entries if passes(entry)][conditions.skip :]


@pytest.mark.parametrize("seed", range(8))
def test_a_filtered_log_equals_the_filtered_whole_log(seed: int) -> None:
    history = History(seed)
    for _ in range(60):
        walk, conditions = history.walk(), history.conditions()
        wanted = passing(history.plain(walk), conditions)
        case = f"seed {seed}, {walk}, {conditions}"
        for filtered in (history.by_index, history.repository.filtered_log, history.by_default):
            assert [
                entry.hash for entry in filtered(walk, conditions) if entry is not None
            ] == wanted, case


@pytest.mark.parametrize(
    "conditions",
    [LogFilter(merges=True), LogFilter(keys=(key("a"),)), LogFilter(message=re.compile("load 1"))],
)
def test_only_the_last_entry_of_a_walk_is_marked_as_last(
    conditions: LogFilter,
) -> None:
    """A caller that stops at a limit learns whether more commits follow."""
    history = History(1)
    first = history.plain(Walk("main"))[-1].hash
    for filtered in (history.by_index, history.repository.filtered_log, history.by_default):
        entries = list(filtered(Walk("main"), conditions))
        for place, entry in enumerate(entries):
            assert entry is None or (place + 1 < len(entries)) == (entry.hash != first)


def test_operations_are_included_on_request() -> None:
    repository = History(2).repository
    for asked in (True, False):
        entries = [
            entry
            for entry in repository.filtered_log(
                Walk("main"), LogFilter(keys=(key("a"),)), operations=asked
            )
            if entry
        ]
        assert entries
        assert all(bool(entry.operations) == asked for entry in entries)


def test_a_rare_key_is_found_without_reading_other_commits() -> None:
    with create("memory:") as repository:
        assert isinstance(repository, LocalRepository)
        catalog = Catalog(repository)
        catalog.write("main", {"rare": 1})
        for number in range(300):
            catalog.write("main", {"often": number})
        objects = repository._objects = Objects(repository._store.get, Cache())
        entries = [
            entry
            for entry in repository.filtered_log(Walk("main"), LogFilter(keys=(key("rare"),)))
            if entry
        ]
        assert [entry.meta.message for entry in entries] == ["write rare"]
        assert objects.commit_reads < 30


def test_a_damaged_merge_outside_of_the_walk_is_not_read(tmp_path: Path) -> None:
    """Commits outside of the walk are not read."""
    path = tmp_path / "store.sqlite"
    with create(str(path)) as repository:
        catalog = Catalog(repository)
        catalog.write("main", {"a": 0})
        for name in ("dev", "wild"):
            catalog.branch(name)
            catalog.write(name, {name: 1})
        for number in range(700):
            catalog.write("main", {"b": number})
        catalog.merge("dev", "wild")
        catalog.merge("dev")
        damaged, dev, merged = catalog.head("wild"), catalog.head("dev"), catalog.head("main")
        catalog.branch("apart", "main~650")
        until = time_of(catalog.top("main~600"))
    change(str(path), f"UPDATE objects SET packed = x'0000000000ff' WHERE id = x'{damaged}'")
    with create(str(path)) as repository:
        assert isinstance(repository, LocalRepository)
        assert [
            e.hash for e in repository.filtered_log(Walk("main"), LogFilter(merges=True)) if e
        ] == [merged]
        assert [
            e.hash
            for e in repository.filtered_log(Walk("main"), LogFilter(keys=(key("dev"),)))
            if e
        ] == [merged, dev]
        assert (
            len([e for e in repository.filtered_log(Walk("main"), LogFilter(until=until)) if e])
            == 700 - 600 + 3
        )
        assert repository.merge_base("main~1", "dev") == repository.resolve("dev~1").hash
