"""Plan: what is there below the places of tables, less what live commits need, is what can go.

One exact difference over all contents together, by the normal forms of locations: whose file it is does not matter, so two contents that share a
place cannot take each other's files away. Three more things keep a file: it is younger than the grace period, or a broken content
has its place around it, or the place is not one of those that files may be deleted in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.gc.datasets import Dataset
from nessie_cli.gc.following import Rows
from nessie_cli.gc.listing import Unlisted, files_below
from nessie_cli.gc.marking import Told
from nessie_cli.gc.pieces import Finding
from nessie_cli.gc.removal import METADATA
from nessie_cli.gc.run import Marks, Run, Settings
from nessie_cli.gc.schemas import CANDIDATES, FINDINGS, LISTED
from nessie_cli.iceberg.locations import Places, is_inside, normalised

OUTSIDE = "OUTSIDE"
LISTING = "LISTING"
UNCLEAR = "UNCLEAR"
PLAN_FINDINGS = "plan-findings"
PATHS_AT_ONCE = 250_000
"""Paths of live files that are compared at a time, in some 100 MB."""
CHECKSUM = r"/\.([^/]+)\.crc$"
"""What Hadoop's local file system writes beside each file: it stays and goes with that."""

Properties = Mapping[str, str]


class Scope(Struct, frozen=True):
    """Where files may be candidates.

    `roots` are the places to be listed, none inside another; `owners` the content ids of each place in or around them; nothing in `untouched`
    is a candidate, and nothing that was changed after `youngest`.
    """

    roots: tuple[str, ...]
    owners: Mapping[str, tuple[str, ...]]
    untouched: Places
    youngest: datetime

    def place_of(self, path: str) -> str:
        """The innermost place that a file is in."""
        folder = path
        while folder not in self.owners:
            folder, slash, _ = folder.rpartition("/")
            if not slash:
                return self._root_of(path)
        return folder

    def _root_of(self, path: str) -> str:
        return next((root for root in self.roots if is_inside(path, root)), "")

    def is_old(self, modified: datetime) -> bool:
        """Whether a file is old enough: what a writer has written and not yet committed is young."""
        return modified <= self.youngest

    def is_free(self, path: str) -> bool:
        """Whether no broken content has its place around a file."""
        return self.untouched.around(path) is None


def plan(
    run: Run,
    settings: Settings,
    properties: Properties,
    told: Told,
    *,
    paths_at_once: int = PATHS_AT_ONCE,
) -> dict[str, int]:
    """Write the datasets `listed`, `candidates` and `plan-findings` of a run that is marked; answers counts.

    Candidates are in the order in which they should be deleted: metadata files come last, so that what is left of a table is found again by them.
    Raises `InvalidInput` for settings that can never work. Memory: `paths_at_once` paths.
    """
    with run.dataset(PLAN_FINDINGS).writing(FINDINGS) as write:
        findings = Rows(FINDINGS, write)
        scope = scope_of(run, settings, finding_into(findings))
        counts = _list(run, scope, properties, finding_into(findings), told)
        findings.flush()
    found = differ(run, scope, told, paths_at_once)
    return {"bases": len(scope.roots), **counts, **found}


# -- where -------------------------------------------------------------------------------------------------------------------------------------


def finding_into(rows: Rows) -> Callable[[Finding], None]:
    """Adds findings to rows of `FINDINGS`."""
    return lambda finding: rows.add(
        *(getattr(finding, field) for field in Finding.__struct_fields__)
    )


def scope_of(run: Run, settings: Settings, find: Callable[[Finding], None]) -> Scope:
    """Where files may be candidates, by the mark of a run and the settings; places of tables that lie elsewhere are findings."""
    allowed = Places(_warehouses(settings.warehouse))
    marks = run.marks()
    owners = _owners(marks.bases)
    inside = {}
    for base, contents in owners.items():
        reason = _why_not(base, allowed)
        if reason is None:
            inside[base] = tuple(sorted(content_id for content_id, _ in contents))
        else:
            content_id, key = contents[0]
            find(
                Finding(
                    OUTSIDE,
                    content_id,
                    key,
                    location=base,
                    message=f"{key}: lies at {base}, {reason}; no file there is collected",
                )
            )
    untouched = Places([*_untouched(marks), *_own_files(run, settings)])
    roots = tuple(root for root in Places(inside).outermost if untouched.around(root) is None)
    return Scope(roots, inside, untouched, run.info.created - timedelta(seconds=settings.grace))


def _warehouses(given: Sequence[str]) -> list[str]:
    if not given:
        raise InvalidInput(
            "no warehouse is named: files are deleted only below locations that you name; give --warehouse s3://bucket/path"
        )
    found = []
    for location in given:
        try:
            found.append(normalised(location))
        except InvalidInput as error:
            raise InvalidInput(f"warehouse {error.message}") from None
    return found


def _owners(bases: Dataset) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for record in bases.records():
        found.setdefault(record["base"], []).append((record["content_id"], record["key"]))
    return found


def _why_not(base: str, allowed: Places) -> str | None:
    """Why no file of a place may be deleted; None where it may."""
    if allowed.around(base) is None:
        return "which is not inside a warehouse that was named"
    if base == "/" or base.partition("://")[2].count("/") == 0 < base.count("://"):
        return "which is all of a file system or bucket"
    return None


def _untouched(marks: Marks) -> Iterator[str]:
    for record in marks.findings.records(["kind", "base"]):
        if record["base"]:
            yield record["base"]


def _own_files(run: Run, settings: Settings) -> Iterator[str]:
    """Files of this program: somebody may have made a table around them."""
    yield normalised(str(run.folder.parent))
    if settings.store.startswith("sqlite:///"):
        store = normalised(settings.store.removeprefix("sqlite://"))
        yield from (f"{store}{end}" for end in ("", "-wal", "-shm"))


# -- what is there -----------------------------------------------------------------------------------------------------------------------------


def rows_below(
    root: str, scope: Scope, properties: Properties
) -> Iterator[tuple[Any, ...] | Finding]:
    """The files below a place as rows of `LISTED`; what cannot be listed is a finding. Raises `StoreUnavailable` where nobody answers."""
    for found in files_below(root, properties):
        if isinstance(found, Unlisted):
            message = f"{found.location}: cannot be listed: {found.message}"
            if found.silent:
                raise StoreUnavailable(message)
            yield Finding(LISTING, location=found.location, message=message)
            continue
        try:
            path = normalised(found.location)
        except InvalidInput as error:
            yield Finding(
                UNCLEAR, location=found.location, message=f"{error.message}; it is left alone"
            )
        else:
            yield path, found.location, found.size, found.modified, scope.place_of(path)


def _list(
    run: Run, scope: Scope, properties: Properties, find: Callable[[Finding], None], told: Told
) -> dict[str, int]:
    size = 0
    with run.dataset("listed").writing(LISTED) as write:
        rows = Rows(LISTED, write)
        for root in scope.roots:
            for row in rows_below(root, scope, properties):
                if isinstance(row, Finding):
                    find(row)
                    continue
                rows.add(*row)
                size += row[2]
                told("files listed", rows.count, None)
        rows.flush()
    return {"listed": rows.count, "listedBytes": size}


# -- the difference ----------------------------------------------------------------------------------------------------------------------------


def is_metadata(path: str) -> bool:
    """Whether a file is a metadata file by its name: those are deleted last."""
    return path.endswith(METADATA)


def differ(
    run: Run, scope: Scope, told: Told, paths_at_once: int = PATHS_AT_ONCE
) -> dict[str, int]:
    """Write what is listed and neither live nor to be left alone. What is listed is looked through once for each lot of live paths."""
    listed = run.dataset("listed")
    needed = _needed(listed, run.marks().live, paths_at_once, told)
    counts = dict.fromkeys(("candidates", "candidateBytes", "young", "untouched"), 0)
    with run.dataset("candidates").writing(CANDIDATES) as write:
        rows = Rows(CANDIDATES, write)
        for last in (False, True):
            for path, location, size, modified, base in _not_needed(listed, needed):
                if is_metadata(path) is not last:
                    continue
                if not scope.is_free(path):
                    counts["untouched"] += 1
                elif not scope.is_old(modified):
                    counts["young"] += 1
                else:
                    counts["candidates"] += 1
                    counts["candidateBytes"] += size
                    rows.add(path, location, size, modified, base, scope.owners.get(base, ()))
        rows.flush()
    return counts


def _needed(listed: Dataset, live: Dataset, paths_at_once: int, told: Told) -> list[Any]:
    """For each batch of what is listed, which of its files are live: one bit for each."""
    needed: list[Any] = []
    compared, total = 0, live.rows
    for lot in _lots(live, paths_at_once):
        for number, batch in enumerate(listed.batches(["path"])):
            whose = pc.replace_substring_regex(
                batch.column("path"), pattern=CHECKSUM, replacement=r"/\1"
            )
            found = pc.is_in(whose, value_set=lot)
            if number == len(needed):
                needed.append(found)
            else:
                needed[number] = pc.or_(needed[number], found)
        compared += len(lot)
        told("live files compared", compared, total)
    return needed


def _lots(live: Dataset, paths_at_once: int) -> Iterator[Any]:
    waiting: list[Any] = []
    for batch in live.batches(["path"]):
        paths = batch.column("path")
        for first in range(0, len(paths), paths_at_once):
            waiting.append(paths.slice(first, paths_at_once))
            if sum(map(len, waiting)) >= paths_at_once:
                yield pa.concat_arrays(waiting)
                waiting.clear()
    if waiting:
        yield pa.concat_arrays(waiting)


def _not_needed(listed: Dataset, needed: list[Any]) -> Iterator[tuple[Any, ...]]:
    for number, batch in enumerate(listed.batches(LISTED.names)):
        rest = batch.filter(pc.invert(needed[number])) if needed else batch
        yield from zip(*(column.to_pylist() for column in rest.columns), strict=True)
