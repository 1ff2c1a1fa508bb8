"""Manual pages as lines for a terminal, without the program `man`.

Reads only the requests of our own pages (`.SH`, `.PP`, `.TP`, `.IP`, `.RS`, `.RE`, `.EX`, `.EE`,
and fonts in a line), not roff in general.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nessie_cli.render.spans import Line, Span
from nessie_cli.render.text import cells

INDENT = 4
HANG = 8
WIDEST = 100
"""The most columns, because longer lines are hard to read."""
_CHARACTERS = {
    "\\-": "-",
    "\\e": "\\",
    "\\&": "",
    "\\%": "",
    "\\(aq": "'",
    "\\(ga": "`",
    "\\(ha": "^",
    "\\(ti": "~",
    "\\(bu": "-",
}
_ESCAPE = r"\\f[BIR]|\\\(..|\\."
_STYLES = {"\\fB": "key", "\\fI": "label", "\\fR": ""}

Word = list[Span]


def manual_lines(source: str, width: int) -> Iterator[Line]:
    """Returns the lines of a page in `width` columns; examples are not wrapped."""
    return _ManualPage(min(width, WIDEST)).lines(source)


class _ManualPage:
    def __init__(self, width: int) -> None:
        self._width = width
        self._indent = INDENT
        self._hang = 0
        self._gap = False
        self._below_heading = False
        self._started = False
        self._verbatim = False
        self._tag: Word | None = None
        self._tag_follows = False

    def lines(self, source: str) -> Iterator[Line]:
        for line in source.splitlines():
            if line.startswith("."):
                yield from self._request(line)
            elif self._verbatim:
                yield from self._spaced([[Span(" " * (self._indent + self._hang)), *_spans(line)]])
            elif self._tag_follows:
                self._tag, self._tag_follows = _spans(line), False
            else:
                yield from self._spaced(self._filled(line))

    def _request(self, line: str) -> Iterator[Line]:
        name, _, rest = line.partition(" ")
        if name == ".SH":
            self._indent, self._hang, self._gap = INDENT, 0, True
            yield from self._spaced([[Span(rest, "heading")]])
            self._below_heading = True
        elif name == ".PP":
            self._hang, self._gap = 0, not self._below_heading
        elif name in (".TP", ".IP"):
            self._gap, self._tag_follows = not self._below_heading, name == ".TP"
            self._hang = HANG if name == ".TP" else 2
            self._tag = None if name == ".TP" else [Span("-")]
        elif name in (".RS", ".RE"):
            self._indent += INDENT if name == ".RS" else -INDENT
        elif name in (".EX", ".EE"):
            self._verbatim = name == ".EX"

    def _spaced(self, lines: list[Line]) -> Iterator[Line]:
        if self._gap and self._started:
            yield []
        self._gap, self._started, self._below_heading = False, True, False
        yield from lines

    def _filled(self, line: str) -> list[Line]:
        tag, self._tag = self._tag, None
        text = self._wrapped(_spans(line), self._indent + self._hang)
        if tag is None:
            return text
        above = self._wrapped(tag, self._indent)
        room = self._hang - sum(cells(span.text) for span in tag)
        if len(above) == 1 and room > 0 and text:
            return [[*above[0], Span(" " * room), *text[0][1:]], *text[1:]]
        return [*above, *text]

    def _wrapped(self, spans: Word, margin: int) -> list[Line]:
        """Wraps words to the width of the page, with a margin."""
        rows: list[list[Span]] = []
        used = self._width + 1
        for word in _split_words(spans):
            length = sum(cells(span.text) for span in word)
            if used + 1 + length > self._width:
                rows.append([Span(" " * margin)])
                used = margin
            else:
                rows[-1].append(Span(" "))
                used += 1
            rows[-1] += word
            used += length
        return [*rows]


def _spans(line: str) -> Word:
    spans: Word = []
    style = ""
    position = 0
    for escape in re.finditer(_ESCAPE, line):
        spans.append(Span(line[position : escape.start()], style))
        if escape[0] in _STYLES:
            style = _STYLES[escape[0]]
        else:
            spans.append(Span(_CHARACTERS.get(escape[0], ""), style))
        position = escape.end()
    return [span for span in (*spans, Span(line[position:], style)) if span.text]


def _split_words(spans: Word) -> Iterator[Word]:
    word: Word = []
    for text, style in spans:
        first, *others = text.split(" ")
        if first:
            word.append(Span(first, style))
        for other in others:
            if word:
                yield word
            word = [Span(other, style)] if other else []
    if word:
        yield word
