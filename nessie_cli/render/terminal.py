"""The output stream: whether it is a terminal, its width, its colours, and its pager.

Modules of this package create spans and cells; this one decides their look. All output passes
`visible`, so that no stored byte controls a terminal. A pipe or file gets the same text as a
terminal, in lines of any length.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, TextIO

from msgspec import json as msgspec_json
from msgspec import to_builtins

from nessie_cli.inspection.text import visible
from nessie_cli.model.batches import batched
from nessie_cli.render.spans import STYLES, Column, Line, Row, Span, part, plain
from nessie_cli.render.text import line_ends

if TYPE_CHECKING:
    from subprocess import Popen

    from nessie_cli.render.busy import Busy

DEFAULT_WIDTH = 80
NARROWEST = 20
UNLIMITED = 1 << 30
"""The width of a pipe or file: no line is shortened or wrapped."""
_DEFAULT_HEIGHT = 24
_ROWS_AT_ONCE = 500
"""Rows from which a table computes its column widths. Later rows adapt them."""
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
    """Returns a JSON document in ASCII, which no locale or terminal can change."""
    text = _plain_json(document) if indent is None else None
    if text is None:
        import json

        separators = None if indent else (",", ":")
        text = json.dumps(to_builtins(document), indent=indent, separators=separators)
    # DEL is the only control character that JSON does not escape; it occurs only inside a text.
    return text.replace("\x7f", "\\u007f")


def _plain_json(document: Any) -> str | None:
    """Returns compact JSON by the loaded encoder, or None if `json` is needed for some value."""
    try:
        encoded = msgspec_json.encode(document)
    except (TypeError, OverflowError, UnicodeEncodeError):
        return None
    return encoded.decode() if encoded.isascii() else None


class Terminal:
    """The output of commands.

    `environment` is the whole environment of the process (for NO_COLOR, CLICOLOR_FORCE, COLUMNS,
    TERM and the pager). Relative times count from `now`. `color` is auto, always or never. `busy`
    pauses during output to a terminal.
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
        self.width = max(columns, NARROWEST) if self.is_terminal else UNLIMITED
        self._height = lines

    def time(self, when: datetime | None) -> str:
        """Returns a relative time, or an empty text for None."""
        return "" if when is None else ago(when, self.now)

    def write(self, text: str) -> None:
        """Writes a text unchanged."""
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
        """Prints a JSON document: indented for people, on one line for programs."""
        self.write(
            (json_text(document, indent=2) if self.is_terminal else json_text(document)) + "\n"
        )

    def print_json_lines(self, documents: Iterable[Any]) -> None:
        """Prints JSON documents, one per line, as they come."""
        self._write_all(json_text(document) + "\n" for document in documents)

    def print_line(self, *spans: Span | str) -> None:
        """Prints a line."""
        self.write(self.painted([Span(s) if isinstance(s, str) else s for s in spans]) + "\n")

    def print_text(self, *spans: Span | str) -> None:
        """Prints a sentence, broken between words to fit the width."""
        self.write("\n".join(self._text_lines(spans)) + "\n")

    def _text_lines(self, spans: Iterable[Span | str]) -> Iterator[str]:
        line = [
            span._replace(text=visible(span.text))
            for span in (Span(s) if isinstance(s, str) else s for s in spans)
        ]
        text = plain(line)
        indent = Span(text[: len(text) - len(text.lstrip(" "))])
        for number, (start, end) in enumerate(line_ends(text, self.width)):
            within = part(line, start, end)
            yield self.painted([indent, *within] if number else within)

    def flush(self) -> None:
        """Flushes the output, for commands that take long."""
        self._out.flush()

    def prompt(self, question: str) -> None:
        """Prints a question; the answer is typed after it."""
        self.write("\n".join(self._text_lines([question])) + " ")
        self._out.flush()

    def print_lines(self, lines: Iterable[Line], *, paged: bool = False) -> None:
        """Prints lines as they come; `paged` sends them through the pager if they do not fit."""
        self._write((self.painted(line) for line in lines), paged=paged)

    def print_table(
        self,
        columns: Sequence[Column],
        rows: Iterable[Row],
        *,
        paged: bool = False,
        has_heading: bool = True,
    ) -> None:
        """Prints rows, under headings unless the columns need none."""
        lines = self._table_lines(columns, iter(rows), has_heading=has_heading)
        self.print_lines(lines, paged=paged)

    def print_tables(self, tables: Iterable[tuple[str, Sequence[Column], Iterable[Row]]]) -> None:
        """Prints tables with titles through one pager, without those that have no rows."""
        self.print_lines(self._titled(tables), paged=True)

    def _titled(
        self, tables: Iterable[tuple[str, Sequence[Column], Iterable[Row]]]
    ) -> Iterator[Line]:
        is_first = True
        for title, columns, rows in tables:
            heading = next(lines := self._table_lines(columns, iter(rows)), None)
            if heading is None:
                continue
            if not is_first:
                yield []
            yield [Span(title, "heading")]
            yield heading
            yield from lines
            is_first = False

    def print_records(self, records: Iterable[Sequence[Span]]) -> None:
        """Prints one record per line with tabs between its cells, through the pager."""
        self._write(
            ("\t".join(self.painted([cell]) for cell in record) for record in records), paged=True
        )

    def print_data(self, lines: Iterable[str]) -> None:
        """Prints lines of data for other programs, with their ends.

        They are unchanged in a pipe. On a terminal nothing in them controls it.
        """
        if self.is_terminal:
            lines = (visible(line.removesuffix("\n")) + "\n" for line in lines)
        self._write_all(lines)

    def print_texts(self, texts: Iterable[str]) -> None:
        """Prints texts through the pager; their stored data has been made visible already."""
        self._write((line for text in texts for line in text.split("\n")), paged=True)

    @property
    def now(self) -> datetime:
        """The time from which relative times count."""
        return self._now or datetime.now(UTC)

    def painted(self, line: Line) -> str:
        """Returns the text of a line, in colour if the stream supports it."""
        if not self.colored:
            return plain(line)
        return "".join(_paint(visible(span.text), span.style) for span in line)

    def _table_lines(
        self, columns: Sequence[Column], rows: Iterator[Row], *, has_heading: bool = True
    ) -> Iterator[Line]:
        from nessie_cli.render.tables import table_lines

        for batch in batched(rows, _ROWS_AT_ONCE):
            yield from table_lines(
                columns, batch, width=self.width, has_heading=has_heading, time=self.time
            )
            has_heading = False

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
            command = shlex.split(text)
        except ValueError:
            return None
        if (
            not command
            or command == ["cat"]
            or not shutil.which(command[0], path=self._environment.get("PATH"))
        ):
            return None
        return command

    def _page(self, command: list[str], first: list[str], rest: Iterator[str]) -> None:
        import signal
        import subprocess

        # As in git: quit if it fits on one screen, keep colours, keep the screen. The user's LESS
        # takes precedence.
        environment = {"LESS": "FRX", **self._environment}
        self._out.flush()
        if self._busy:
            # From now on the terminal belongs to the pager.
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


def _feed(pipe: IO[str] | None, first: list[str], rest: Iterator[str]) -> None:
    """Writes to the pager until the end, or until it has exited; then closes the pipe."""
    if pipe is None:
        return
    try:
        with suppress(BrokenPipeError):
            pipe.writelines(line + "\n" for line in first)
            # The first screen is visible while the rest is read.
            pipe.flush()
            pipe.writelines(line + "\n" for line in rest)
    finally:
        with suppress(BrokenPipeError):
            pipe.close()


@contextmanager
def _interrupts_left_to_the_pager() -> Iterator[list[Popen[str]]]:
    """As in git, Ctrl-C belongs to the pager while it runs. The block names its process.

    The pager itself starts with the original signal handling: a handler, unlike ignoring, is not
    inherited.
    """
    import signal

    started: list[Popen[str]] = []

    def interrupted(_number: int, _frame: object) -> None:
        # Only the pager can have exited here, while the next line is read.
        if started and started[0].poll() is not None:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield started
    finally:
        signal.signal(signal.SIGINT, before)


def _paint(text: str, style: str) -> str:
    attributes = STYLES.get(style, "").split()
    if not attributes or not text:
        return text
    return f"\x1b[{';'.join(_CODES[name] for name in attributes)}m{text}\x1b[0m"


def _colored(color: str, environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Returns whether to use colour: the option, NO_COLOR, CLICOLOR_FORCE, then the terminal."""
    if color != "auto":
        return color == "always"
    if environment.get("NO_COLOR"):
        return False
    if environment.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return terminal and environment.get("TERM") != "dumb"


def _size(out: TextIO, environment: Mapping[str, str]) -> tuple[int, int]:
    """Returns columns and lines; COLUMNS and LINES take precedence."""
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
    """Returns a relative time in words.

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
