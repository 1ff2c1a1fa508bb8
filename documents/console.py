"""Runs the console blocks of a page, and puts their output into the page.

The blocks of a page run in one session, from top to bottom. A comment before a block changes that:

`<!-- file: NAME -->`      the block is a file: it is saved as NAME
`<!-- setup: COMMAND -->`  run a command that the page does not show; stands by itself
`<!-- no output -->`       run the block, and do not show its output
`<!-- not run: REASON -->` the block is not run, for one of `REASONS`

`<!-- hashes: NAME -->` anywhere on a page gives its hashes values of their own. Otherwise, the
first hashes of each page are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from documents.services import services
from documents.session import ROOT, Session, SessionFailed

DOCS = ROOT / "docs"
_HASHES = re.compile(r"^<!-- hashes: (\S+) -->$", re.MULTILINE)
REASONS = {
    "network": "It downloads packages.",
    "tested elsewhere": "A test of its own runs it; the comment names that test.",
    "service": "It needs a service that a test cannot start.",
}
_PART = re.compile(
    r"^<!-- (?P<word>file|setup|no output|not run)(?:: (?P<value>.*?))? -->\n"
    r"|^```(?P<language>\w*)\n(?P<text>.*?)^```\n",
    re.DOTALL | re.MULTILINE,
)


class Block(NamedTuple):
    """A fenced block: where its text is in the page, and the comment before it."""

    language: str
    text: str
    start: int
    end: int
    word: str
    value: str


class Run(NamedTuple):
    """A page after a run: its text with the present output, and the commands that ran."""

    text: str
    commands: int


def pages() -> list[Path]:
    """The pages whose console blocks are run here. `tests/manual` runs those of the manual."""
    paths = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [page for page in paths if page.parent.name not in ("commands", "json")]


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page and its setup commands, in order."""
    word = value = ""
    for part in _PART.finditer(page):
        if part["word"] == "setup":
            yield Block("setup", part["value"], part.start(), part.end(), "", "")
        elif part["word"]:
            word, value = part["word"], part["value"] or ""
        else:
            yield Block(
                part["language"], part["text"], part.start("text"), part.end("text"), word, value
            )
            word = value = ""


def runs(page: str) -> bool:
    """Whether there is anything to run on a page."""
    return any(block.language == "console" and block.word != "not run" for block in blocks(page))


def run(page: str) -> Run:
    """Run a page from top to bottom. Raises `SessionFailed` if a hidden command fails."""
    steps = [(block, command) for block in blocks(page) for command in _commands(block)]
    hashes = found_name[1] if (found_name := _HASHES.search(page)) else ""
    with services(page) as replaced, Session(replaced=replaced, hashes=hashes) as session:
        outputs = session.run(command for _, command in steps)
    shown: dict[int, str] = {}
    block_at = {block.start: block for block, _ in steps}
    for (block, command), output in zip(steps, outputs, strict=True):
        if block.language == "console":
            text = "".join(f"{mark} {line}\n" for mark, line in _marked(command))
            shown[block.start] = shown.get(block.start, "") + text
            shown[block.start] += "" if block.word == "no output" else output
        elif output:
            raise SessionFailed(f"{command}\n{output}")
    for start in sorted(shown, reverse=True):
        page = f"{page[:start]}{shown[start]}{page[block_at[start].end :]}"
    return Run(page, sum(block.language == "console" for block, _ in steps))


def _commands(block: Block) -> Iterator[str]:
    """The commands of a block. A line that begins with `> ` continues the command before it."""
    if block.word == "file":
        folder = Path(block.value).parent
        yield f"mkdir -p {folder}; cat >{block.value} <<'END OF FILE'\n{block.text}END OF FILE"
    elif block.language == "setup":
        log = '"$DOCUMENTS_HOME/setup"'
        yield f"{{ {block.text}\n}} >{log} 2>&1 || {{ cat {log}; false; }}"
    elif block.language == "console" and block.word != "not run":
        yield from (
            re.sub(r"^> ", "", command[2:].rstrip("\n"), flags=re.MULTILINE)
            for command in re.findall(r"^\$ .*\n(?:> .*\n)*", block.text, re.MULTILINE)
        )


def _marked(command: str) -> Iterator[tuple[str, str]]:
    """The lines of a command with the sign that stands before each."""
    for number, line in enumerate(command.split("\n")):
        yield ("> " if number else "$ ")[0], line
