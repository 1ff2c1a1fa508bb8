"""A page as data, and the small part of Markdown that hand-written texts use.

Headings (`#` the title line, `##` sections), paragraphs, fenced code, lists; an item that begins with code and a colon defines a term. Anything
else is refused: what is written has to look right in roff as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

FENCE = "```"


class Paragraph(NamedTuple):
    """Text that is filled."""

    text: str


class Code(NamedTuple):
    """Lines that stay as they are; `language` is `console` for what can be typed."""

    language: str
    lines: tuple[str, ...]


class Item(NamedTuple):
    """One item of a list; with a term it is a definition. `blocks` follow its text."""

    term: str
    text: str
    blocks: tuple[Code, ...] = ()


class Items(NamedTuple):
    """A list."""

    items: tuple[Item, ...]


Block = Paragraph | Code | Items


class Section(NamedTuple):
    """A part of a page; the part before the first heading has no title."""

    title: str
    blocks: tuple[Block, ...]


class Page(NamedTuple):
    """One manual page: `nessie-log`, 1, its line in lists of pages, its parts, other names that lead to it."""

    name: str
    number: int
    summary: str
    sections: tuple[Section, ...]
    aliases: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The page as texts mention it: `nessie-log(1)`."""
        return f"{self.name}({self.number})"


class Malformed(ValueError):
    """A text uses what this part of Markdown does not have."""


def read_page(text: str) -> Page:
    """A page that begins with the line `# nessie-x(7) - summary`."""
    first, _, rest = text.partition("\n")
    found = re.fullmatch(r"# ([a-z-]+)\((\d)\) - (.+)", first)
    if not found:
        raise Malformed(f"{first!r}: begin with `# nessie-x(7) - summary`")
    return Page(found[1], int(found[2]), found[3], tuple(sections(rest)))


def sections(text: str) -> Iterator[Section]:
    """The parts of a text by its `##` headings."""
    for part in re.split(r"^(?=## )", text, flags=re.MULTILINE):
        title, _, body = part.partition("\n") if part.startswith("## ") else ("", "", part)
        if body.strip() or title:
            yield Section(title.removeprefix("## ").strip(), tuple(blocks(body)))


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a part."""
    lines = text.splitlines()
    position = 0
    while position < len(lines):
        line = lines[position]
        if not line.strip():
            position += 1
        elif line.startswith(FENCE):
            code, position = _code(lines, position, "")
            yield code
        elif line.startswith("- "):
            items, position = _items(lines, position)
            yield items
        elif re.match(r"[#>|\t]| {2}|\d+\. |\* |<", line):
            raise Malformed(f"{line!r}: only paragraphs, `-` lists and fenced code")
        else:
            words, position = _filled(lines, position)
            yield Paragraph(words)


def _code(lines: list[str], position: int, indent: str) -> tuple[Code, int]:
    end = next((i for i in range(position + 1, len(lines)) if lines[i] == indent + FENCE), None)
    if end is None:
        raise Malformed(f"{lines[position]!r}: is never closed")
    language = lines[position].strip().removeprefix(FENCE)
    return Code(
        language, tuple(line.removeprefix(indent) for line in lines[position + 1 : end])
    ), end + 1


def _filled(lines: list[str], position: int) -> tuple[str, int]:
    found = []
    while (
        position < len(lines)
        and lines[position].strip()
        and not lines[position].startswith(("- ", FENCE))
    ):
        found.append(lines[position].strip())
        position += 1
    return " ".join(found), position


def _items(lines: list[str], position: int) -> tuple[Items, int]:
    items: list[Item] = []
    while position < len(lines):
        line = lines[position]
        if line.startswith("- "):
            found = re.fullmatch(r"((?:`[^`]+`(?:, )?)+): (.*)", line[2:])
            items.append(Item(found[1], found[2]) if found else Item("", line[2:]))
            position += 1
        elif line.startswith("  " + FENCE):
            code, position = _code(lines, position, "  ")
            items[-1] = items[-1]._replace(blocks=(*items[-1].blocks, code))
        elif line.startswith("  "):
            items[-1] = items[-1]._replace(text=f"{items[-1].text} {line.strip()}")
            position += 1
        elif (
            not line.strip()
            and position + 1 < len(lines)
            and lines[position + 1].startswith(("- ", "  " + FENCE))
        ):
            position += 1
        else:
            break
    return Items(tuple(items)), position


INLINE = re.compile(
    r"""`(?P<code>[^`]+)`
    | \*\*(?P<bold>[^*]+)\*\*
    | \*(?P<emphasis>[^*\s][^*]*)\*
    | (?P<page>\bnessie[a-z-]*\([17]\))
    | \[(?P<link>[^\]]+)\]\((?P<url>[^)]+)\)""",
    re.VERBOSE,
)
"""What stands out in a text: code, bold, emphasis, another page, a link."""
