"""A folder of files, some of them garbage, and an engine with a given list of live files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from nessie_cli.errors import NessieError
from nessie_cli.gc import phases
from nessie_cli.gc.apply import Applied, Revived, apply, approve
from nessie_cli.gc.listing import Listed, files_below
from nessie_cli.gc.run import (
    ForeignLocation,
    MarkDatasets,
    PinnedReference,
    Run,
    Runs,
    RunSettings,
    RunState,
)
from nessie_cli.gc.schemas import CANDIDATES, FINDINGS, LIVE

TIME = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Marked(NamedTuple):
    references: tuple[PinnedReference, ...]
    counts: dict[str, int]


class Heap:
    """A warehouse with one table, whose files have 10 bytes.

    `live` files are kept, `broken` bases cannot be read, `more` are further candidates. Another
    catalog may write below the `foreign` locations.
    """

    def __init__(self, folder: Path, garbage: int = 5, live: int = 2) -> None:
        self.folder = folder
        self.base = folder / "warehouse" / "db" / "t"
        self.runs = Runs(folder / "runs")
        (self.base / "data").mkdir(parents=True)
        self.garbage = [self.write(f"data/garbage-{number}") for number in range(garbage)]
        self.kept = [self.write(f"data/live-{number}") for number in range(live)]
        self.live = {str(path) for path in self.kept}
        self.broken: list[str] = []
        self.others: list[ForeignLocation] = []
        self.more: list[Listed] = []
        self.properties: dict[str, str] = {}
        self.now_live: list[Revived] = []
        self.damage: NessieError | None = None
        self.away: NessieError | None = None

    def write(self, name: str, text: str = "0123456789") -> Path:
        path = self.base / name
        path.write_text(text)
        os.utime(path, (1_700_000_000, 1_700_000_000))
        return path

    @property
    def settings(self) -> RunSettings:
        return RunSettings(
            store="memory:",
            reference_time=TIME,
            warehouse=(str(self.folder / "warehouse"), "s3://lake/db"),
        )

    def verify(self) -> int | None:
        if self.damage is not None:
            raise self.damage
        return 1

    def foreign(self) -> list[ForeignLocation]:
        return self.others

    def revived(self) -> Iterator[Revived]:
        while self.now_live:
            yield self.now_live.pop()

    def mark(self, marks: MarkDatasets) -> Marked:
        if self.away is not None:
            raise self.away
        with marks.live.writing(LIVE) as write:
            write(
                table(
                    LIVE,
                    [
                        {"path": path, "kind": "DATA", "content_id": "1"}
                        for path in sorted(self.live)
                    ],
                )
            )
        with marks.findings.writing(FINDINGS) as write:
            write(
                table(
                    FINDINGS,
                    [
                        {"kind": "BROKEN", "base": base, "message": "cannot be read"}
                        for base in self.broken
                    ],
                )
            )
        return Marked(
            (PinnedReference("main", "BRANCH", "0" * 64),), {"live": len(self.live), "contents": 1}
        )

    def plan(self, run: Run) -> dict[str, int]:
        live = {row["path"] for row in run.dataset("live").records()}
        listed = [
            one
            for one in files_below(str(self.base), {})
            if isinstance(one, Listed) and one.location not in live
        ]
        listed += self.more
        rows = [
            {
                "path": one.location,
                "location": one.location,
                "size": one.size,
                "modified": one.modified,
                "base": str(self.base),
            }
            for one in sorted(listed)
        ]
        with run.dataset("candidates").writing(CANDIDATES) as write:
            write(table(CANDIDATES, rows))
        return {"candidates": len(rows), "candidateBytes": sum(one.size for one in listed)}

    def planned(self) -> Run:
        run = self.runs.new(self.settings, TIME)
        with run.changing():
            phases.mark(run, self.mark, clock)
            phases.plan(run, lambda: self.plan(run), self.settings, clock)
        return run

    def approved(self) -> Run:
        run = self.planned()
        with run.changing():
            approve(run, "Ann", TIME)
        return run

    def apply(self, run: Run, *, dry_run: bool = False) -> Applied:
        with run.changing():
            return apply(
                run, self, self.properties, clock, lambda _done, _total: None, dry_run=dry_run
            )

    def go_on(self) -> Run:
        """Resumes the newest run and completes it."""
        run = self.runs.open() if self.runs.ids() else self.runs.new(self.settings, TIME)
        with run.changing():
            if run.info.state is RunState.MARKING:
                phases.mark(run, self.mark, clock)
            if run.info.state is RunState.MARKED:
                phases.plan(run, lambda: self.plan(run), self.settings, clock)
            if run.info.state is RunState.PLANNED:
                approve(run, "Ann", TIME)
        if run.info.state is not RunState.APPLIED:
            self.apply(run)
        return run


def clock() -> datetime:
    return TIME


def table(schema: pa.Schema, rows: Sequence[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(
        [{name: row.get(name) for name in schema.names} for row in rows], schema=schema
    )


def there(paths: Iterable[Path]) -> list[bool]:
    return [path.exists() for path in paths]
