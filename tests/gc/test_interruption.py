"""An interrupted mark resumes after its last finished part, with the same result in the end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nessie_cli.gc.mark import mark
from nessie_cli.gc.run import MarkDatasets, Run
from tests.gc.killing import killed_at
from tests.gc.lakes import ROWS, Shore, shore, silent


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Shore]:
    """Live and dropped tables, a broken one, and a manifest that several states share."""
    with shore(tmp_path) as made:
        for name in ("a", "b", "gone", "sick"):
            made.create(name).append(ROWS)
        made.on().drop_table("db.gone")
        sick = made.on().load_table("db.sick")
        Path(sick.current_snapshot().manifests(sick.io)[0].manifest_path).write_bytes(b"no Avro")
        yield made


def new_run(lake: Shore) -> Run:
    return lake.runs.new(lake.settings("3"), datetime.now(UTC))


def marked(lake: Shore, run: Run, progress: Any = silent) -> dict[str, int]:
    return dict(
        mark(
            lake.repository, run.info.settings, run.marks(), {}, progress, states_per_piece=2
        ).counts
    )


def found(marks: MarkDatasets) -> list[set[str]]:
    return [{str(record) for record in dataset.records()} for dataset in marks]


def test_finished_parts_are_not_read_again(lake):
    whole, run = new_run(lake), new_run(lake)
    counts = marked(lake, whole)

    def interrupt(what: str, _done: int, _total: int | None) -> None:
        finished = list(run.marks().live.parts.glob("*.json"))
        if what == "live files" and len(finished) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        marked(lake, run, interrupt)
    # A second read of the history, or of the files, would find something else.
    for record in list(run.dataset("contents").records())[:4]:
        Path(record["metadata_location"]).write_text("{")
    lake.on().drop_table("db.b")
    assert marked(lake, run) == counts
    assert found(run.marks()) == found(whole.marks())
    assert not run.marks().live.parts.exists()


def test_a_mark_that_is_killed_before_any_change_of_the_disk_finds_the_same_in_the_end(
    lake, tmp_path
):
    whole = new_run(lake)
    counts = marked(lake, whole)
    kills, done = 0, False
    while not done:
        run = new_run(lake)
        with killed_at(kills, run.folder):
            marked(lake, run)
            done = True
        (again,) = [one for one in lake.runs.all() if one.id == run.id]
        assert done or marked(lake, again) == counts, f"killed before change {kills}"
        assert found(again.marks()) == found(whole.marks()), f"killed before change {kills}"
        kills += 1
    assert kills > 20


def test_a_second_mark_begins_from_scratch(lake):
    run = new_run(lake)
    again = run.marks(again=True)
    (again.live.parts).mkdir()
    (again.live.parts / "part-00000.json").write_text("{}")
    run.forget(*again)
    assert not again.live.parts.exists()
    mark(lake.repository, run.info.settings, again, {}, silent)
    lake.create("later")
    run.forget(*again)
    mark(lake.repository, run.info.settings, again, {}, silent)
    assert "db.later" in {record["key"] for record in again.contents.records()}


def test_a_file_in_several_manifests_counts_once(lake):
    run = new_run(lake)
    counts = marked(lake, run)
    assert counts["live"] == len({record["path"] for record in run.marks().live.records()})
