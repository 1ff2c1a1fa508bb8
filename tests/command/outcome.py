"""How a command line ended."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any, NamedTuple, Self


class Outcome(NamedTuple):
    """The exit code and the output of a command line."""

    code: int
    out: str
    err: str

    def expect(
        self, code: int, *texts: str, out: str | None = None, without: tuple[str, ...] = ()
    ) -> Self:
        """Asserts the exit code, texts on stderr, texts that it lacks, and the whole stdout."""
        __tracebackhide__ = True
        faults = [
            *([f"the exit code is {self.code}, not {code}"] if self.code != code else []),
            *(f"stderr lacks {text!r}" for text in texts if text not in self.err),
            *(f"stderr has {text!r}" for text in without if text in self.err),
            *([f"stdout is not {out!r}"] if out not in (None, self.out) else []),
        ]
        assert not faults, "\n".join((*faults, str(self)))
        return self

    def __str__(self) -> str:
        return f"exit code {self.code}\nstdout:\n{self.out}\nstderr:\n{self.err}"

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def records(self) -> list[list[str]]:
        """The cells of lines that tabs divide."""
        return [line.split("\t") for line in self.lines]

    @property
    def rows(self) -> list[list[str]]:
        """The cells of a table without its headings, if it has any."""
        table = cells(self.lines)
        return table[1:] if table and "".join(table[0]).replace(" ", "").isupper() else table

    @property
    def subjects(self) -> list[str]:
        """The subjects of a log."""
        return re.findall(r"^Date: .*\n\n    (.*)$", self.out, re.MULTILINE)

    @property
    def changed(self) -> list[tuple[str, str]]:
        """The changes of a diff or a history: what happened to which key."""
        return re.findall(r"^(created|updated|deleted|renamed) (.+?)  \S+$", self.out, re.MULTILINE)

    @property
    def fields(self) -> dict[tuple[str, str], list[str]]:
        """The value of each field of a diff, or its values before and after, by key and label."""
        values: dict[tuple[str, str], list[str]] = {}
        key = ""
        for line in self.lines:
            if line.startswith("  "):
                label, value = re.split(" {2,}", line.strip(), maxsplit=1)
                before, arrow, after = value.partition("->")
                values[key, label] = [before.strip(), after.strip()] if arrow else [value]
            else:
                key = line.partition(" ")[2].partition("  ")[0]
        return values

    @property
    def states(self) -> dict[str, list[str]]:
        """The fields of a conflict report on stderr, with their values in the three states."""
        block = itertools.takewhile(
            lambda line: not line.startswith(("  changed by", "  resolve", "  or")),
            self.err.partition("\n")[2].splitlines()[1:],
        )
        return {label: values for label, *values in cells(list(block)) if label}

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The error in that document."""
        return self.json["error"]


def cells(lines: list[str]) -> list[list[str]]:
    """Returns the cells of the lines of a table.

    Columns are divided by two blanks or more that all lines have at the same place.
    """
    width = max(map(len, lines), default=0)
    blank = "".join(
        " " if all(line[place : place + 1] in ("", " ") for line in lines) else "x"
        for place in range(width)
    )
    ends = [0, *(gap.end() for gap in re.finditer(" {2,}", blank)), width]
    cut = [[line[start:end].strip() for start, end in itertools.pairwise(ends)] for line in lines]
    return [row[1:] if cut[0][0] == "" else row for row in cut]
