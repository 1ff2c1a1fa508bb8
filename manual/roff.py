r"""Pages as roff for `man`.

They use only these few requests, because `nessie help` parses the same files (render/manual.py):

`.TH`, `.SH`, `.PP`, `.TP`, `.IP \(bu 2`, `.EX` and `.EE`, `.RS 4` and `.RE`, `.so`; in a line
`\fB`, `\fI`, `\fR`, `\-`, `\e`, `\&`, `\%`, `\(aq`, `\(ga`, `\(ha`, `\(ti`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from manual.document import INLINE, Block, Code, Items, Page, Paragraph

_LITERAL = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}


def page(of: Page) -> str:
    """Returns the whole file."""
    title = of.name.upper().replace("-", "\\-")
    lines = [
        '.\\" Written by `make docs`; the texts are in manual/ and in the commands.',
        f'.TH {title} {of.number} "" "nessie" "Manual of nessie"',
        ".SH NAME",
        f"{_literal(of.name)} \\- {inline(of.summary)}",
    ]
    for section in of.sections:
        lines += [f".SH {section.title or 'DESCRIPTION'}", *_blocks(section.blocks)]
    return "\n".join(lines) + "\n"


def alias(of: Page) -> str:
    """Returns the file for another name of a page."""
    return f".so man{of.number}/{of.name}.{of.number}\n"


def _blocks(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Paragraph):
            yield ".PP"
            yield _line(inline(block.text))
        elif isinstance(block, Code):
            yield ".PP"
            yield from _code(block)
        else:
            yield from _items(block)


def _code(block: Code) -> Iterator[str]:
    yield ".RS 4"
    yield ".EX"
    yield from (_line(_literal(line)) for line in block.lines)
    yield ".EE"
    yield ".RE"


def _items(block: Items) -> Iterator[str]:
    for item in block.items:
        if item.term:
            yield ".TP"
            yield _line(inline(item.term))
        else:
            yield ".IP \\(bu 2"
        yield _line(inline(item.text)) if item.text else "\\&"
        for code in item.blocks:
            yield ".RS 4"
            yield ".EX"
            yield from (_line(_literal(line)) for line in code.lines)
            yield ".EE"
            yield ".RE"


def inline(text: str) -> str:
    """Returns a text with its markup as fonts."""
    found = []
    position = 0
    for mark in INLINE.finditer(text):
        found.append(_plain(text[position : mark.start()]))
        found.append(_marked(mark))
        position = mark.end()
    return "".join([*found, _plain(text[position:])])


def _marked(mark: re.Match[str]) -> str:
    if mark["link"]:
        return f"{_plain(mark['link'])} ({_literal(mark['url'])})"
    if mark["page"]:
        name, number = mark["page"][:-3], mark["page"][-3:]
        return f"\\fB\\%{_literal(name)}\\fR{number}"
    if mark["emphasis"]:
        return f"\\fI{_plain(mark['emphasis'])}\\fR"
    return f"\\fB{_unbroken(mark['code']) if mark['code'] else _plain(mark['bold'])}\\fR"


def _unbroken(code: str) -> str:
    """Returns code without hyphenation, because readers copy it."""
    return " ".join(f"\\%{_literal(word)}" for word in code.split(" "))


def _literal(text: str) -> str:
    """Returns a text with every character printed unchanged, so that it can be pasted."""
    return "".join(_LITERAL.get(c, c) for c in text)


def _plain(text: str) -> str:
    return (
        text.replace("\\", "\\e")
        .replace("'", "\\(aq")
        .replace("^", "\\(ha")
        .replace("~", "\\(ti")
        .replace("`", "\\(ga")
    )


def _line(text: str) -> str:
    return "\\&" + text if text.startswith((".", "'")) or not text else text
