"""Output on a terminal: it fits, and control characters in stored text have no effect."""

from __future__ import annotations

import re

import pytest

from tests.command.terminal import STYLE, columns
from tests.terminal.conftest import COMBINED, WIDE

READING = [
    "log --stat",
    "log --oneline --stat",
    "log --graph --all",
    "log --all -- db",
    "show dev~1",
    "show main~23",
    "content list",
    "content list -v",
    "content list --tree",
    "content show db.orders",
    "content show db.日本語",
    "content history db.日本語",
    "branch",
    "branch -v",
    "tag -v",
    "reflog",
    "reflog -v --all",
    "status",
    "diff dev main",
    "diff dev main --stat",
    "diff dev main --name-status",
    "blame",
    "commit -m mine",
    "merge dev --dry-run",
    "merge dev",
    "transplant main..dev",
    "content show db.orders --ref nowhere",
    "content show db.missing",
    "fsck",
    "stats",
    "stats main..dev -n 3",
]
ESCAPES = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]")
WHOLE = re.compile(
    r"^(nessie: |\S+ \(feature/|conflict: |\s+resolve |\s+or |[\s\w-]+\s+\S+$|\s*\w+ db\S+\s+\S+$)"
)
"""Lines that may be wider than the terminal: prose, which wraps, and text to copy: commands,
names of references, single values."""


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_every_listing_fits_the_terminal(ordinary, show, width):
    for command in READING:
        shown = show(ordinary, *command.split(), width=width, PAGER="cat")

        assert shown.code in (0, 3, 4), command
        assert shown.lines, command
        too_wide = [line for line in shown.lines if columns(line) > width and not WHOLE.match(line)]
        assert too_wide == [], command


@pytest.mark.parametrize("width", [60, 200])
def test_findings_of_an_audit_fit_the_terminal(ordinary, show, width):
    (ordinary.folder / "own").mkdir()
    ordinary.ok("-C", "own", "init")
    place = f"/nowhere/{WIDE[1] * 20}.metadata.json"
    ordinary.ok(
        "-C",
        "own",
        "content",
        "put",
        WIDE[0],
        "--type",
        "iceberg-table",
        "--metadata-location",
        place,
        "-m",
        "fresh",
    )

    shown = show(ordinary, "-C", "own", "audit", width=width, PAGER="cat")

    assert shown.code == 1
    assert [
        line
        for line in shown.lines
        if columns(line) > width and not line.startswith("METADATA_MISSING: ")
    ] == []


@pytest.mark.parametrize("command", READING)
def test_stored_control_characters_are_never_printed(nasty, show, command):
    args = command.split()
    on_terminal = show(nasty, *args, PAGER="cat")
    piped = nasty(*args)
    documents = nasty("--json", *args)

    # Tabs separate the cells of records, which --name-status also prints on a terminal; a terminal
    # ends lines with \r\n.
    assert ESCAPES.sub(
        "", on_terminal.plain.replace("\r\n", "\n").replace("\t", "")
    ) == on_terminal.plain.replace("\r\n", "\n").replace("\t", "")
    assert set(STYLE.findall(on_terminal.raw)) <= {
        f"\x1b[{style}m"
        for style in ("0", "1", "2", "31", "32", "33", "34", "35", "36", "1;31", "1;32")
    }
    for text in (piped.out, piped.err, documents.out, documents.err):
        assert ESCAPES.findall(text.replace("\t", "")) == []
    assert documents.out.isascii()


def test_escaped_text_represents_the_stored_text(nasty, show):
    shown = show(nasty, "show", "main~23", width=200, PAGER="cat")

    assert (
        r"\x1b[31mred\x1b[0m \x07bell \x9b2Jgone \r\n\tback \u202eesrever \x1b]0;title\x07 \x00nul \u200bzero"
        in shown.plain
    )


@pytest.mark.parametrize("command", ["content list", "branch -v", "reflog", "diff dev main --stat"])
def test_columns_are_aligned_for_any_text(ordinary, show, command):
    heading, *rows = show(ordinary, *command.split(), width=200, PAGER="cat").lines
    starts = {columns(heading[: found.start()]) for found in re.finditer(r"(?<!\S)\S", heading)}

    assert any(text in row for text in (*WIDE, COMBINED) for row in rows) or command.startswith(
        "branch"
    )
    for row in rows:
        cells = [columns(row[: found.start()]) for found in re.finditer(r"(?<=  )\S", row)]
        # Numbers are aligned to the right.
        assert len([cell for cell in cells if cell not in starts]) <= (
            2 if "branch" in command else 1
        ), row


def test_a_narrow_terminal_causes_no_error(ordinary, show):
    for width in (1, 7, 20):
        assert show(ordinary, "log", "--oneline", width=width, PAGER="cat").code == 0
        assert show(ordinary, "content", "list", width=width, PAGER="cat").code == 0
        assert show(ordinary, "status", width=width, PAGER="cat").code == 0


def test_nothing_is_cut_in_a_pipe(nasty, show):
    whole = nasty("content", "list").out

    assert nasty("content", "list", env={"COLUMNS": "20"}).out == whole
    assert "a-name-that-goes-on-and-on-" * 8 in whole
