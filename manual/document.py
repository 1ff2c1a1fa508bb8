"""A page as data, and the subset of Markdown that hand-written texts use.

It has headings (`#` the title line, `##` sections), paragraphs, fenced code and lists. A list item
that begins with code and a colon defines a term. Anything else is refused, because it must also
look right in roff.
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
    """Verbatim lines; `language` is `console` for commands."""

    language: str
    lines: tuple[str, ...]


class Item(NamedTuple):
    """An item of a list; with a term it is a definition. `blocks` follow its text."""

    term: str
    text: str
    blocks: tuple[Code, ...] = ()


class Items(NamedTuple):
    """A list."""

    items: tuple[Item, ...]


Block = Paragraph | Code | Items


class Section(NamedTuple):
    """A section of a page; the text before the first heading has no title."""

    title: str
    blocks: tuple[Block, ...]


class Page(NamedTuple):
    """A manual page: name, number (of its section), summary, sections, and other names for it."""

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
    """A text uses unsupported Markdown."""


def read_page(text: str) -> Page:
    """Parses a page that begins with the line `# nessie-x(7) - summary`."""
    first, _, rest = text.partition("\n")
    found = re.fullmatch(r"# ([a-z-]+)\((\d)\) - (.+)", first)
    if not found:
        raise Malformed(f"{first!r}: begin with `# nessie-x(7) - summary`")
    return Page(found[1], int(found[2]), found[3], tuple(sections(rest)))


def sections(text: str) -> Iterator[Section]:
    """Returns the sections of a text, by its `##` headings."""
    for part in re.split(r"^(?=## )", text, flags=re.MULTILINE):
        title, _, body = part.partition("\n") if part.startswith("## ") else ("", "", part)
        if body.strip() or title:
            yield Section(title.removeprefix("## ").strip(), tuple(blocks(body)))


def blocks(text: str) -> Iterator[Block]:
    """Returns the blocks of a section."""
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
"""The inline markup of a text: code, bold, emphasis, another page, a link."""
