"""Quoting for bash, which passes a line with quotes and replaces text after a word break."""

from __future__ import annotations

from nessie_cli.cli.completion.candidates import Candidates, is_open

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:=@%+,-~^")
_CUT = "...)"
_REPLACED_AS_WELL = "@"
"""A word break, for host names, that bash replaces together with the text after it."""
_ESCAPED_IN_QUOTES = '"\\$`'


def _with_description(text: str, description: str, width: int, columns: int) -> str:
    line = f"{text:<{width}}({description})" if description else text
    if len(line) < columns or len(text) + len(_CUT) >= columns:
        return line
    return line[: columns - len(_CUT) - 1] + _CUT


class ShellLine:
    """A line parsed as the shell does: words without quotes, and the kept part of the last."""

    def __init__(self, line: str, breaks: str) -> None:
        self.words = [""]
        self._breaks = breaks
        self._kept = ""
        self._quote = ""
        self._in_word = False
        self._read(line)

    def insert(self, candidate: str) -> str:
        """Returns the text that replaces bash's part of the last word."""
        rest = candidate[len(self._kept) :]
        if self._quote:
            return _quoted(rest, self._quote)
        return _escaped(rest) + ("" if is_open(candidate) else " ")

    def replies(self, candidates: Candidates, *, is_listing: bool, columns: int) -> list[str]:
        """Returns what goes into COMPREPLY.

        Several candidates have their descriptions if bash lists them.
        """
        inserts = [self.insert(text) for text, _ in candidates]
        if len(candidates) > 1 and is_listing and any(description for _, description in candidates):
            width = max(map(len, inserts)) + 2
            return [
                _with_description(text, description, width, columns)
                for text, (_, description) in zip(inserts, candidates, strict=True)
            ]
        return inserts

    def _read(self, line: str) -> None:
        characters = iter(line)
        for c in characters:
            if self._quote == "'" or (self._quote and c not in (self._quote, "\\")):
                self._close() if c == self._quote else self._add(c)
            elif c == self._quote:
                self._close()
            elif c == "\\":
                self._add_escaped(next(characters, ""))
            elif c in "\"'":
                self._open(c)
            elif c.isspace():
                self._end_word()
            else:
                self._add(c)
                self._break_at(c)

    def _add(self, c: str) -> None:
        self.words[-1] += c
        self._in_word = True

    def _add_escaped(self, c: str) -> None:
        self._add(c if not self._quote or c in _ESCAPED_IN_QUOTES else "\\" + c)

    def _open(self, quote: str) -> None:
        self._quote = quote
        self._in_word = True
        self._kept = self.words[-1]

    def _close(self) -> None:
        self._break_at(self._quote)
        self._quote = ""

    def _break_at(self, c: str) -> None:
        if c in self._breaks:
            self._kept = self.words[-1][:-1] if c == _REPLACED_AS_WELL else self.words[-1]

    def _end_word(self) -> None:
        if self._in_word:
            self.words.append("")
        self._kept = ""
        self._in_word = False


def _escaped(text: str) -> str:
    return "".join(c if c in _PLAIN or ord(c) > 127 else "\\" + c for c in text)  # noqa: PLR2004 - beyond ASCII nothing is special


def _quoted(text: str, quote: str) -> str:
    if quote == "'":
        return text.replace("'", "'\\''")
    return "".join("\\" + c if c in _ESCAPED_IN_QUOTES else c for c in text)
