"""What takes over a second says what it is doing, on a terminal only, and leaves no trace."""

from __future__ import annotations

import fcntl
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager

import pytest

ERASED = re.compile(r"\x1b\[2K")
LONGER = 2.5
"""Seconds: by then a line would long be there."""
PUT = ("content", "put", "db.late", "--type", "namespace")


@contextmanager
def workspace_locked(nessie):
    with (nessie.folder / ".nessie" / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def store_locked(nessie):
    """Another writer is at work in the store."""
    with closing(sqlite3.connect(nessie.folder / ".nessie" / "store.sqlite", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


@pytest.mark.parametrize(
    ("locked", "words", "said"),
    [(workspace_locked, PUT, "waiting for the lock of this workspace"), (store_locked, ("branch", "late"), "creating the reference")],
)
def test_what_a_command_waits_for_is_shown_and_taken_away(ordinary, start, locked, words, said):
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


def test_ctrl_c_takes_the_line_away(ordinary, start):
    with workspace_locked(ordinary):
        running = start(ordinary, *PUT)
        running.wait_for("waiting for the lock")
        running.interrupt()
        shown = running.end()

    assert shown.code == 130
    assert "\x1b[?25h" in shown.raw.rpartition("waiting for the lock")[2]
    assert ordinary.staged() == [("PUT", "db.orders")]


def test_with_quiet_nothing_is_shown(ordinary, start):
    with workspace_locked(ordinary):
        running = start(ordinary, *PUT, "--quiet")
        time.sleep(LONGER)
    shown = running.end()

    assert (shown.code, "waiting" in shown.raw) == (0, False)


def test_nothing_is_written_into_a_pipe(ordinary):
    words = [sys.executable, "-m", "nessie_cli", *PUT]
    with workspace_locked(ordinary):
        process = subprocess.Popen(words, cwd=ordinary.folder, env=ordinary.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(LONGER)
    out, err = process.communicate()

    assert (process.returncode, "waiting" in out + err) == (0, False)


def test_rich_is_loaded_for_a_line_that_is_drawn_only(ordinary):
    program = (
        "import sys, nessie_cli.render.busy as b; busy = b.Busy(sys.stderr)\nwith busy.at_work('x'): pass\nbusy.stop(); print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], env=ordinary.environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
