"""Commands that take over a second show their progress, on a terminal only, and erase it
again."""

from __future__ import annotations

import fcntl
import json
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager

import pytest

from nessie_cli.render.busy import Busy, Seen
from tests.command.outcome import Outcome

ERASED = re.compile(r"\x1b\[2K")
LONGER = 2.5
"""Seconds after which a progress line would be visible."""
PUT = ("content", "put", "db.late", "--type", "namespace")


@contextmanager
def workspace_locked(nessie):
    with (nessie.folder / ".nessie" / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def store_locked(nessie):
    """Holds the lock of the store, as another writer does."""
    with closing(
        sqlite3.connect(nessie.folder / ".nessie" / "store.sqlite", isolation_level=None)
    ) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


@pytest.mark.parametrize(
    ("locked", "words", "said"),
    [
        (workspace_locked, PUT, "waiting for the lock of this workspace"),
        (store_locked, ("branch", "late"), "creating the reference"),
    ],
)
def test_a_waiting_command_shows_the_reason_and_erases_it(ordinary, start, locked, words, said):
    with locked(ordinary):
        running = start(ordinary, *words)
        running.wait_for(said)
        running.wait_for(lambda shown: re.search(r"0:0\d:(0[2-9]|[1-5]\d)", shown) is not None)
    shown = running.end()

    assert shown.code == 0
    assert "\x1b[?25h" in shown.raw, "the cursor is back"
    last = shown.raw.rpartition(said)[2]
    assert ERASED.search(last), "the line is taken away before the result is written"
    assert "late" in ERASED.split(last)[-1]


PERCENT = re.compile(r"(\d{1,3})% 0:0\d:\d\d")


def percentages(shown: str) -> list[int]:
    return [int(match[1]) for match in PERCENT.finditer(shown)]


def test_the_percentage_is_shown_if_the_total_is_known(ordinary, start):
    many = [
        {
            "type": "PUT",
            "key": {"elements": [f"{n}"]},
            "content": {"type": "NAMESPACE", "elements": [f"{n}"]},
        }
        for n in range(1500)
    ]
    (ordinary.folder / "many.json").write_text(json.dumps(many))
    with store_locked(ordinary):
        running = start(ordinary, "commit", "--batch", "many.json", "-m", "many")
        # 2,900 of 3,000 is reported last; then the commit waits for the other writer.
        running.wait_for(lambda shown: "committing" in shown and 96 in percentages(shown))
    shown = running.end()

    assert shown.code == 0
    assert "1500 keys" in ERASED.split(shown.raw)[-1]


@pytest.fixture
def deep(ordinary):
    """Many tables have changed, and their metadata files take long to read."""
    snapshots = [
        {"snapshot-id": number, "summary": {"operation": "append", "filler": "x" * 100}}
        for number in range(30_000)
    ]
    table = {
        "format-version": 1,
        "location": "s3://x",
        "last-column-id": 0,
        "schema": {"type": "struct", "fields": []},
        "partition-spec": [],
    }
    (ordinary.folder / "t.json").write_text(json.dumps({**table, "snapshots": snapshots}))
    puts = []
    for number in range(120):
        location = ordinary.folder / f"t{number}.json"
        location.hardlink_to(ordinary.folder / "t.json")
        content = {
            "type": "ICEBERG_TABLE",
            "metadataLocation": str(location),
            "snapshotId": 1,
            "schemaId": 0,
            "specId": 0,
            "sortOrderId": 0,
        }
        puts.append({"type": "PUT", "key": {"elements": [f"t{number}"]}, "content": content})
    (ordinary.folder / "batch.json").write_text(json.dumps(puts))
    ordinary.ok("commit", "--batch", "batch.json", "-m", "many")
    return ordinary


def test_reading_metadata_files_shows_progress_until_ctrl_c(deep, start):
    running = start(deep, "show", "--deep")
    running.wait_for(lambda shown: len({percent for percent in percentages(shown) if percent}) > 1)
    running.interrupt()
    shown = running.end()

    assert "reading metadata files" in shown.raw
    assert percentages(shown.plain) == sorted(percentages(shown.plain))
    assert shown.code == 130
    assert "\x1b[?25h" in shown.raw.rpartition("reading metadata files")[2]


def test_ctrl_c_erases_the_progress_line(ordinary, start):
    with workspace_locked(ordinary):
        running = start(ordinary, *PUT)
        running.wait_for("waiting for the lock")
        running.interrupt()
        shown = running.end()

    assert shown.code == 130
    assert "\x1b[?25h" in shown.raw.rpartition("waiting for the lock")[2]
    assert ordinary.staged() == [("PUT", "db.orders")]


def test_quiet_shows_no_progress(ordinary, start):
    with workspace_locked(ordinary):
        running = start(ordinary, *PUT, "--quiet")
        time.sleep(LONGER)
    shown = running.end()

    shown.expect(0, without=("waiting",))


def test_no_progress_is_written_into_a_pipe(ordinary):
    words = [sys.executable, "-m", "nessie_cli", *PUT]
    with workspace_locked(ordinary):
        process = subprocess.Popen(
            words,
            cwd=ordinary.folder,
            env=ordinary.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(LONGER)
    out, err = process.communicate()

    Outcome(process.returncode, out, err).expect(0, without=("waiting",))
    assert "waiting" not in out


def test_rich_is_only_loaded_if_progress_is_drawn(ordinary):
    program = (
        "import sys, nessie_cli.render.busy as b; busy = b.Busy(sys.stderr)\nwith"
        " busy.at_work('x'): pass\nbusy.stop(); print('rich' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=ordinary.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("done", "total", "said"),
    [
        (0, None, ""),
        (12_345, None, "12,345"),
        (0, 10, "0%"),
        (999, 1000, "99%"),
        (10, 10, "100%"),
        (11, 10, "100%"),
        (3, 0, "3"),
    ],
)
def test_progress_is_formatted(done, total, said):
    assert Seen("x", done, total).how_far == said


def test_the_innermost_progress_is_shown(tmp_path):
    with (tmp_path / "err").open("w") as err:
        busy = Busy(err)
        with busy.at_work("outer") as outer:
            busy.report(1, 4)
            with busy.at_work("inner") as inner:
                busy.report(7, None)
            busy.report(2, 4)
        busy.report(5, 5)
        busy.stop()

    assert (outer.done, outer.total) == (2, 4)
    assert (inner.done, inner.total) == (7, None)
