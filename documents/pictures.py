"""Pictures of terminals as SVG, drawn from real runs."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from documents.console import DOCS, blocks
from documents.session import COLUMNS, Session

FOLDER = DOCS / "pictures"
# A picture must not load fonts from another site.
_FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


class Picture(NamedTuple):
    """The commands of a picture.

    The commands of `before` are not shown. `answers` are typed into the last command.
    """

    name: str
    title: str
    before: tuple[str, ...]
    commands: tuple[str, ...]
    answers: str = ""


def _commit(branch: str, key: str, message: str = "append to sales.orders: 1 row") -> str:
    return f"nessie content put {key} --type namespace --ref {branch} -m '{message}'"


_CORRECTION = "overwrite sales.orders: 1 row added, 1 deleted"
_COMMITS_OF_THE_DEMO = (
    "nessie init",
    _commit("main", "a", "create namespace sales"),
    _commit("main", "b", "create table sales.orders"),
    _commit("main", "c"),
    "nessie branch experiment",
    _commit("experiment", "d"),
    "nessie merge experiment",
    _commit("main", "e"),
    _commit("experiment", "f"),
    "nessie merge experiment",
    _commit("main", "g", _CORRECTION),
    _commit("experiment", "h", _CORRECTION),
    "nessie merge experiment",
    _commit("main", "i", "orders are invoices"),
    "nessie tag month-end",
)
PICTURES = (
    Picture(
        "first-catalog",
        "a table on a branch",
        ("nessie init", "python load.py main ann 10.00", "nessie branch experiment"),
        (
            "python load.py experiment eve 3.00",
            "nessie diff main experiment --deep",
            "nessie merge experiment --into main",
            "nessie log --graph --oneline",
        ),
    ),
    Picture(
        "conflict",
        "a conflict",
        ("nessie demo lake . --conflict",),
        ("nessie merge nightly", "nessie merge nightly --theirs sales.customers"),
    ),
    Picture(
        "deep-diff",
        "what changed inside of a table",
        ("nessie demo lake .",),
        ("nessie diff main...nightly --stat", "nessie diff main...nightly --deep -- sales.orders"),
    ),
    Picture(
        "resolve",
        "conflicts, one by one",
        ("nessie demo lake . --conflict",),
        ("nessie resolve merge nightly",),
        "t\n",
    ),
    Picture(
        "graph",
        "the commits of the demo",
        _COMMITS_OF_THE_DEMO,
        ("nessie log --graph --all --oneline",),
    ),
)


def every() -> Iterator[tuple[Path, str]]:
    """Every picture and the file that holds it."""
    for picture in PICTURES:
        yield FOLDER / f"{picture.name}.svg", drawn(picture)


def drawn(picture: Picture) -> str:
    """Run the commands of a picture and draw the terminal."""
    with Session(colours=True) as session:
        session.write("load.py", _load_program())
        commands = [*(f"{line} >/dev/null 2>&1" for line in picture.before), *picture.commands]
        outputs = session.run(commands, answers=picture.answers)[len(picture.before) :]
    console = Console(
        record=True,
        width=COLUMNS,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    for command, output in zip(picture.commands, outputs, strict=True):
        console.print(Text(f"$ {command}", style="bold"), soft_wrap=True)
        console.print(Text.from_ansi(output.rstrip("\n")), soft_wrap=True)
    return console.export_svg(
        title=picture.title, unique_id=f"nessie-{picture.name}", code_format=_FORMAT
    )


def _load_program() -> str:
    """The program that the first page for a reader shows."""
    page = (DOCS / "get-started" / "first-catalog.md").read_text(encoding="utf-8")
    return next(block.text for block in blocks(page) if block.value == "load.py")
