"""The part of the store contract about the records of runs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from nessie_cli.errors import DamagedObject
from nessie_cli.store.base import Store
from nessie_cli.store.records import StoredRun
from tests.store.samples import create, write

FIRST = StoredRun("20261130-0200-a", "running", b'{"id": "a"}', 1)
SECOND = StoredRun("20261130-0200-b", "failed", b"\x00\xff", 1)


def next_of(run: StoredRun, state: str = "ready") -> StoredRun:
    """The next version of a record."""
    return StoredRun(run.id, state, run.data + b"!", run.version + 1)


class RunContract:
    def test_a_run_is_returned_unchanged(self, store: Store) -> None:
        assert store.runs.get(FIRST.id) is None
        assert store.runs.all() == []
        assert store.runs.put(SECOND)
        assert store.runs.put(FIRST)
        assert [store.runs.get(run.id) for run in (FIRST, SECOND)] == [FIRST, SECOND]

    def test_runs_are_listed_by_id_and_by_state(self, store: Store) -> None:
        for run in (SECOND, FIRST):
            store.runs.put(run)
        assert store.runs.all() == [FIRST, SECOND]
        assert store.runs.all("failed") == [SECOND]
        assert store.runs.all("ready") == []

    def test_each_run_is_yielded_once_and_a_few_are_read_at_a_time(self, store: Store) -> None:
        runs = [replace(FIRST, id=f"r{number:03}") for number in range(130)]
        for run in (*runs, SECOND):
            store.runs.put(run)
        assert list(store.runs.each()) == store.runs.all()
        assert list(store.runs.each(FIRST.state)) == store.runs.all(FIRST.state)
        assert list(store.runs.each("ready")) == []
        # A run that is deleted meanwhile is not among those that are read later.
        reading = store.runs.each(FIRST.state)
        assert next(reading) == runs[0]
        for run in runs[100:]:
            store.runs.delete(run.id)
        assert [*reading] == runs[1:100]

    def test_a_run_is_stored_only_as_the_next_version(self, store: Store) -> None:
        second = next_of(FIRST)
        assert not store.runs.put(second), "there is no first version"
        assert store.runs.get(FIRST.id) is None
        assert store.runs.put(FIRST)
        assert not store.runs.put(StoredRun(FIRST.id, "failed", b"another", 1)), "it exists"
        assert not store.runs.put(next_of(second)), "the second version is not there"
        assert store.runs.get(FIRST.id) == FIRST
        assert store.runs.put(second)
        assert not store.runs.put(next_of(FIRST, "failed")), "another writer was faster"
        assert store.runs.get(FIRST.id) == second
        assert store.runs.all("running") == []

    def test_one_of_several_writers_of_a_version_wins(self, store: Store) -> None:
        with ThreadPoolExecutor(4) as threads:
            for version in range(1, 6):
                runs = [
                    StoredRun(FIRST.id, f"state {writer}", b"%d" % writer, version)
                    for writer in range(4)
                ]
                stored = list(threads.map(store.runs.put, runs))
                assert stored.count(True) == 1
                assert store.runs.get(FIRST.id) == runs[stored.index(True)]

    def test_a_deleted_run_is_gone(self, store: Store) -> None:
        for run in (FIRST, SECOND):
            store.runs.put(run)
        store.runs.delete(FIRST.id)
        store.runs.delete(FIRST.id)
        assert store.runs.all() == [SECOND]
        assert not store.runs.put(next_of(FIRST))
        assert store.runs.put(FIRST)

    def test_a_store_without_the_table_of_runs_is_dumped_and_loaded(
        self, store: Store, other: Store
    ) -> None:
        write(store, create("main", "0"))
        self.drop_runs()
        with store.dump() as dump:
            assert list(dump.runs()) == []
            other.load(dump)
        assert other.runs.all() == []

    def test_a_damaged_record_of_a_running_run_is_named(self, store: Store, other: Store) -> None:
        store.runs.put(FIRST)
        with store.dump() as dump, pytest.raises(DamagedObject, match=f"run {FIRST.id} cannot"):
            other.load(dump)
        assert other.runs.all() == []

    def test_a_write_of_a_run_makes_no_other_write_stale(self, store: Store) -> None:
        before = store.settings()
        store.runs.put(FIRST)
        assert store.settings() == before

    def test_a_store_without_the_table_of_runs_gets_it(self, store: Store) -> None:
        self.drop_runs()
        assert store.runs.get(FIRST.id) is None
        assert store.runs.all() == store.runs.all("running") == []
        store.runs.delete(FIRST.id)
        assert not store.runs.put(next_of(FIRST))
        assert store.runs.put(FIRST)
        assert store.runs.get(FIRST.id) == FIRST

    def drop_runs(self) -> None:
        """Makes the store one of a version without runs."""
        raise NotImplementedError
