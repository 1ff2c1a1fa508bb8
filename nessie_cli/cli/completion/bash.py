"""Quoting for bash: it passes a line with its quotes, and inserts replies in the place of what follows the last word break."""

from __future__ import annotations

from nessie_cli.cli.completion.candidates import Candidates, is_open

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:=@%+,-~^")
_CUT = "...)"
_REPLACED_AS_WELL = "@"
"""Bash breaks words here, for the names of hosts, but replaces the character together with what follows it."""
_ESCAPED_IN_QUOTES = '"\\$`'


def _told(text: str, said: str, width: int, columns: int) -> str:
    told = f"{text:<{width}}({said})" if said else text
    if len(told) < columns or len(text) + len(_CUT) >= columns:
        return told
    return told[: columns - len(_CUT) - 1] + _CUT


class Line:
    """A line read as the shell reads it: its words without quotes, and what of the last one stays as it is."""

    def __init__(self, line: str, breaks: str) -> None:
        self.words = [""]
        self._breaks = breaks
        self._kept = ""
        self._quote = ""
        self._in_word = False
        self._read(line)

    def insert(self, candidate: str) -> str:
        """What is typed in the place of the part of the last word that bash replaces."""
        rest = candidate[len(self._kept) :]
        if self._quote:
            return _quoted(rest, self._quote)
        return _escaped(rest) + ("" if is_open(candidate) else " ")

    def replies(self, found: Candidates, *, is_listing: bool, columns: int) -> list[str]:
        """Returns what goes into COMPREPLY. Several candidates have their descriptions if bash lists them."""
        inserts = [self.insert(text) for text, _ in found]
        if len(found) > 1 and is_listing and any(said for _, said in found):
            width = max(map(len, inserts)) + 2
            return [
                _told(text, said, width, columns)
                for text, (_, said) in zip(inserts, found, strict=True)
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
