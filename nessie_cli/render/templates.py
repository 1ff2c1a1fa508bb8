"""Commits as text by templates with git's placeholders: `log --format '%h %an %s'`.

Text from the store is made visible, as everywhere. The user's own text is written unchanged.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from nessie_cli.errors import InvalidInput
from nessie_cli.inspection.text import SHORT_HASH, visible
from nessie_cli.model import LogEntry
from nessie_cli.render.history import Names
from nessie_cli.render.terminal import ago
from nessie_cli.wire.scalars import instant


class Subject(NamedTuple):
    """The values behind placeholders: a commit, its references, and the current time."""

    entry: LogEntry
    names: Names
    now: datetime

    @property
    def decoration(self) -> str:
        """Returns the references at the commit, ` (HEAD -> main, tag: v1)`."""
        return "".join(span.text for span in self.names.spans(self.entry.hash))


Value = Callable[[Subject], str]

_PLACEHOLDER = r"(?s)%(x[0-9a-fA-F]{2}|[ac][a-zA-Z]|.|$)"
_CODE = r"x[0-9a-fA-F]{2}"
_FORMS: Mapping[str, Callable[[datetime, datetime], str]] = {
    "d": lambda when, _: instant(when) or "",
    "i": lambda when, _: instant(when) or "",
    "I": lambda when, _: instant(when) or "",
    "s": lambda when, _: when.astimezone(UTC).date().isoformat(),
    "t": lambda when, _: str(int(when.timestamp())),
    "r": ago,
}
"""The format of a time by the letter after `a` or `c`."""


def _moment(of: Callable[[LogEntry], datetime | None], form: str) -> Value:
    def value(subject: Subject) -> str:
        when = of(subject.entry)
        return _FORMS[form](when, subject.now) if when else ""

    return value


def _name(person: str) -> str:
    return person.partition(" <")[0]


def _address(person: str) -> str:
    return person.partition("<")[2].rstrip("> ") or person


def _local_part(person: str) -> str:
    return _address(person).partition("@")[0]


def _authored(entry: LogEntry) -> datetime | None:
    return entry.meta.author_time or entry.meta.commit_time


def _person(of: Callable[[LogEntry], str], part: Callable[[str], str]) -> Value:
    return lambda subject: part(of(subject.entry))


def _author(entry: LogEntry) -> str:
    return entry.meta.author


def _committer(entry: LogEntry) -> str:
    return entry.meta.committer or ""


_PARTS: Mapping[str, Callable[[str], str]] = {
    "n": _name,
    "N": _name,
    "e": _address,
    "E": _address,
    "l": _local_part,
    "L": _local_part,
}
"""Returns the part of a person by the letter after `a` or `c`.

There is no mailmap, so both cases mean the same.
"""

VALUES: Mapping[str, Value] = {
    "H": lambda subject: subject.entry.hash,
    "h": lambda subject: subject.entry.hash[:SHORT_HASH],
    "P": lambda subject: " ".join(subject.entry.meta.parents),
    "p": lambda subject: " ".join(parent[:SHORT_HASH] for parent in subject.entry.meta.parents),
    "s": lambda subject: subject.entry.meta.subject,
    "f": lambda subject: re.sub(r"[^\w.]+", "-", subject.entry.meta.subject).strip("-."),
    "b": lambda subject: subject.entry.meta.message.partition("\n")[2].strip("\n"),
    "B": lambda subject: subject.entry.meta.message.rstrip("\n"),
    "d": lambda subject: subject.decoration,
    "D": lambda subject: subject.decoration.strip(" ()"),
    **{f"a{letter}": _person(_author, part) for letter, part in _PARTS.items()},
    **{f"a{form}": _moment(_authored, form) for form in _FORMS},
    **{f"c{letter}": _person(_committer, part) for letter, part in _PARTS.items()},
    **{f"c{form}": _moment(lambda entry: entry.meta.commit_time, form) for form in _FORMS},
}
"""The placeholders without their `%`, as nessie-log(1) describes them."""
_FIXED = {"n": "\n", "%": "%"}
_REFERENCES = frozenset("dD")
_PREFIXES = ("format:", "tformat:")


class Template:
    """A parsed template. Raises `InvalidInput` for an unknown placeholder."""

    def __init__(self, text: str) -> None:
        for prefix in _PREFIXES:
            text = text.removeprefix(prefix)
        if "%" not in text:
            raise InvalidInput(
                f"--format: {visible(text)!r} is not a format",
                hint="use oneline, or a template such as '%h %an %s'",
            )
        self._text = text
        self._used = {match[1] for match in re.finditer(_PLACEHOLDER, text)}
        for name in sorted(self._used):
            if name not in VALUES and name not in _FIXED and not re.fullmatch(_CODE, name):
                raise InvalidInput(f"--format: {_unknown(name)}")

    @property
    def names_references(self) -> bool:
        """Whether it shows the references at a commit."""
        return bool(self._used & _REFERENCES)

    def filled(self, entry: LogEntry, names: Names, now: datetime) -> str:
        """Returns the text of a commit, possibly of several lines."""
        subject = Subject(entry, names, now)

        def value(match: re.Match[str]) -> str:
            name = match[1]
            if name in VALUES:
                return "\n".join(map(visible, VALUES[name](subject).split("\n")))
            return _FIXED.get(name) or chr(int(name[1:], 16))

        return re.sub(_PLACEHOLDER, value, self._text)


def _unknown(name: str) -> str:
    """Returns what is wrong with a placeholder, and lists the known ones."""
    if not name:
        return "the template ends with %. Hint: write %% for a percent sign"
    if name == "C":
        return (
            "colours (%C) are not supported. Hint: leave them out; without --format, a log on a"
            " terminal is coloured"
        )
    placeholders = " ".join(f"%{value}" for value in (*VALUES, "n", "%", "xNN"))
    return (
        f"%{visible(name)} is not a placeholder. These are: {placeholders}. Hint: `nessie help log`"
        " explains them"
    )
