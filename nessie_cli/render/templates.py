"""A commit by a template of the user's, with git's placeholders: `log --format '%h %an %s'`.

What comes from the store is made visible, as everywhere; what the user wrote into the template is written as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NamedTuple

from nessie_cli.errors import InvalidInput
from nessie_cli.model import LogEntry
from nessie_cli.render.history import Names
from nessie_cli.render.terminal import SHORT_HASH, ago
from nessie_cli.render.text import visible
from nessie_cli.wire.encode import instant


class Asked(NamedTuple):
    """What a placeholder is asked about: a commit, the references, and what relative times are counted from."""

    entry: LogEntry
    names: Names
    now: datetime

    @property
    def decoration(self) -> str:
        """The references at the commit, ` (HEAD -> main, tag: v1)`."""
        return "".join(span.text for span in self.names.spans(self.entry.hash))


Value = Callable[[Asked], str]

_PLACEHOLDER = re.compile(r"%(x[0-9a-fA-F]{2}|[ac][neltrIi]|[ac]d|.|$)", re.DOTALL)


def _moment(of: Callable[[LogEntry], datetime | None], form: str) -> Value:
    def value(asked: Asked) -> str:
        when = of(asked.entry)
        if when is None:
            return ""
        if form == "r":
            return ago(when, asked.now)
        return str(int(when.timestamp())) if form == "t" else instant(when) or ""

    return value


def _name(author: str) -> str:
    return author.partition(" <")[0]


def _address(author: str) -> str:
    return author.partition("<")[2].rstrip("> ") or author


def _wrote(entry: LogEntry) -> datetime | None:
    return entry.meta.author_time or entry.meta.commit_time


VALUES: Mapping[str, Value] = {
    "H": lambda asked: asked.entry.hash,
    "h": lambda asked: asked.entry.hash[:SHORT_HASH],
    "P": lambda asked: " ".join(asked.entry.meta.parents),
    "p": lambda asked: " ".join(parent[:SHORT_HASH] for parent in asked.entry.meta.parents),
    "s": lambda asked: asked.entry.meta.subject,
    "b": lambda asked: asked.entry.meta.message.partition("\n")[2].strip("\n"),
    "B": lambda asked: asked.entry.meta.message.rstrip("\n"),
    "d": lambda asked: asked.decoration,
    "D": lambda asked: asked.decoration.strip(" ()"),
    "an": lambda asked: _name(asked.entry.meta.author),
    "ae": lambda asked: _address(asked.entry.meta.author),
    "cn": lambda asked: _name(asked.entry.meta.committer or ""),
    "ce": lambda asked: _address(asked.entry.meta.committer or ""),
    **{f"a{form}": _moment(_wrote, form) for form in "dIitr"},
    **{f"c{form}": _moment(lambda entry: entry.meta.commit_time, form) for form in "dIitr"},
}
"""The placeholders without their `%`. Besides there are `%n` (a new line), `%%` and `%xNN` (the character of that code)."""
_REFERENCES = frozenset("dD")
_PREFIXES = ("format:", "tformat:")


class Template:
    """A template that was read; raises `InvalidInput` for a placeholder that does not exist."""

    def __init__(self, text: str) -> None:
        for prefix in _PREFIXES:
            text = text.removeprefix(prefix)
        if "%" not in text:
            raise InvalidInput(f"--format {visible(text)}: is no form; write oneline, or a template such as '%h %s'")
        self._text = text
        self._used = {found[1] for found in _PLACEHOLDER.finditer(text)}
        for name in sorted(self._used):
            if name not in VALUES and name not in ("n", "%") and not (name[0:1] == "x" and len(name) > 1):
                known = ", ".join(f"%{known}" for known in VALUES)
                raise InvalidInput(f"--format: %{visible(name)} is no placeholder; known are {known}, %n, %% and %xNN")

    @property
    def names_references(self) -> bool:
        """Whether it asks for the references at a commit."""
        return bool(self._used & _REFERENCES)

    def filled(self, entry: LogEntry, names: Names, now: datetime) -> str:
        """The text of one commit, perhaps of several lines."""

        def value(found: re.Match[str]) -> str:
            name = found[1]
            if name in VALUES:
                return "\n".join(map(visible, VALUES[name](Asked(entry, names, now)).split("\n")))
            return "\n" if name == "n" else "%" if name == "%" else chr(int(name[1:], 16))

        return _PLACEHOLDER.sub(value, self._text)
