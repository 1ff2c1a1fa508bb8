"""`nessie resolve merge --rows` asks about each row and cell in conflict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.lake import Lake
from tests.cli.rows import Rows, read, write
from tests.command.process import Forker, Nessie, fresh
from tests.command.terminal import Running

RESOLVE = ("resolve", "merge", "dev", "--rows", "--key", "id")
CHANGED: Rows = {1: ("ours", 1), 2: ("ours", 1), 3: ("ours", 1)}


@pytest.fixture
def colliding(tmp_path: Path, forker: Forker) -> tuple[Nessie, Lake]:
    """Both sides change one cell of each of three rows differently, and theirs another one."""
    nessie = fresh(tmp_path, forker)
    assert nessie("init").code == 0
    lake = Lake(str(nessie.folder / ".nessie" / "store.sqlite"), nessie.folder)
    write(lake, "main", CHANGED)
    write(lake, "dev", {1: ("theirs", 2), 2: ("theirs", 2), 3: ("theirs", 2)})
    return nessie, lake


def answer(running: Running, *answers: str) -> int:
    for number, text in enumerate(answers, 1):
        running.wait_for(f"{number} of 3: keep [o]urs")
        running.type(f"{text}\n")
    return running.end().code


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (("o", "t", "ours"), {1: ("ours", 2), 2: ("theirs", 2), 3: ("ours", 2)}),
        (("o", "T"), {1: ("ours", 2), 2: ("theirs", 2), 3: ("theirs", 2)}),
        (("O",), {1: ("ours", 2), 2: ("ours", 2), 3: ("ours", 2)}),
    ],
)
def test_answers(
    colliding: tuple[Nessie, Lake],
    start: Callable[..., Running],
    answers: tuple[str, ...],
    expected: Rows,
) -> None:
    nessie, lake = colliding
    running = start(nessie, *RESOLVE)
    running.wait_for("theirs theirs")
    assert answer(running, *answers) == 0
    assert read(lake, "main") == expected


@pytest.mark.parametrize(("text", "code"), [("s", 3), ("a", 1)])
def test_no_decision_changes_nothing(
    colliding: tuple[Nessie, Lake], start: Callable[..., Running], text: str, code: int
) -> None:
    nessie, lake = colliding
    running = start(nessie, *RESOLVE)
    running.wait_for("1 of 3: keep [o]urs")
    running.type(f"{text}\n")
    if text == "s":
        # The table is asked about as a whole, and skipped.
        running.wait_for("[e]dit, [s]kip")
        running.type("s\n")
    assert running.end().code == code
    assert read(lake, "main") == CHANGED
