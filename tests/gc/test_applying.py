"""Applying a run: a mark just before deletion decides, each file has an outcome of its own, and what was interrupted goes on."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nessie_cli.cli.collecting import next_step
from nessie_cli.errors import StoreUnavailable
from nessie_cli.gc import applying
from nessie_cli.gc.audit import Trail
from nessie_cli.gc.listing import Listed
from nessie_cli.gc.removal import Candidate, Outcome, Remover, Scope
from nessie_cli.gc.run import Run, State
from tests.gc.collected import Heap, there


@pytest.fixture
def heap(tmp_path: Path) -> Heap:
    return Heap(tmp_path)


def kept(run: Run) -> dict[str, str]:
    return {Path(row["location"]).name: row["outcome"] for row in run.dataset("kept").records()}


def test_what_was_approved_is_deleted_and_nothing_else(heap):
    run = heap.approved()
    later = heap.write("data/later")
    applied = heap.apply(run)
    assert (there(heap.garbage), there([*heap.kept, later])) == ([False] * 5, [True] * 3)
    assert (applied.outcomes[Outcome.DELETED], applied.deleted_bytes, run.info.state) == (5, 50, State.APPLIED)
    assert kept(run) == {}


def test_a_file_that_became_live_after_the_plan_survives(heap):
    run = heap.approved()
    heap.live.add(str(heap.garbage[2]))
    applied = heap.apply(run)
    assert there(heap.garbage) == [False, False, True, False, False]
    assert (applied.outcomes[Outcome.LIVE], run.info.state) == (1, State.APPLIED)
    assert kept(run) == {"garbage-2": "LIVE"}


@pytest.mark.parametrize(("broken", "protects"), [("warehouse/db/t", True), ("warehouse/db/t/data/garbage", False), ("warehouse/db", True)])
def test_what_belongs_to_a_content_that_cannot_be_read_now_survives(heap, broken, protects):
    run = heap.approved()
    heap.broken.append(str(heap.folder / broken))
    heap.apply(run)
    assert there(heap.garbage) == [protects] * 5
    assert set(kept(run).values()) == ({"PROTECTED"} if protects else set())


def test_a_broken_content_that_nobody_knows_the_place_of_protects_everything(heap):
    run = heap.approved()
    heap.broken.append("")
    heap.apply(run)
    assert all(there(heap.garbage))


def test_a_file_that_was_written_anew_survives(heap):
    run = heap.approved()
    heap.write("data/garbage-0", "0123456789 and more")
    os.utime(heap.garbage[1])
    heap.garbage[2].unlink()
    heap.garbage[2].symlink_to(heap.kept[0])
    heap.garbage[3].unlink()
    applied = heap.apply(run)
    assert there(heap.garbage) == [True, True, True, False, False]
    assert kept(run) == {"garbage-0": "CHANGED", "garbage-1": "CHANGED", "garbage-2": "CHANGED"}
    assert (applied.outcomes[Outcome.GONE], applied.outcomes[Outcome.DELETED]) == (1, 1)
    assert all(there(heap.kept))


def test_a_store_that_fails_before_the_first_deletion_loses_nothing(heap):
    run = heap.approved()

    def away(_marks: object) -> None:
        raise StoreUnavailable("the store is away")

    with run.changing(), pytest.raises(StoreUnavailable):
        applying.apply(run, away, {}, lambda: run.info.created, lambda _done, _total: None)
    assert all(there(heap.garbage))
    assert heap.runs.open().info.error == "the store is away"
    assert next_step(heap.runs.open()) == f"nessie gc apply {run.id}"
    heap.apply(run)
    assert there(heap.garbage) == [False] * 5


def test_what_cannot_be_deleted_is_told_and_tried_again(heap):
    """A name that the system refuses is what even root cannot delete."""
    refused = heap.base / ("d" * 300) / "file"
    heap.more = [Listed(str(refused), 1, datetime(2023, 1, 1, tzinfo=UTC))]
    run = heap.approved()
    for _ in range(2):
        applied = heap.apply(run)
        assert (applied.outcomes[Outcome.FAILED], applied.outcomes[Outcome.DELETED], run.info.state) == (1, 5, State.PARTLY)
        assert there(heap.garbage) == [False] * 5
        assert kept(run) == {"file": "FAILED"}


def test_a_dry_run_tells_and_deletes_nothing(heap):
    run = heap.approved()
    heap.live.add(str(heap.garbage[0]))
    applied = heap.apply(run, dry_run=True)
    assert all(there(heap.garbage))
    assert (applied.outcomes[Outcome.DELETED], applied.outcomes[Outcome.LIVE], applied.deleted_bytes) == (4, 1, 40)
    assert (run.info.state, run.audit_path.exists()) == (State.APPROVED, False)


def test_an_interrupt_between_two_batches_is_gone_on_from(heap, tmp_path):
    garbage = [heap.write(f"data/garbage-x{number:04}") for number in range(applying.FILES_PER_BATCH)]
    run = heap.approved()

    def interrupt(_done: int, _total: int | None) -> None:
        raise KeyboardInterrupt

    with run.changing(), pytest.raises(KeyboardInterrupt):
        applying.apply(run, heap, {}, lambda: run.info.created, interrupt)
    left = sum(there(heap.garbage + garbage))
    assert (left, heap.runs.open().info.state) == (5, State.APPLYING)
    applied = heap.apply(run)
    assert (sum(there(heap.garbage + garbage)), applied.outcomes[Outcome.DELETED]) == (0, 505)
    assert len(list(Trail(run.audit_path).settled())) == 505


# -- removal ------------------------------------------------------------------------------------------------------------------------------


def candidate(path: Path, base: Path) -> Candidate:
    from nessie_cli.gc.listing import moment

    found = path.lstat()
    return Candidate(str(path), found.st_size, moment(found.st_mtime_ns), str(base))


def test_nothing_outside_of_the_allowed_locations_is_removed(heap, tmp_path):
    other = tmp_path / "warehouse-2"
    other.mkdir()
    (other / "file").write_text("x")
    remover = Remover(Scope([str(tmp_path / "warehouse")]), {})
    escaping = heap.base / ".." / ".." / ".." / "warehouse-2" / "file"
    results = remover.remove([candidate(other / "file", other), candidate(escaping, heap.base)])
    assert [one.outcome for one in results] == [Outcome.OUTSIDE, Outcome.OUTSIDE]
    assert (other / "file").exists()


def test_a_folder_that_has_become_a_link_keeps_what_it_leads_to(heap, tmp_path):
    elsewhere = heap.folder / "warehouse" / "elsewhere"
    (heap.base / "data").rename(elsewhere)
    found = [candidate(elsewhere / path.name, heap.base)._replace(location=str(path)) for path in heap.garbage]
    (heap.base / "data").symlink_to(elsewhere)
    results = Remover(Scope([str(tmp_path / "warehouse")]), {}).remove(found)
    assert {one.outcome for one in results} == {Outcome.CHANGED}
    assert all(there(heap.garbage))


def test_metadata_files_go_last(heap, tmp_path):
    metadata = heap.write("00001-x.metadata.json")
    heap.garbage[0].chmod(0o600)
    found = [candidate(path, heap.base) for path in (metadata, *heap.garbage)]
    results = Remover(Scope([str(tmp_path)]), {}).remove(found)
    assert [one.location for one in results] == [one.location for one in found]
    assert {one.outcome for one in results} == {Outcome.DELETED}
