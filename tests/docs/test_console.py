"""Every console block of every page prints what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from documents import console, pictures
from documents.session import ROOT

PAGES = [page for page in console.pages() if "```console" in page.read_text(encoding="utf-8")]


def _blocks() -> list[tuple[Path, console.Block]]:
    return [(page, block) for page in PAGES for block in console.blocks(page.read_text("utf-8"))]


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if console.runs(page.read_text("utf-8"))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_a_page_shows_what_its_commands_print(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = console.run(text)

    assert found.commands
    assert found.text == text, "`make docs` writes the new output"


def test_a_block_that_is_not_run_has_a_reason() -> None:
    given = [(page, block.value) for page, block in _blocks() if block.word == "not run"]

    assert [
        (page.name, reason)
        for page, reason in given
        if reason.split(", ")[0] not in console.REASONS
    ] == []


def test_a_test_that_is_said_to_run_a_block_exists() -> None:
    named = [
        block.value.partition(", ")[2]
        for _, block in _blocks()
        if block.value.startswith("tested elsewhere")
    ]

    assert len(named) > 3
    assert [place for place in named if not place or not (ROOT / place).exists()] == []


def test_output_that_is_not_as_shown_is_found() -> None:
    page = "```console\n$ nessie init\nsomething else\n$ nessie log nowhere\n```\n"

    assert console.run(page).text == (
        "```console\n$ nessie init\ncreated workspace /home/ann/lake/.nessie on"
        " /home/ann/lake/.nessie/store.sqlite, default branch main\n"
        "$ nessie log nowhere\nnessie: no branch or tag 'nowhere'\n"
        "`nessie branch` and `nessie tag` list the references\n[exit code 4]\n```\n"
    )


def test_hashes_and_ids_are_the_same_after_each_run() -> None:
    page = "```console\n$ nessie init\n$ nessie content put db --type namespace -m db\n$ nessie show\n```\n"
    first, second = (console.run(page).text for _ in range(2))

    assert re.search(r"^commit [0-9a-f]{12} ", first, re.MULTILINE)
    assert first == second


@pytest.mark.parametrize("picture", pictures.PICTURES, ids=lambda picture: picture.name)
def test_a_picture_shows_what_its_commands_print(picture: pictures.Picture) -> None:
    shown = (pictures.FOLDER / f"{picture.name}.svg").read_text(encoding="utf-8")

    assert pictures.drawn(picture) == shown, "`make docs` draws it anew"
    assert "https://" not in shown.replace("https://www.textualize.io", "")
