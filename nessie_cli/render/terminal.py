"""The one object that knows stdout: whether it is a terminal, how wide, whether in colour, and through which pager.

A module of this room makes lines of spans and rows of cells; how they look is decided here. Whatever is written passes `visible`, so that no stored
byte acts on a terminal. Out of a terminal a table is one record per line, cells between tabs, without a heading, never cut.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, TextIO

from msgspec import json as msgspec_json

from nessie_cli.render.spans import STYLES, Column, Line, Row, Span, plain
from nessie_cli.render.text import short_hash, visible
from nessie_cli.wire.encode import instant

if TYPE_CHECKING:
    from subprocess import Popen

    from nessie_cli.render.busy import Busy

DEFAULT_WIDTH = 80
NARROWEST = 20
_DEFAULT_HEIGHT = 24
_ROWS_AT_ONCE = 500
"""Rows of which a table on a terminal computes its column widths; a longer listing goes on below with the widths it needs there."""
_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}


def json_text(document: Any, indent: int | None = None) -> str:
    """A JSON document, ASCII only, so that no locale or terminal can spoil it."""
    text = _plain_json(document) if indent is None else None
    if text is None:
        import json

        text = json.dumps(document, indent=indent, separators=None if indent else (",", ":"))
    # DEL is the one control character that JSON lets through; it can stand only inside a text.
    return text.replace("\x7f", "\\u007f")


def _plain_json(document: Any) -> str | None:
    """Compact JSON by the encoder that is loaded already; None where `json` has to escape what is not ASCII or knows a type better."""
    try:
        encoded = msgspec_json.encode(document)
    except (TypeError, OverflowError, UnicodeEncodeError):
        return None
    return encoded.decode() if encoded.isascii() else None


class Terminal:
    """What commands write their results to.

    `environment` is the whole environment of the process (NO_COLOR, CLICOLOR_FORCE, COLUMNS, TERM and the pager are looked up in it); `now` is what
    relative times are counted from; `color` is auto, always or never. `busy` rests whenever something is written to a terminal.
    """

    def __init__(
        self,
        out: TextIO,
        *,
        environment: Mapping[str, str] | None = None,
        color: str = "auto",
        pager: bool = True,
        now: datetime | None = None,
        busy: Busy | None = None,
    ) -> None:
        self._out = out
        self._environment = environment or {}
        self._now = now
        self.is_terminal = out.isatty()
        self._busy = busy if self.is_terminal else None
        self.colored = _colored(color, self._environment, terminal=self.is_terminal)
        self.unicode = (
            (getattr(out, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")
        )
        self._pager = pager and self.is_terminal
        columns, lines = _size(out, self._environment)
        self.width = max(columns, NARROWEST)
        self._height = lines

    # -- single values ------------------------------------------------------------------------------------------------------------

    def hash(self, value: str) -> str:
        """A commit's hash: shortened for a person, whole for a program."""
        return short_hash(value) if self.is_terminal else value

    def person(self, author: str) -> str:
        """An author: without the address behind the name for a person, whole for a program."""
        name = author.partition(" <")[0]
        return name if self.is_terminal and name else author

    def time(self, when: datetime | None) -> str:
        """An instant: how long ago for a person, ISO for a program; an empty text where there is none."""
        if when is None or not self.is_terminal:
            return instant(when) or ""
        return ago(when, self.now)

    # -- writing ------------------------------------------------------------------------------------------------------------------

    def write(self, text: str) -> None:
        """Write a text as it is."""
        if self._busy:
            self._busy.rest()
        self._out.write(text)

    def _write_all(self, texts: Iterable[str]) -> None:
        if self._busy is None:
            self._out.writelines(texts)
        else:
            for text in texts:
                self.write(text)

    def print_json(self, document: Any) -> None:
        """One JSON document: indented for a person, on one line for a program."""
        self.write(
            (json_text(document, indent=2) if self.is_terminal else json_text(document)) + "\n"
        )

    def print_json_lines(self, documents: Iterable[Any]) -> None:
        """JSON documents, one per line, written as they come."""
        self._write_all(json_text(document) + "\n" for document in documents)

    def print_line(self, *spans: Span | str) -> None:
        """One line."""
        self.write(self.painted([Span(s) if isinstance(s, str) else s for s in spans]) + "\n")

    def flush(self) -> None:
        """Hand over what was written so far, for output that takes long."""
        self._out.flush()

    def prompt(self, question: str) -> None:
        """A question; the answer is typed behind it."""
        self.write(visible(question) + " ")
        self._out.flush()

    def print_lines(self, lines: Iterable[Line], *, paged: bool = False) -> None:
        """Lines as they come; `paged` for listings that may be long: on a terminal they go through the pager when they do not fit."""
        self._write((self.painted(line) for line in lines), paged=paged)

    def print_table(
        self, columns: Sequence[Column], rows: Iterable[Row], *, paged: bool = False
    ) -> None:
        """Rows under headings on a terminal; else one record per line with tabs between the cells."""
        if self.is_terminal:
            self._write(self._table_lines(columns, iter(rows)), paged=paged)
        else:
            self.print_records(
                [_cell(column, cell) for column, cell in zip(columns, row, strict=True)]
                for row in rows
            )

    def print_tables(self, tables: Iterable[tuple[str, Sequence[Column], Iterable[Row]]]) -> None:
        """Tables below each other, each under its title, through one pager; else records whose first cell is the title of their table."""
        if self.is_terminal:
            self._write(self._titled(tables), paged=True)
        else:
            for title, columns, rows in tables:
                self.print_records(
                    [
                        Span(title),
                        *(_cell(column, cell) for column, cell in zip(columns, row, strict=True)),
                    ]
                    for row in rows
                )

    def _titled(
        self, tables: Iterable[tuple[str, Sequence[Column], Iterable[Row]]]
    ) -> Iterator[str]:
        between = ""
        for title, columns, rows in tables:
            first = next(lines := self._table_lines(columns, iter(rows)), None)
            if first is not None:
                yield from filter(None, [between])
                yield self.painted([Span(title, "heading")])
                yield first
                yield from lines
                between = " "

    def print_records(self, records: Iterable[Sequence[Span]], *, paged: bool = False) -> None:
        """One record per line with tabs between its cells, on a terminal as well."""
        self._write(
            ("\t".join(self.painted([cell]) for cell in record) for record in records), paged=paged
        )

    def print_texts(self, texts: Iterable[str]) -> None:
        """Texts that are ready: what they hold of stored data has been made visible already. They may be long, so they go through the pager."""
        self._write((line for text in texts for line in text.split("\n")), paged=True)

    @property
    def now(self) -> datetime:
        """What relative times are counted from."""
        return self._now or datetime.now(UTC)

    def painted(self, line: Line) -> str:
        """Returns the text of a line, in colour if the stream takes it."""
        if not self.colored:
            return plain(line)
        return "".join(_paint(visible(span.text), span.style) for span in line)

    def _table_lines(self, columns: Sequence[Column], rows: Iterator[Row]) -> Iterator[str]:
        from nessie_cli.render.tables import table_lines

        heading = True
        while some := list(islice(rows, _ROWS_AT_ONCE)):
            yield from table_lines(
                columns, some, width=self.width, colored=self.colored, heading=heading
            )
            heading = False

    def _write(self, lines: Iterator[str], *, paged: bool) -> None:
        if paged and self._pager:
            first = list(islice(lines, self._height - 1))
            if len(first) == self._height - 1 and (command := self._pager_command()):
                self._page(command, first, lines)
                return
            self._write_all(line + "\n" for line in first)
        self._write_all(line + "\n" for line in lines)

    def _pager_command(self) -> list[str] | None:
        import shlex
        import shutil

        text = self._environment.get("NESSIE_PAGER", self._environment.get("PAGER", "less"))
        try:
            words = shlex.split(text)
        except ValueError:
            return None
        if (
            not words
            or words == ["cat"]
            or not shutil.which(words[0], path=self._environment.get("PATH"))
        ):
            return None
        return words

    def _page(self, command: list[str], first: list[str], rest: Iterator[str]) -> None:
        import signal
        import subprocess

        # As git does it: quit on one screen, keep colours, leave the text on the screen. A user's own LESS wins.
        environment = {"LESS": "FRX", **self._environment}
        self._out.flush()
        if self._busy:
            # From now on the terminal is the pager's.
            self._busy.stop()
        with _interrupts_left_to_the_pager() as started:
            # The command is the user's own setting, run as the user.
            with subprocess.Popen(  # noqa: S603
                command, stdin=subprocess.PIPE, env=environment, text=True, encoding="utf-8"
            ) as process:  # noqa: RUF100, S603
                started.append(process)
                _feed(process.stdin, first, rest)
            ended_by = -process.returncode
        if ended_by == signal.SIGINT:
            raise KeyboardInterrupt


def _cell(column: Column, cell: Span | str) -> Span:
    return Span(cell, column.style) if isinstance(cell, str) else cell


def _feed(pipe: IO[str] | None, first: list[str], rest: Iterator[str]) -> None:
    """Write until there is no more, or until the reader has left the pager; then close the pipe, so that the pager sees the end."""
    if pipe is None:
        return
    try:
        with suppress(BrokenPipeError):
            pipe.writelines(line + "\n" for line in first)
            # The first screen is there to be read while the rest is looked for.
            pipe.flush()
            pipe.writelines(line + "\n" for line in rest)
    finally:
        with suppress(BrokenPipeError):
            pipe.close()


@contextmanager
def _interrupts_left_to_the_pager() -> Iterator[list[Popen[str]]]:
    """As git does it: Ctrl-C is a key of the pager's as long as it runs; what feeds it goes on. The block says which process that is.

    The pager itself is started with the signal as it was: a handler, unlike ignoring, is not handed down.
    """
    import signal

    started: list[Popen[str]] = []

    def interrupted(_number: int, _frame: object) -> None:
        # When the pager has gone, and the next line is still being looked for, nobody else is there to be interrupted.
        if started and started[0].poll() is not None:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield started
    finally:
        signal.signal(signal.SIGINT, before)


def _paint(text: str, style: str) -> str:
    words = STYLES.get(style, "").split()
    return (
        f"\x1b[{';'.join(_CODES[word] for word in words)}m{text}\x1b[0m" if words and text else text
    )


def _colored(color: str, environment: Mapping[str, str], *, terminal: bool) -> bool:
    """The option wins over NO_COLOR, that over CLICOLOR_FORCE, that over what stdout is."""
    if color != "auto":
        return color == "always"
    if environment.get("NO_COLOR"):
        return False
    if environment.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return terminal and environment.get("TERM") != "dumb"


def _size(out: TextIO, environment: Mapping[str, str]) -> tuple[int, int]:
    """Columns and lines; COLUMNS and LINES win, as everywhere."""
    columns, lines = DEFAULT_WIDTH, _DEFAULT_HEIGHT
    with suppress(OSError, ValueError):
        size = os.get_terminal_size(out.fileno())
        columns, lines = size.columns or columns, size.lines or lines
    return _number(environment.get("COLUMNS"), columns), _number(environment.get("LINES"), lines)


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and int(text) > 0 else default


_STEPS = (
    ("year", 365 * 86400),
    ("month", 30 * 86400),
    ("week", 7 * 86400),
    ("day", 86400),
    ("hour", 3600),
    ("minute", 60),
)


def ago(when: datetime, now: datetime) -> str:
    """How long ago in words.

    >>> ago(datetime(2026, 1, 1, 12, 0, tzinfo=UTC), datetime(2026, 1, 1, 12, 4, 30, tzinfo=UTC))
    '4 minutes ago'
    """
    seconds = int((now - when).total_seconds())
    if seconds < 0:
        return "in the future" if seconds < -_STEPS[-1][1] else "just now"
    for unit, length in _STEPS:
        if seconds >= length:
            count = seconds // length
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now" if seconds == 0 else f"{seconds} second{'s' if seconds > 1 else ''} ago"
