"""Long listings go through a pager, on a terminal only."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import time

import pytest

from nessie_cli.render.spans import Span
from nessie_cli.render.terminal import Terminal
from tests.command.terminal import PATIENCE

LESS = shutil.which("less", path=os.defpath)
needs_less = pytest.mark.skipif(LESS is None, reason="less is not installed")
PROMPT = "\n:"


@needs_less
def test_less_shows_a_long_listing_and_may_quit_early(ordinary, start):
    running = start(ordinary, "log")
    running.wait_for(lambda shown: shown.rstrip(" ").endswith(":"))
    assert "both have it" in running.text
    assert "load 4 " not in running.text
    assert "\x1b[33m" in running.text
    assert "\x1b[?1049h" not in running.text, "the text stays on the screen"

    running.type("q")
    shown = running.end()

    assert shown.code == 0
    assert "Traceback" not in shown.raw
    assert "nessie:" not in shown.raw


@needs_less
def test_ctrl_c_while_less_waits_leaves_the_terminal_to_less(ordinary, start):
    running = start(ordinary, "log")
    running.wait_for(lambda shown: shown.rstrip(" ").endswith(":"))
    for _ in range(3):
        running.interrupt()
        time.sleep(0.05)

    def at_the_end(shown):
        # When an interrupt comes late, a terminal drops the keys before it, and less cancels its
        # action: a user would press the key again.
        running.type("G")
        return "END" in shown

    # It still reacts to keys.
    running.wait_for(at_the_end)
    running.type("q")

    assert "Traceback" not in running.end().raw


def pager(nessie, name, script):
    path = nessie.folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_a_custom_pager_gets_the_text_and_the_settings_of_less(ordinary, show):
    mine = pager(ordinary, "mine", 'printf "%s<%s>" "$LESS" "$*"; wc -l')

    assert show(ordinary, "log", "--oneline", PAGER=mine, height=10).lines[0].startswith("FRX<>")
    assert (
        show(ordinary, "log", "--oneline", PAGER=f"{mine} -a 'b c'", LESS="S", height=10)
        .lines[0]
        .startswith("S<-a b c>")
    )
    assert (
        show(ordinary, "log", "--oneline", PAGER="false", NESSIE_PAGER=mine, height=10)
        .lines[0]
        .startswith("FRX<>")
    )


@pytest.mark.parametrize(
    "off",
    [
        {"PAGER": "cat"},
        {"PAGER": ""},
        {"NESSIE_PAGER": "", "PAGER": "false"},
        {"PAGER": "no-such-pager"},
        {"PAGER": "'"},
    ],
)
def test_without_a_pager_the_whole_listing_is_written(ordinary, show, off):
    shown = show(ordinary, "log", "--oneline", height=10, **off)

    assert (shown.code, len(shown.lines)) == (0, 24)


def test_no_pager_runs_for_short_output_json_no_pager_or_pipes(ordinary, show):
    mine = pager(ordinary, "mine", "echo paged; cat")

    assert "paged" in show(ordinary, "log", "--oneline", PAGER=mine, height=10).raw
    for args, height in (
        (("log", "--oneline"), 60),
        (("--no-pager", "log"), 10),
        (("log", "--no-pager"), 10),
        (("log", "--json"), 10),
    ):
        assert "paged" not in show(ordinary, *args, PAGER=mine, height=height).raw, args
    assert "paged" not in ordinary("log", env={"PAGER": mine, "LINES": "3"}).out


@pytest.mark.parametrize(
    "command",
    [
        "log",
        "content list",
        "branch -v",
        "reflog",
        "diff dev main",
        "blame",
        "show dev~1",
        "content list --tree",
    ],
)
def test_every_long_listing_is_paged(ordinary, show, command):
    mine = pager(ordinary, "mine", "echo paged; cat")

    assert "paged" in show(ordinary, *command.split(), PAGER=mine, height=4).raw


def test_a_pager_that_exits_at_once_is_not_an_error(ordinary, show):
    shown = show(ordinary, "log", PAGER=pager(ordinary, "mine", "exit 3"), height=5)

    assert (shown.code, shown.raw) == (0, "")


# It reads nothing until it gets a signal, so that the command is still writing when Ctrl-C comes.
# In some shells, a signal ends the reading of a line.
SLOW = "echo waiting; until read go </dev/tty; do :; done; wc -c; echo over"
LONG = "%s" + "x" * 5000
PIPE = 65536


def test_ctrl_c_during_output_goes_to_the_pager(ordinary, start):
    slow = pager(ordinary, "slow", f"trap 'echo handled' INT; {SLOW}")
    running = start(ordinary, "log", "--format", LONG, PAGER=slow, height=5, width=2000)
    running.wait_for("waiting")
    running.interrupt()

    def handled(shown):
        # A signal just before a shell begins to read is only handled after the read, so it is sent
        # again.
        running.interrupt()
        return "handled" in shown

    running.wait_for(handled)
    assert "over" not in running.text
    running.type("go\n")
    running.wait_for("over")

    shown = running.end()
    assert shown.code == 0
    assert "nessie:" not in shown.raw
    assert int(next(line for line in shown.lines if line.strip().isdigit())) > PIPE, (
        "the listing fits into the pipe: nothing was left to write"
    )


def test_ctrl_c_that_ends_the_pager_ends_the_command(ordinary, start):
    running = start(
        ordinary, "log", "--format", LONG, PAGER=pager(ordinary, "slow", SLOW), height=5, width=2000
    )
    running.wait_for("waiting")
    running.interrupt()

    shown = running.end()
    assert shown.code == 130
    assert "over" not in shown.raw
    assert "nessie:" not in shown.raw
    assert "Traceback" not in shown.raw


def test_ctrl_c_after_the_pager_has_ended_stops_the_command(tmp_path):
    master, slave = pty.openpty()
    gone = tmp_path / "gone"
    gone.write_text("#!/bin/sh\nexec head -n 1\n")
    gone.chmod(0o755)
    asked = []

    def lines():
        yield from ([Span(f"line {number}")] for number in range(100))
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            # Before the pager has ended, Ctrl-C is for the pager.
            asked.append(signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)

    with os.fdopen(slave, "w") as out:
        terminal = Terminal(out, environment={"PAGER": str(gone), "PATH": os.defpath, "LINES": "5"})
        with pytest.raises(KeyboardInterrupt):
            terminal.print_lines(lines(), paged=True)
    os.close(master)
    assert asked
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
