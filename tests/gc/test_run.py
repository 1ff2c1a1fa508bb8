"""The folder of a run: states, atomic datasets, approvals, and kills at every disk change."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest

from nessie_cli.cli.gc.results import CollectorRun
from nessie_cli.errors import InvalidInput, NotAllowed, NotFound, StoreUnavailable
from nessie_cli.gc import phases
from nessie_cli.gc.apply import approve, require_approval
from nessie_cli.gc.audit_trail import Trail
from nessie_cli.gc.run import Run, Runs, RunSettings, RunState
from tests.gc.collected import TIME, Heap, clock, there
from tests.gc.killing import Killed, killed_at

SCHEMA = pa.schema([("n", pa.int64())])


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Runs(tmp_path).new(RunSettings(store="memory:", reference_time=TIME), TIME)


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64())})


def write(run: Run, name: str, *numbers: int) -> None:
    with run.dataset(name).writing(SCHEMA) as writer:
        for number in numbers:
            writer(rows(number))


def read(run: Run, name: str) -> list[int]:
    return [record["n"] for record in run.dataset(name).records()]


def test_runs_sort_by_time_and_are_found_by_their_first_letters(tmp_path):
    runs = Runs(tmp_path / "runs")
    assert runs.ids() == []
    with pytest.raises(NotFound, match="there is no run"):
        runs.open()
    made = [
        runs.new(RunSettings(store="memory:", reference_time=TIME), when).id
        for when in (TIME.replace(year=2027), TIME, *[TIME] * 10)
    ]
    assert runs.ids() == [made[0], *reversed(made[1:])]
    assert made[1] == "20260131T120000Z"
    assert (runs.open().id, runs.open("2027").id, runs.open(made[1]).id) == (
        made[0],
        made[0],
        made[1],
    )
    with pytest.raises(InvalidInput, match="11 runs begin with it"):
        runs.open("2026")
    with pytest.raises(NotFound, match="no run '1999'"):
        runs.open("1999")


def test_a_dataset_is_replaced_whole_or_not_at_all(run):
    dataset = run.dataset("live")
    assert not dataset.exists
    with pytest.raises(InvalidInput, match="has no live yet"):
        dataset.folder  # noqa: B018 - the error is the point
    write(run, "live", 1, 2)
    first = dataset.digest()
    with pytest.raises(AttributeError), dataset.writing(SCHEMA) as writer:
        writer(rows(3)), writer(None)
    assert read(run, "live") == [1, 2]
    assert dataset.digest() == first
    write(run, "live", 3)
    assert read(Runs(run.folder.parent).open(), "live") == [3]
    assert dataset.digest() != first
    assert [path.name for path in run.folder.iterdir() if path.is_dir()] == [dataset.folder.name]
    write(run, "live")
    assert (read(run, "live"), dataset.rows) == ([], 0)


def test_a_dataset_that_cannot_be_written_does_not_replace_the_old_one(run):
    write(run, "live", 1, 2)

    def fill() -> None:
        with run.dataset("live").writing(SCHEMA) as writer:
            writer(rows(3))
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(StoreUnavailable, match="live-1 cannot be written: No space left"):
        fill()
    assert read(Runs(run.folder.parent).open(), "live") == [1, 2]
    assert [path.name for path in run.folder.iterdir() if path.is_dir()] == ["live-0"]


def test_a_damaged_dataset_is_named(run):
    write(run, "live", 1)
    (path,) = run.dataset("live").files
    path.write_bytes(b"no Parquet")
    with pytest.raises(InvalidInput, match=r"part-00000\.parquet cannot be read"):
        read(run, "live")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "input data was truncated"),
        ('{"id": 7}', "expected"),
        (None, "is missing"),
    ],
)
def test_an_invalid_run_file_is_named(run, text, message):
    path = run.folder / "run.json"
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises((InvalidInput, NotFound), match=message) as caught, run.changing():
        pass
    assert "run.json" in caught.value.message


def test_a_run_of_a_newer_format_is_refused(run):
    path = run.folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))
    with pytest.raises(InvalidInput, match="has format 2"), run.changing():
        pass


def test_one_process_at_a_time_works_on_a_run(run):
    again = Runs(run.folder.parent).open()
    with (
        run.changing(),
        pytest.raises(StoreUnavailable, match="another process is working on it"),
        again.changing(),
    ):
        pass
    with again.changing():
        pass


def test_an_error_is_recorded_and_the_run_is_resumed(tmp_path):
    heap = Heap(tmp_path)
    run = heap.runs.new(heap.settings, TIME)

    def fails(_marks: object) -> None:
        raise StoreUnavailable("the store is away")

    with run.changing(), pytest.raises(StoreUnavailable):
        phases.mark(run, fails, clock)
    found = heap.runs.open()
    assert (found.info.state, found.info.error) == (RunState.FAILED, "the store is away")
    assert CollectorRun.of(found).next_step == f"nessie gc mark --resume {found.id}"
    with found.changing():
        with pytest.raises(InvalidInput, match="has not been marked yet"):
            phases.plan(found, dict, heap.settings, clock)
        phases.mark(found, heap.mark, clock)
        assert (found.info.state, found.info.error) == (RunState.MARKED, None)
        with pytest.raises(InvalidInput, match="it has been marked"):
            phases.mark(found, heap.mark, clock)


def test_an_approval_covers_exactly_the_reviewed_candidates(tmp_path):
    heap = Heap(tmp_path)
    run = heap.planned()
    with run.changing():
        with pytest.raises(NotAllowed, match="only an approved run can be applied"):
            require_approval(run)
        with pytest.raises(NotAllowed, match="not '1234'"):
            approve(run, "Ann", TIME, "1234")
        given = approve(run, "Ann", TIME, run.digest()[:8])
        assert (given.by, given.candidates, given.bytes) == ("Ann", 5, 50)
        assert require_approval(run) == given
        with run.dataset("candidates").writing(SCHEMA) as writer:
            writer(rows(1))
        with pytest.raises(NotAllowed, match="have changed since Ann approved them"):
            require_approval(run)


@pytest.mark.parametrize("changed", [{"warehouse": ("/",)}, {"grace": 7}, {"default_cutoff": "1"}])
def test_an_approval_covers_exactly_the_reviewed_settings(tmp_path, changed):
    import msgspec

    heap = Heap(tmp_path)
    run = heap.approved()
    run.update(settings=msgspec.structs.replace(run.info.settings, **changed))
    with run.changing(), pytest.raises(NotAllowed, match="approve them again"):
        require_approval(run)


def test_another_plan_needs_another_approval(tmp_path):
    heap = Heap(tmp_path)
    run = heap.approved()
    with run.changing():
        phases.plan(run, lambda: heap.plan(run), heap.settings, clock)
    assert run.approval() is None
    with pytest.raises(NotAllowed, match="only an approved run can be applied"):
        heap.apply(run)
    assert all(there(heap.garbage))


def test_an_applied_run_is_not_planned_again(tmp_path):
    heap = Heap(tmp_path)
    run = heap.approved()
    heap.apply(run)
    with run.changing(), pytest.raises(NotAllowed, match="begins a new run"):
        phases.plan(run, lambda: heap.plan(run), heap.settings, clock)


@pytest.fixture
def memory_disk() -> Iterator[Path]:
    """A folder in memory, if the machine has one, so that writes do not wait for a disk."""
    shared = Path("/dev/shm")
    with TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as folder:
        yield Path(folder)


def test_a_run_killed_before_any_change_of_the_disk_is_resumed(memory_disk):
    """For a kill before each change: in the end exactly the garbage is deleted and in the trail."""
    kills = 0
    while True:
        heap = Heap(memory_disk / str(kills), garbage=3)
        done = False
        with killed_at(kills, heap.folder) as death:
            heap.go_on()
            done = True
        assert done == (death.changes <= kills)
        run = heap.go_on()
        assert run.info.state is RunState.APPLIED
        assert there(heap.garbage) == [False] * 3
        assert all(there(heap.kept))
        deleted_paths = [
            file["location"]
            for entry in Trail(run.audit_path).entries()
            if entry["event"] == "end"
            for file in entry["files"]
        ]
        assert sorted(deleted_paths) == [str(path) for path in heap.garbage]
        assert (run.info.counts["deleted"], run.info.counts["deletedBytes"]) == (3, 30)
        if done:
            break
        kills += 1
    assert kills > 20


def test_the_trail_continues_after_a_truncated_line(tmp_path):
    heap = Heap(tmp_path, garbage=1)
    run = heap.approved()
    run.audit_path.write_text(
        '{"event":"begin","batch":1,"files":[{"location":"x","size":1}]}\n{"event":"en'
    )
    assert Trail(run.audit_path).begun() == {"x"}
    heap.apply(run)
    lines = [json.loads(line) for line in run.audit_path.read_text().splitlines()]
    assert [(line["event"], line["batch"]) for line in lines] == [
        ("begin", 1),
        ("begin", 2),
        ("end", 2),
    ]


@pytest.mark.parametrize("length", [*range(2**16 - 3, 2**16 + 3), 2**17 - 1, 2**17, 2**17 + 1])
def test_removing_a_truncated_line_keeps_all_complete_lines(tmp_path, length):
    """The line may be longer than the chunks of 64 KiB in which the end of the trail is read."""
    trail = Trail(tmp_path / "deleted.jsonl")
    trail.begin(1, TIME, [])
    trail.end(1, TIME, [])
    whole = (tmp_path / "deleted.jsonl").read_bytes()
    (tmp_path / "deleted.jsonl").write_bytes(whole + b"{" + b"x" * (length - 1))
    trail.begin(2, TIME, [])
    assert [(entry["event"], entry["batch"]) for entry in trail.entries()] == [
        ("begin", 1),
        ("end", 1),
        ("begin", 2),
    ]
    assert (tmp_path / "deleted.jsonl").read_bytes().startswith(whole)


def test_a_killed_process_raises_on_every_further_change(tmp_path):
    with killed_at(1, tmp_path):
        (tmp_path / "a").write_text("")
        for name in ("b", "c"):
            with pytest.raises(Killed):
                (tmp_path / name).write_text("")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
