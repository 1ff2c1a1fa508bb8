"""Terminals of any width, and a pipe; values that every test of this folder reads."""

import io
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import pytest

from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, LogEntry
from nessie_cli.render.terminal import Terminal

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


class Screen(io.StringIO):
    """A stream that says whether it is a terminal, and keeps what was written."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


class Shown:
    """A `Terminal` and what it wrote."""

    def __init__(
        self, width: int, terminal: bool, color: str, environment: Mapping[str, str], pager: bool
    ) -> None:
        self._screen = Screen(terminal)
        self.terminal = Terminal(
            self._screen,
            environment={"COLUMNS": str(width), **environment},
            color=color,
            pager=pager,
            now=NOW,
        )

    @property
    def text(self) -> str:
        return self._screen.getvalue()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


@pytest.fixture
def screen() -> Callable[..., Shown]:
    def make(
        width: int = 80, color: str = "never", pager: bool = False, **environment: str
    ) -> Shown:
        return Shown(width, True, color, environment, pager)

    return make


@pytest.fixture
def pipe() -> Shown:
    return Shown(80, False, "auto", {}, True)


@pytest.fixture
def table() -> Callable[..., IcebergTable]:
    def make(file: str, snapshot: int, schema: int = 3, id: str = "id-1") -> IcebergTable:
        return IcebergTable(
            id=id,
            metadata_location=f"s3://lake/db/sales/orders/metadata/{file}",
            snapshot_id=snapshot,
            schema_id=schema,
        )

    return make


@pytest.fixture
def meta() -> Callable[..., CommitMeta]:
    def make(
        number: int, message: str = "nightly load", *parents: int, author: str = "etl@example.org"
    ) -> CommitMeta:
        return CommitMeta(
            message,
            authors=(author,),
            committer="etl@example.org",
            commit_time=NOW - timedelta(minutes=number),
            hash=hash_of(number),
            parents=tuple(map(hash_of, parents)),
        )

    return make


@pytest.fixture
def entry(meta: Callable[..., CommitMeta]) -> Callable[..., LogEntry]:
    def make(
        number: int, message: str = "nightly load", *parents: int, author: str = "etl@example.org"
    ) -> LogEntry:
        return LogEntry(meta(number, message, *parents, author=author), 1)

    return make


def hash_of(number: int) -> str:
    return f"{number:04x}" * 16


@pytest.fixture
def key() -> Callable[[str], ContentKey]:
    return ContentKey.parse
