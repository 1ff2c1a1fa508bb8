import json
import os
import pty
import stat
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nessie_cli.render.spans import Column, Span, trimmed
from nessie_cli.render.terminal import Terminal, ago, json_text
from nessie_cli.render.text import cells

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
COLUMNS = (
    Column("NAME", "name", "fold"),
    Column("HASH", "hash"),
    Column("WHEN", room="spare"),
    Column("SUBJECT", room="cut"),
)
ROWS = [
    ("main", "8f31c0de8f31", "4 minutes ago", "nightly load"),
    ("a-very-long-name/with/many/parts/in/it", "51b0aa1751b0", "5 months ago", "日本語" * 20),
]


def test_a_pipe_gets_the_table_of_a_wide_terminal(screen, pipe) -> None:
    shown = screen(400)
    for where in (shown, pipe):
        where.terminal.print_table(COLUMNS, ROWS)
    assert pipe.lines == shown.lines
    assert pipe.lines[0].split() == ["NAME", "HASH", "WHEN", "SUBJECT"]
    assert pipe.lines[2].endswith("  " + ROWS[1][-1])


def test_a_table_in_a_pipe_has_no_limit(pipe) -> None:
    pipe.terminal.print_table(COLUMNS, [("n" * 500, "h", "now", "s" * 5000)])
    assert pipe.lines[1] == f"{'n' * 500}  h     now   {'s' * 5000}"


def test_numbers_are_aligned_at_the_right_and_wide_characters_count_twice(pipe) -> None:
    pipe.terminal.print_table(
        (Column("N", right=True), Column("NAME"), Column("X")),
        [("1", "日本", "a"), ("20", "b", "c")],
    )
    assert pipe.lines == [" N  NAME  X", " 1  日本  a", "20  b     c"]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_table_fits_the_terminal(screen, width: int) -> None:
    shown = screen(width)
    shown.terminal.print_table(COLUMNS, ROWS)
    assert shown.lines[0].split()[:2] == ["NAME", "HASH"]
    assert all(cells(line) <= width for line in shown.lines)
    assert "".join(line.split()[0] for line in shown.lines[2:]).startswith(ROWS[1][0]), (
        "names go on below, never cut"
    )
    assert ("…" in shown.text) == (width < 200)


def test_spare_columns_go_first_on_a_narrow_terminal(screen) -> None:
    headings = []
    for width in (80, 52, 40):
        shown = screen(width)
        shown.terminal.print_table(
            (*COLUMNS, Column("WHO", room="spare")), [(*row, "etl@example.org") for row in ROWS]
        )
        headings.append(shown.lines[0].split())
    assert headings == [
        ["NAME", "HASH", "WHEN", "SUBJECT", "WHO"],
        ["NAME", "HASH", "SUBJECT"],
        ["NAME", "HASH", "SUBJECT"],
    ]


def test_a_time_is_relative(screen, pipe) -> None:
    when = NOW - timedelta(minutes=4)
    assert screen().terminal.time(when) == pipe.terminal.time(when) == "4 minutes ago"
    assert screen().terminal.time(None) == pipe.terminal.time(None) == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "just now"),
        (1, "1 second ago"),
        (59, "59 seconds ago"),
        (60, "1 minute ago"),
        (7199, "1 hour ago"),
        (86400 * 13, "1 week ago"),
        (86400 * 366, "1 year ago"),
        (-5, "just now"),
        (-3600, "in the future"),
    ],
)
def test_how_long_ago_in_words(seconds: int, text: str) -> None:
    assert ago(NOW - timedelta(seconds=seconds), NOW) == text


def test_a_sentence_breaks_between_words_on_a_terminal_only(screen, pipe) -> None:
    shown = screen(width=24)
    for where in (shown, pipe):
        where.terminal.print_text("deleted branch ", Span("nightly-load", "name"), " (was 8f31c0)")
    assert shown.lines == ["deleted branch", "nightly-load (was", "8f31c0)"]
    assert pipe.lines == ["deleted branch nightly-load (was 8f31c0)"]


def test_a_command_and_a_long_word_stay_on_one_line(screen) -> None:
    shown = screen(width=24)
    shown.terminal.print_text("hint: `nessie undo v1` restores it")
    shown.terminal.print_text("  store sqlite:////var/lib/catalog.sqlite is here")
    assert shown.lines == [
        "hint: `nessie undo v1`",
        "restores it",
        "  store sqlite:////var/lib/catalog.sqlite",
        "  is here",
    ]


def test_the_colour_of_a_word_survives_a_line_break(screen) -> None:
    shown = screen(width=24, color="always")
    shown.terminal.print_text("merged into ", Span("a branch of mine", "name"))
    assert shown.lines == ["merged into \x1b[32ma branch of\x1b[0m", "\x1b[32mmine\x1b[0m"]


def test_a_question_breaks_between_words(screen) -> None:
    shown = screen(width=24)
    shown.terminal.prompt("Some commits are reachable only from it. Delete it? [y/N]")
    assert shown.text == "Some commits are\nreachable only from it.\nDelete it? [y/N] "


@pytest.mark.parametrize(
    ("choice", "environment", "terminal", "colored"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"CLICOLOR_FORCE": "1"}, False, True),
        ("auto", {"CLICOLOR_FORCE": "0"}, False, False),
        ("auto", {"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, True, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"CLICOLOR_FORCE": "1"}, True, False),
    ],
)
def test_when_there_is_colour(screen, pipe, choice, environment, *, terminal, colored) -> None:
    out = (screen() if terminal else pipe).terminal._out
    found = Terminal(out, environment=environment, color=choice)
    assert found.colored is colored
    found.print_line(Span("main", "name"), " and ", Span("x", "no such style"))
    assert out.getvalue() == ("\x1b[32mmain\x1b[0m and x\n" if colored else "main and x\n")


def test_a_coloured_table_has_the_width_of_a_plain_one(screen) -> None:
    plain, colored = screen(60), screen(60, color="always")
    for shown in (plain, colored):
        shown.terminal.print_table(COLUMNS, ROWS)
    assert "\x1b[32mmain" in colored.text
    import re

    assert [re.sub("\x1b\\[[0-9;]*m", "", line).rstrip() for line in colored.lines] == plain.lines


@settings(
    max_examples=60,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.text(st.characters(), min_size=1, max_size=30))
def test_stored_text_never_acts_on_the_terminal(screen, text: str) -> None:
    for color in ("never", "always"):
        shown = screen(color=color)
        shown.terminal.print_line(Span(text, "key"))
        shown.terminal.print_lines([[Span(text)]])
        shown.terminal.print_table((Column("A"), Column("B", room="fold")), [(text, text)])
        rest = shown.text.replace("\x1b[1m", "").replace("\x1b[0m", "")
        assert not any(
            (ord(char) < 32 and char != "\n") or 0x7F <= ord(char) < 0xA0 for char in rest
        )


def test_a_tab_or_line_break_in_a_value_does_not_break_a_record(pipe) -> None:
    pipe.terminal.print_table((Column("A"), Column("B")), [("a\tb", "c\nd")])
    pipe.terminal.print_records([[Span("a\tb"), Span("c\nd")]])
    assert pipe.text == "A     B\na\\tb  c\\nd\na\\tb\tc\\nd\n"


@settings(max_examples=60, deadline=None, print_blob=True)
@given(st.dictionaries(st.text(), st.text(st.characters())))
def test_json_is_ascii_without_control_characters_and_reads_back(document: dict[str, str]) -> None:
    text = json_text(document)
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text) == document


def test_json_is_indented_for_a_person_and_one_line_for_a_program(screen, pipe) -> None:
    shown = screen()
    shown.terminal.print_json({"a": [1]})
    pipe.terminal.print_json({"a": [1]})
    assert pipe.text == '{"a":[1]}\n'
    assert len(shown.lines) > 1
    assert json.loads(shown.text) == {"a": [1]}


def test_lines_are_written_as_they_come(pipe) -> None:
    def lines():
        yield [Span("first")]
        assert pipe.text == "first\n"
        yield [Span("second")]

    pipe.terminal.print_lines(lines(), paged=True)
    assert pipe.lines == ["first", "second"]


def test_spaces_at_the_end_of_a_line_are_dropped() -> None:
    assert trimmed([Span("a "), Span("b  ", "key"), Span("  ")]) == [Span("a "), Span("b", "key")]
    assert trimmed([Span("  ")]) == []


# -- pager: a real pseudo-terminal and a real program --------------------------------------------
@pytest.fixture
def pager(tmp_path: Path) -> dict[str, str]:
    """An environment whose pager writes what it is given, and its environment, into files."""
    program = tmp_path / "pager"
    program.write_text(f'#!/bin/sh\necho "$LESS" > {tmp_path}/less\ncat > {tmp_path}/paged\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"PAGER": str(program), "PATH": os.environ["PATH"], "LINES": "10", "COLUMNS": "80"}


def written_to_a_terminal(environment: dict[str, str], count: int, pager: bool = True) -> str:
    """What reaches the screen when so many lines are printed on a real pseudo-terminal."""
    reader, writer = pty.openpty()
    with os.fdopen(writer, "w") as out:
        Terminal(out, environment=environment, pager=pager).print_lines(
            ([Span(f"line {n}")] for n in range(count)), paged=True
        )
        out.flush()
    seen = b""
    # Where the other end is closed and everything is read, reading fails.
    with suppress(OSError):
        while part := os.read(reader, 65536):
            seen += part
    os.close(reader)
    return seen.decode()


def test_a_long_listing_on_a_terminal_goes_through_the_pager(pager, tmp_path) -> None:
    assert written_to_a_terminal(pager, 30) == ""
    assert (tmp_path / "paged").read_text().splitlines() == [f"line {n}" for n in range(30)]
    assert (tmp_path / "less").read_text() == "FRX\n"


def test_a_user_s_own_less_options_win(pager, tmp_path) -> None:
    written_to_a_terminal(pager | {"LESS": "S"}, 30)
    assert (tmp_path / "less").read_text() == "S\n"


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"NESSIE_PAGER": ""},
        {"NESSIE_PAGER": "cat"},
        {"NESSIE_PAGER": "/no/such/pager"},
        {"NESSIE_PAGER": "'unclosed"},
    ],
)
def test_without_a_pager_the_listing_is_written_itself(pager, tmp_path, change) -> None:
    assert written_to_a_terminal(pager | change, 30, pager=bool(change)).split("\r\n")[:2] == [
        "line 0",
        "line 1",
    ]
    assert not (tmp_path / "paged").exists()


def test_a_short_listing_needs_no_pager(pager, tmp_path) -> None:
    assert written_to_a_terminal(pager, 9 - 1).count("line") == 8
    assert not (tmp_path / "paged").exists()


def test_leaving_the_pager_early_is_not_an_error(pager, tmp_path) -> None:
    program = tmp_path / "quit"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    assert written_to_a_terminal(pager | {"NESSIE_PAGER": str(program)}, 50_000) == ""


def test_a_failure_on_the_way_leaves_no_pager_behind(pager, tmp_path) -> None:
    def lines():
        yield from ([Span(str(n))] for n in range(20))
        raise ValueError("gone")

    reader, writer = pty.openpty()
    with os.fdopen(writer, "w") as out, pytest.raises(ValueError, match="gone"):
        Terminal(out, environment=pager).print_lines(lines(), paged=True)
    os.close(reader)
    assert (tmp_path / "paged").read_text().split() == [str(n) for n in range(20)]


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_the_width_is_that_of_the_terminal() -> None:
    import fcntl
    import struct
    import termios

    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 133, 0, 0))
    with os.fdopen(writer, "w") as out:
        assert Terminal(out).is_terminal
        assert Terminal(out).width == 133
        assert Terminal(out, environment={"COLUMNS": "70"}).width == 70
        assert Terminal(out, environment={"COLUMNS": "nonsense"}).width == 133
        assert Terminal(out, environment={"COLUMNS": "1"}).width == 20
    os.close(reader)
