"""The publication of runs whose target moves, and runs as blocks of Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from nessie_cli import connect, run
from nessie_cli.errors import InvalidInput, MergeConflict, ReferenceMoved
from nessie_cli.iceberg.catalog import NessieCatalog
from nessie_cli.model import CombinationRules, CommitMeta
from nessie_cli.model.runs import CheckResult, RunState
from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import create
from nessie_cli.runs import lifecycle
from nessie_cli.runs.combining import combine_by
from nessie_cli.runs.lifecycle import ActiveRun, RunPlan, begin, is_written_past, join
from nessie_cli.runs.publication import MOST_MERGES, ChecksFailed, check, publish
from tests.repository.vocabulary import namespace, put, view

SCHEMA = pa.schema([pa.field("id", pa.int64())])
META = CommitMeta("publish")


class Lake:
    """A store with the table db.t of the row 1, and a run into main."""

    def __init__(self, folder: Path) -> None:
        self.store, self.warehouse = str(folder / "store.sqlite"), str(folder / "lake")
        create(self.store).close()
        with self.catalog("main") as catalog:
            catalog.create_namespace("db")
            catalog.create_table("db.t", SCHEMA).append(self._rows(1))
        self.repository: Repository = connect(self.store, who="etl")

    def begin(self) -> ActiveRun:
        head = self.repository.reference("main").hash
        return begin(self.repository, RunPlan("main", head, checks=("command: true",)), "etl")

    def append(self, ref: str, id_: int, name: str = "db.t") -> None:
        with self.catalog(ref) as catalog:
            catalog.load_table(name).append(self._rows(id_))

    def ids(self, ref: str = "main", name: str = "db.t") -> list[int]:
        with self.catalog(ref) as catalog:
            return sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist())

    def publish(
        self, active: ActiveRun, checks: Callable[[str, str], Sequence[CheckResult]] | None
    ) -> str:
        """Checks and publishes as a session does."""
        check(active, checks or (lambda _head, _against: [passed()]))
        rules = CombinationRules()
        return publish(active, combine_by(self.repository, rules, {}), checks, META)

    def catalog(self, ref: str) -> closing[NessieCatalog]:
        catalog = NessieCatalog("lake", uri=self.store, warehouse=self.warehouse, ref=ref)
        return closing(catalog)

    def _rows(self, id_: int) -> pa.Table:
        return pa.table({"id": [id_]}, schema=SCHEMA)


def passed(*, passes: bool = True) -> CheckResult:
    return CheckResult("command: true", passes)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    found = Lake(tmp_path)
    yield found
    found.repository.close()


def test_a_combined_table_is_checked_again_before_it_is_published(lake: Lake) -> None:
    active, seen = lake.begin(), []
    lake.append(active.branch, 10)

    def checks(head: str, against: str) -> list[CheckResult]:
        seen.append((lake.ids(head), lake.ids(against), head))
        if len(seen) == 1:
            lake.append("main", 20)
        return [passed()]

    lake.publish(active, checks)
    assert [ids for *ids, _ in seen] == [[[1, 10], [1]], [[1, 10, 20], [1, 20]]]
    assert lake.ids() == [1, 10, 20]
    published = lake.repository.commit_at("main")
    assert published.meta.parents[1] == seen[1][2] == active.run.head, "exactly the checked commit"
    assert published.meta.message == "publish"


def test_a_second_check_that_fails_leaves_the_target(lake: Lake) -> None:
    active = lake.begin()
    lake.append(active.branch, 10)
    lake.append("main", 20)
    before = lake.repository.reference("main").hash
    with pytest.raises(ChecksFailed):
        lake.publish(active, lambda head, _: [passed(passes=20 not in lake.ids(head))])
    assert lake.repository.reference("main").hash == before


def test_a_target_that_moves_too_often(lake: Lake) -> None:
    active, numbers = lake.begin(), iter(range(20, 40))
    lake.append(active.branch, 10)

    def checks(_head: str, _against: str) -> list[CheckResult]:
        lake.append("main", next(numbers))
        return [passed()]

    with pytest.raises(ReferenceMoved, match="again and again: 3 times"):
        lake.publish(active, checks)
    assert next(numbers) == 20 + 1 + MOST_MERGES
    assert 10 not in lake.ids()
    # Later it is quiet.
    lake.publish(join(lake.repository, active.run.id), lambda _head, _against: [passed()])
    assert lake.ids() == [1, 10, 20, 21, 22, 23]


def empty_table_with_runs(lake: Lake, number: int) -> list[ActiveRun]:
    """Returns runs that began with an empty table, in which each has written a row."""
    with lake.catalog("main") as catalog:
        catalog.create_table("db.new", SCHEMA)
    runs = [lake.begin() for _ in range(number)]
    for row, active in enumerate(runs):
        lake.append(active.branch, row, "db.new")
    return runs


def test_runs_into_a_table_that_was_empty_combine_one_after_the_other(lake: Lake) -> None:
    """Each later run merges the target, publishes, and is merged by the next ones."""
    runs = empty_table_with_runs(lake, 4)
    late = iter(runs[1:3])

    def checks(_head: str, _against: str) -> list[CheckResult]:
        # While the last run is checked, others are published.
        if (other := next(late, None)) is not None:
            lake.publish(other, None)
        return [passed()]

    lake.publish(runs[0], None)
    lake.publish(runs[3], checks)
    assert lake.ids("main", "db.new") == [0, 1, 2, 3]
    assert all(active.run.state is RunState.PUBLISHED for active in runs)


def test_a_table_that_was_replaced_after_a_combination_does_not_combine(lake: Lake) -> None:
    """Its snapshots begin from scratch, so they do not show which rows the replacement removed."""
    runs = empty_table_with_runs(lake, 3)
    lake.publish(runs[0], None)
    lake.publish(runs[1], None)
    replaced = lake.begin()
    with lake.catalog(replaced.branch) as catalog:
        table = catalog.load_table("db.new")
        assert {snapshot.parent_snapshot_id for snapshot in table.metadata.snapshots} >= {None}
        catalog.drop_table("db.new")
        catalog.create_table("db.new", SCHEMA)
    lake.append(replaced.branch, 50, "db.new")
    lake.append("main", 60, "db.new")
    with pytest.raises(MergeConflict):
        lake.publish(replaced, None)
    assert lake.ids("main", "db.new") == [0, 1, 60]


def test_without_a_second_check_the_publication_combines(lake: Lake) -> None:
    active = lake.begin()
    lake.append(active.branch, 10)
    lake.append("main", 20)
    lake.publish(active, None)
    assert lake.ids() == [1, 10, 20]
    assert active.run.results == (passed(),)


def test_a_resumed_check_knows_what_the_branch_has_merged(lake: Lake) -> None:
    """The process was killed between the merge of main and the second check."""
    active = lake.begin()
    lake.append(active.branch, 10)
    lake.append("main", 20)
    before = lake.repository.reference("main").hash
    with pytest.raises(KeyboardInterrupt):
        lake.publish(active, Interrupting())
    seen: list[str] = []
    check(join(lake.repository, active.run.id), lambda _, against: seen.append(against) or [])
    assert seen == [before]


class Interrupting:
    """Checks that pass once, and are interrupted then."""

    def __init__(self) -> None:
        self._calls = 0

    def __call__(self, _head: str, _against: str) -> list[CheckResult]:
        self._calls += 1
        if self._calls > 1:
            raise KeyboardInterrupt
        return [passed()]


def commit(repository: Repository, branch: str, name: str) -> str:
    return repository.commit(branch, [put(name, namespace(name))], CommitMeta("m")).reference.hash


def test_commits_of_the_caller_beside_an_empty_branch_are_noticed(lake: Lake) -> None:
    active = lake.begin()
    assert is_written_past(active) == ""
    with connect(lake.store, who="bob") as other:
        commit(other, "main", "x")
    assert is_written_past(active) == "", "another caller"
    past = commit(lake.repository, "main", "y")
    assert is_written_past(active) == past
    commit(lake.repository, active.branch, "z")
    assert is_written_past(active) == "", "the branch is not empty"


def test_publications_of_other_runs_of_the_caller_are_no_writes_past_a_run(lake: Lake) -> None:
    active, other = lake.begin(), lake.begin()
    lake.append(other.branch, 10)
    meta = CommitMeta("publish", properties={"run": (other.run.id,)})
    check(other, lambda _head, _against: [])
    publish(other, combine_by(lake.repository, None, {}), None, meta)
    assert is_written_past(active) == ""


# -- blocks of Python ----------------------------------------------------------------------------


def test_a_block_is_published_at_its_end(lake: Lake) -> None:
    with run(lake.repository, warehouse=lake.warehouse, who="etl", tag="v1") as active:
        with closing(active.catalog()) as catalog:
            catalog.load_table("db.t").append(lake._rows(10))
        assert lake.ids() == [1]
        assert lake.ids(active.branch) == [1, 10]
    assert lake.ids() == [1, 10]
    assert active.result == lake.repository.reference("v1").hash
    assert [ref.name for ref in lake.repository.references()] == ["main", "v1"]


def test_an_exception_leaves_the_target(lake: Lake) -> None:
    with pytest.raises(ZeroDivisionError), run(lake.repository) as active:  # noqa: PT012
        lake.append(active.branch, 10)
        raise ZeroDivisionError
    assert lake.ids() == [1]
    record = join(lake.repository, active.id).run
    assert (record.state, record.stage) == (RunState.FAILED, "command")
    assert "ZeroDivisionError" in record.reason


def test_processes_join_a_run_by_its_key(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "SILENCE", 0.0)
    with run(lake.repository, key="dag 7", publish=False) as first:
        lake.append(first.branch, 10)
        with run(lake.repository, key="dag 7", publish=False) as second:
            lake.append(second.branch, 20)
        assert lake.ids() == [1]
        lake.append(first.branch, 30)
    with run(lake.repository, key="dag 7"):
        pass
    assert lake.ids() == [1, 10, 20, 30]
    head = lake.repository.reference("main").hash
    with run(lake.repository, key="dag 7") as again:
        assert again.result == head
    assert lake.repository.reference("main").hash == head


def test_a_task_that_is_repeated_continues_its_run(lake: Lake) -> None:
    with pytest.raises(ZeroDivisionError), run(lake.repository, key="k"):
        raise ZeroDivisionError
    with run(lake.repository, key="k") as active:
        lake.append(active.branch, 10)
    assert lake.ids() == [1, 10]
    join(lake.repository, active.id)


def test_a_discarded_key_is_refused(lake: Lake) -> None:
    with pytest.raises(ZeroDivisionError), run(lake.repository, key="k") as active:
        raise ZeroDivisionError
    join(lake.repository, active.id).discard()
    with pytest.raises(InvalidInput, match="is discarded"), run(lake.repository, key="k"):
        pass


def test_a_conflict_that_does_not_combine(lake: Lake) -> None:
    with pytest.raises(MergeConflict), run(lake.repository) as active:  # noqa: PT012
        for number, branch in enumerate(("main", active.branch)):
            lake.repository.commit(branch, [put("x", view(number))], CommitMeta("m"))
    record = join(lake.repository, active.id).run
    assert (record.state, record.stage) == (RunState.FAILED, "conflict")


def test_checks_of_a_block(lake: Lake) -> None:
    with pytest.raises(ChecksFailed), run(lake.repository) as active:  # noqa: PT012
        lake.append(active.branch, 10)
        active.check('test -n "$NESSIE_RUN_BRANCH"', command=True)
        active.check("exit 3", command=True)
    assert lake.ids() == [1]
    record = join(lake.repository, active.id).run
    assert (record.state, record.stage) == (RunState.FAILED, "check")
    assert [result.passed for result in record.results] == [True, False]
