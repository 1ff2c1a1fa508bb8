"""Apply: the second mark decides, each file has an outcome, and an interruption is resumed."""

from __future__ import annotations

import os
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nessie_cli.cli.gc.results import CollectorRun
from nessie_cli.errors import (
    DamagedObject,
    InvalidInput,
    NotAllowed,
    ReferenceMoved,
    StoreUnavailable,
)
from nessie_cli.gc import apply as apply_module
from nessie_cli.gc.apply import APPLICABLE, Revived, approve
from nessie_cli.gc.audit_trail import Trail
from nessie_cli.gc.listing import Listed
from nessie_cli.gc.removal import RemovalCandidate, RemovalOutcome, RemovalScope, Remover
from nessie_cli.gc.run import APPROVAL_FILE, Run, RunState
from tests.gc.collected import Heap, there
from tests.gc.killing import killed_at


@pytest.fixture
def heap(tmp_path: Path) -> Heap:
    return Heap(tmp_path)


def kept(run: Run) -> dict[str, str]:
    return {Path(row["location"]).name: row["outcome"] for row in run.dataset("kept").records()}


def test_exactly_the_approved_files_are_deleted(heap):
    run = heap.approved()
    later = heap.write("data/later")
    applied = heap.apply(run)
    assert (there(heap.garbage), there([*heap.kept, later])) == ([False] * 5, [True] * 3)
    assert (applied.outcomes[RemovalOutcome.DELETED], applied.deleted_bytes, run.info.state) == (
        5,
        50,
        RunState.APPLIED,
    )
    assert kept(run) == {}


def test_a_file_that_became_live_after_the_plan_survives(heap):
    run = heap.approved()
    heap.live.add(str(heap.garbage[2]))
    applied = heap.apply(run)
    assert there(heap.garbage) == [False, False, True, False, False]
    assert (applied.outcomes[RemovalOutcome.LIVE], run.info.state) == (1, RunState.APPLIED)
    assert kept(run) == {"garbage-2": "LIVE"}


@pytest.mark.parametrize(
    ("broken", "protects"),
    [("warehouse/db/t", True), ("warehouse/db/t/data/garbage", False), ("warehouse/db", True)],
)
def test_files_of_an_unreadable_content_are_kept(heap, broken, protects):
    run = heap.approved()
    heap.broken.append(str(heap.folder / broken))
    heap.apply(run)
    assert there(heap.garbage) == [protects] * 5
    assert set(kept(run).values()) == ({"PROTECTED"} if protects else set())


def test_a_broken_content_at_an_unknown_location_protects_everything(heap):
    run = heap.approved()
    heap.broken.append("")
    heap.apply(run)
    assert all(there(heap.garbage))


def test_a_modified_file_is_kept(heap):
    run = heap.approved()
    heap.write("data/garbage-0", "0123456789 and more")
    os.utime(heap.garbage[1])
    heap.garbage[2].unlink()
    heap.garbage[2].symlink_to(heap.kept[0])
    heap.garbage[3].unlink()
    applied = heap.apply(run)
    assert there(heap.garbage) == [True, True, True, False, False]
    assert kept(run) == {"garbage-0": "CHANGED", "garbage-1": "CHANGED", "garbage-2": "CHANGED"}
    assert (applied.outcomes[RemovalOutcome.GONE], applied.outcomes[RemovalOutcome.DELETED]) == (
        1,
        1,
    )
    assert all(there(heap.kept))


def test_a_store_that_fails_before_the_first_deletion_loses_nothing(heap):
    run = heap.approved()

    heap.away = StoreUnavailable("the store is away")
    with pytest.raises(StoreUnavailable):
        heap.apply(run)
    assert all(there(heap.garbage))
    assert heap.runs.open().info.error == "the store is away"
    assert CollectorRun.of(heap.runs.open()).next_step == f"nessie gc apply {run.id}"
    heap.away = None
    heap.apply(run)
    assert there(heap.garbage) == [False] * 5


def test_a_failed_deletion_is_reported_and_retried(heap):
    """Not even root can delete a name that the system refuses."""
    refused = heap.base / ("d" * 300) / "file"
    heap.more = [Listed(str(refused), 1, datetime(2023, 1, 1, tzinfo=UTC))]
    run = heap.approved()
    for _ in range(2):
        applied = heap.apply(run)
        assert (
            applied.outcomes[RemovalOutcome.FAILED],
            applied.outcomes[RemovalOutcome.DELETED],
            run.info.state,
        ) == (1, 5, RunState.PARTLY)
        assert there(heap.garbage) == [False] * 5
        assert kept(run) == {"file": "FAILED"}


def test_a_dry_run_reports_and_deletes_nothing(heap):
    run = heap.approved()
    heap.live.add(str(heap.garbage[0]))
    applied = heap.apply(run, dry_run=True)
    assert all(there(heap.garbage))
    assert (
        applied.outcomes[RemovalOutcome.DELETED],
        applied.outcomes[RemovalOutcome.LIVE],
        applied.deleted_bytes,
    ) == (4, 1, 40)
    assert (run.info.state, run.audit_path.exists()) == (RunState.APPROVED, False)


def test_an_interruption_between_two_batches_is_resumed(heap, tmp_path):
    garbage = [
        heap.write(f"data/garbage-x{number:04}") for number in range(apply_module.FILES_PER_BATCH)
    ]
    run = heap.approved()

    def interrupt(_done: int, _total: int | None) -> None:
        raise KeyboardInterrupt

    with run.changing(), pytest.raises(KeyboardInterrupt):
        apply_module.apply(run, heap, {}, lambda: run.info.created, interrupt)
    left = sum(there(heap.garbage + garbage))
    assert (left, heap.runs.open().info.state) == (5, RunState.APPLYING)
    applied = heap.apply(run)
    assert (sum(there(heap.garbage + garbage)), applied.outcomes[RemovalOutcome.DELETED]) == (
        0,
        505,
    )
    assert len(list(Trail(run.audit_path).settled())) == 505


def test_the_run_ends_if_the_storage_stops_answering(heap, monkeypatch):
    """The second of two files in a bucket is in a second batch, which does not begin."""
    monkeypatch.setattr(apply_module, "FILES_PER_BATCH", 1)
    old = datetime(2023, 1, 1, tzinfo=UTC)
    heap.more = [Listed(f"s3://lake/db/t/{name}", 1, old) for name in "ab"]
    heap.properties = {
        "s3.endpoint": "http://127.0.0.1:9",
        "s3.access-key-id": "key",
        "s3.secret-access-key": "secret",
        "s3.region": "us-east-1",
    }
    run = heap.approved()
    with pytest.raises(StoreUnavailable, match=r"s3://lake/db/t/a cannot be deleted: "):
        heap.apply(run)
    assert there(heap.garbage) == [False] * 5
    info = heap.runs.open().info
    assert info.state is RunState.FAILED
    assert "s3://lake/db/t/a" in (info.error or "")
    assert [
        file["location"] for entry in Trail(run.audit_path).entries() for file in entry["files"]
    ][-2:] == ["s3://lake/db/t/a"] * 2


def test_nothing_is_deleted_if_the_trail_cannot_be_written(heap, tmp_path):
    run = heap.approved()
    # Not even root can write into a missing folder.
    run.audit_path.symlink_to(tmp_path / "nowhere" / "deleted.jsonl")
    with pytest.raises(
        StoreUnavailable, match=r"deleted\.jsonl cannot be written, so nothing is deleted: "
    ):
        heap.apply(run)
    assert all(there(heap.garbage))
    run.audit_path.unlink()
    heap.apply(run)
    assert there(heap.garbage) == [False] * 5


def test_an_applied_run_is_not_applied_again(heap):
    """A new file with the name of a deleted candidate is kept."""
    run = heap.approved()
    heap.apply(run)
    heap.write("data/garbage-0")
    for dry_run in (True, False):
        with pytest.raises(NotAllowed, match="is APPLIED"):
            heap.apply(run, dry_run=dry_run)
    assert heap.garbage[0].exists()
    assert heap.runs.open().info.state is RunState.APPLIED


@pytest.mark.parametrize(
    "state", [state for state in RunState if state not in (RunState.PLANNED, RunState.APPROVED)]
)
def test_only_a_planned_run_can_be_approved(heap, state):
    """An approval sets the state APPROVED, so an applied run would be applied again."""
    run = heap.planned()
    run.update(state=state)
    with (
        run.changing(),
        pytest.raises(InvalidInput, match=f"is {state}; only a run that is PLANNED"),
    ):
        approve(run, "Ann", run.info.created)
    assert (heap.runs.open().info.state, run.approval()) == (state, None)


def test_a_removed_approval_is_no_longer_valid(heap):
    run = heap.approved()
    (run.folder / APPROVAL_FILE).unlink()
    with pytest.raises(NotAllowed, match="only an approved run can be applied"):
        heap.apply(run)
    assert all(there(heap.garbage))


@pytest.mark.parametrize("state", [state for state in RunState if state not in APPLICABLE])
def test_an_approval_ends_with_a_new_plan_or_the_end_of_the_run(heap, state):
    run = heap.approved()
    run.update(state=state)
    with pytest.raises(NotAllowed, match=f"is {state}; only an approved run can be applied"):
        heap.apply(run)
    assert all(there(heap.garbage))


# -- what becomes live while files are deleted ----------------------------------------------------


def more_than_a_batch(heap: Heap) -> list[Path]:
    """Garbage for two batches."""
    return [
        *heap.garbage,
        *(
            heap.write(f"data/garbage-x{number:04}")
            for number in range(apply_module.FILES_PER_BATCH)
        ),
    ]


def test_a_candidate_that_becomes_live_before_the_first_batch_stops_everything(heap):
    run = heap.approved()
    heap.now_live = [
        Revived(str(heap.base / "elsewhere"), "db.t", "dev"),
        Revived(str(heap.garbage[3]), "db.t", "dev"),
    ]
    with pytest.raises(
        ReferenceMoved, match=r"db\.t on dev has become live .* needs .*garbage-3.* Hint: apply"
    ):
        heap.apply(run)
    assert all(there(heap.garbage))
    assert (heap.runs.open().info.state, run.audit_path.exists()) == (RunState.FAILED, False)
    assert "garbage-3" in (heap.runs.open().info.error or "")
    heap.live.add(str(heap.garbage[3]))
    heap.apply(run)
    assert there(heap.garbage) == [False, False, False, True, False]


def test_a_live_file_that_is_not_a_candidate_stops_nothing(heap):
    run = heap.approved()
    heap.now_live = [
        Revived(str(heap.kept[0]), "db.t", "dev"),
        Revived(f"{heap.base}-2", "db.u", "dev", is_base=True),
    ]
    heap.apply(run)
    assert there(heap.garbage) == [False] * 5


@pytest.mark.parametrize("number", [0, -1])
def test_a_candidate_that_becomes_live_stops_the_second_batch(heap, number):
    """This holds even if the first batch has deleted the file."""
    garbage = more_than_a_batch(heap)
    run = heap.approved()

    def revive(_done: int, _total: int | None) -> None:
        heap.now_live = [Revived(sorted(map(str, garbage))[number], "db.t", "dev")]

    with run.changing(), pytest.raises(ReferenceMoved):
        apply_module.apply(run, heap, {}, lambda: run.info.created, revive)
    assert sum(there(garbage)) == 5
    assert len(list(Trail(run.audit_path).settled())) == 500


@pytest.mark.parametrize(
    ("base", "left"),
    [
        ("warehouse/db/t", 5),
        ("warehouse/db", 5),
        ("warehouse/db/t/data/garbage", 0),
        ("warehouse/db/t/meta", 0),
    ],
)
def test_an_unreadable_content_that_becomes_live_stops_deletion_at_its_location(heap, base, left):
    garbage = more_than_a_batch(heap)
    run = heap.approved()
    calls = []

    def revive(_done: int, _total: int | None) -> None:
        if not calls:
            heap.now_live = [Revived(str(heap.folder / base), "db.t", "dev", is_base=True)]
        calls.append(1)

    with run.changing(), pytest.raises(ReferenceMoved) if left else nullcontext():
        apply_module.apply(run, heap, {}, lambda: run.info.created, revive)
    assert sum(there(garbage)) == left


def test_a_damaged_store_is_refused_before_the_mark(heap):
    run = heap.approved()
    heap.damage = DamagedObject("node 12 is damaged", "12")
    for dry_run in (True, False):
        with pytest.raises(DamagedObject):
            heap.apply(run, dry_run=dry_run)
        assert (heap.runs.open().info.state, run.marks(again=True).live.exists) == (
            RunState.APPROVED,
            False,
        )
    assert all(there(heap.garbage))


# -- removal --------------------------------------------------------------------------------------


def candidate(path: Path, base: Path) -> RemovalCandidate:
    from nessie_cli.gc.listing import moment

    found = path.lstat()
    return RemovalCandidate(str(path), found.st_size, moment(found.st_mtime_ns), str(base))


def test_nothing_outside_of_the_allowed_locations_is_removed(heap, tmp_path):
    other = tmp_path / "warehouse-2"
    other.mkdir()
    (other / "file").write_text("x")
    remover = Remover(RemovalScope([str(tmp_path / "warehouse")]), {})
    escaping = heap.base / ".." / ".." / ".." / "warehouse-2" / "file"
    results = remover.remove([candidate(other / "file", other), candidate(escaping, heap.base)])
    assert [one.outcome for one in results] == [RemovalOutcome.OUTSIDE, RemovalOutcome.OUTSIDE]
    assert (other / "file").exists()


def test_the_target_of_a_folder_that_became_a_link_is_kept(heap, tmp_path):
    elsewhere = heap.folder / "warehouse" / "elsewhere"
    (heap.base / "data").rename(elsewhere)
    found = [
        candidate(elsewhere / path.name, heap.base)._replace(location=str(path))
        for path in heap.garbage
    ]
    (heap.base / "data").symlink_to(elsewhere)
    results = Remover(RemovalScope([str(tmp_path / "warehouse")]), {}).remove(found)
    assert {one.outcome for one in results} == {RemovalOutcome.CHANGED}
    assert all(there(heap.garbage))


def test_metadata_files_are_deleted_last(heap, tmp_path):
    metadata = heap.write("00001-x.metadata.json")
    heap.garbage[0].chmod(0o600)
    found = [candidate(path, heap.base) for path in (metadata, *heap.garbage)]
    results = Remover(RemovalScope([str(tmp_path)]), {}).remove(found)
    assert [one.location for one in results] == [one.location for one in found]
    assert {one.outcome for one in results} == {RemovalOutcome.DELETED}


@pytest.mark.parametrize("removed", range(6))
def test_a_metadata_file_is_deleted_after_all_others_of_its_batch(heap, tmp_path, removed):
    metadata = heap.write("00001-x.metadata.json")
    found = [candidate(path, heap.base) for path in (metadata, *heap.garbage)]
    with killed_at(removed, tmp_path):
        Remover(RemovalScope([str(tmp_path)]), {}).remove(found)
    assert (metadata.exists(), sum(there(heap.garbage))) == (True, 5 - removed)


def test_a_folder_replaced_during_a_deletion_keeps_its_file(heap, tmp_path, monkeypatch):
    """The folder is replaced between its opening and the check of the file."""
    path = heap.garbage[0]
    one = candidate(path, heap.base)
    aside = heap.base / "aside"
    real = os.path.realpath

    def moving(asked: str) -> str:
        if asked == str(path.parent) and not aside.exists():
            path.parent.rename(aside)
            path.parent.mkdir()
        return real(asked)

    scope = RemovalScope([str(tmp_path)])
    assert scope.holds(one.location), (
        "from now on that is known, and the next look is the one behind the opening"
    )
    monkeypatch.setattr(os.path, "realpath", moving)
    [result] = Remover(scope, {}).remove([one])
    assert aside.exists()
    assert (result.outcome, (aside / path.name).exists()) == (RemovalOutcome.CHANGED, True)
