"""Plan: the candidates are the files below the locations of tables, minus the live files.

It is one exact difference over all contents, by the normal forms of locations. So contents that
share a location cannot lose files of each other. A file is also kept if it is younger than the
grace period, below a base of a broken content, outside of the warehouses, or below the location of
a table that another catalog may write.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.exporting.state import deletion_of
from nessie_cli.gc.datasets import Dataset
from nessie_cli.gc.listing import Unlisted, files_below
from nessie_cli.gc.mark import PhaseProgress
from nessie_cli.gc.parts import GcFinding
from nessie_cli.gc.removal import METADATA
from nessie_cli.gc.run import ForeignKind, ForeignLocation, MarkDatasets, Run, RunSettings
from nessie_cli.gc.schemas import CANDIDATES, FINDINGS, LISTED
from nessie_cli.gc.table_files import Rows
from nessie_cli.iceberg.locations import LocationSet, is_inside, normalised

OUTSIDE = "OUTSIDE"
LISTING = "LISTING"
UNCLEAR = "UNCLEAR"
PLAN_FINDINGS = "plan-findings"
PATHS_AT_ONCE = 250_000
"""How many paths of live files are compared at a time, in about 100 MB of memory."""
CHECKSUM = r"/\.([^/]+)\.crc$"
"""The checksum file of Hadoop's local file system, deleted together with its file."""

Properties = Mapping[str, str]


class CandidateScope(Struct, frozen=True):
    """The locations of possible candidates.

    `roots` are listed; none is inside another. `owners` has the content ids of each location in or
    around them. Files in `untouched` and files modified after `youngest` are not candidates.
    """

    roots: tuple[str, ...]
    owners: Mapping[str, tuple[str, ...]]
    untouched: LocationSet
    youngest: datetime

    def base_of(self, path: str) -> str:
        """Returns the innermost location that contains a file."""
        folder = path
        while folder not in self.owners:
            folder, slash, _ = folder.rpartition("/")
            if not slash:
                return self._root_of(path)
        return folder

    def _root_of(self, path: str) -> str:
        return next((root for root in self.roots if is_inside(path, root)), "")

    def is_old(self, modified: datetime) -> bool:
        """Whether a file is older than the grace period. Uncommitted files of writers are young."""
        return modified <= self.youngest

    def is_free(self, path: str) -> bool:
        """Whether a file is outside of the bases of broken contents and of other catalogs."""
        return self.untouched.around(path) is None


def plan(
    run: Run,
    settings: RunSettings,
    properties: Properties,
    progress: PhaseProgress,
    *,
    paths_at_once: int = PATHS_AT_ONCE,
) -> dict[str, int]:
    """Writes the datasets `listed`, `candidates` and `plan-findings`. Returns counts.

    Candidates are in the order of deletion. Metadata files come last, because a later run finds the
    remaining files of a table by them. Raises `InvalidInput` for invalid settings. Memory:
    `paths_at_once` paths.
    """
    with run.dataset(PLAN_FINDINGS).writing(FINDINGS) as write:
        findings = Rows(FINDINGS, write)
        scope = scope_of(run, settings, finding_into(findings))
        counts = _list(run, scope, properties, finding_into(findings), progress)
        findings.flush()
    candidate_counts = differ(run, scope, progress, paths_at_once)
    return {**base_counts(scope, settings), **counts, **candidate_counts}


def base_counts(scope: CandidateScope, settings: RunSettings) -> dict[str, int]:
    """Returns the numbers of listed locations, and of those that other catalogs may write."""
    kinds = [place.kind for place in settings.foreign]
    foreign = {kind.value.lower(): kinds.count(kind) for kind in ForeignKind}
    return {"bases": len(scope.roots), **foreign}


# -- where ----------------------------------------------------------------------------------------


def finding_into(rows: Rows) -> Callable[[GcFinding], None]:
    """Returns a function that adds findings to rows of `FINDINGS`."""
    return lambda finding: rows.add(
        *(getattr(finding, field) for field in GcFinding.__struct_fields__)
    )


def scope_of(run: Run, settings: RunSettings, find: Callable[[GcFinding], None]) -> CandidateScope:
    """Returns the locations of possible candidates. Other tables are findings."""
    allowed = LocationSet(_warehouses(settings.warehouse))
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
                GcFinding(
                    OUTSIDE,
                    content_id,
                    key,
                    location=base,
                    message=f"{key} is at {base}, {reason}; no file there is collected",
                )
            )
    for place in settings.foreign:
        if allowed.around(place.location) is not None:
            find(_foreign_finding(place))
    others = (place.location for place in settings.foreign)
    untouched = LocationSet([*_untouched(marks), *_own_files(run, settings), *others])
    roots = tuple(root for root in LocationSet(inside).outermost if untouched.around(root) is None)
    return CandidateScope(
        roots, inside, untouched, run.info.created - timedelta(seconds=settings.grace)
    )


def _foreign_finding(place: ForeignLocation) -> GcFinding:
    if place.kind is ForeignKind.IMPORTED:
        condition = "it is no longer written there"
        commands = [f"nessie import --adopt {shlex.quote(place.key)}"]
    else:
        condition = f"no table of this repository is in {place.catalog} any more"
        commands = [f"nessie {deletion_of(name)}" for name in place.references]
    way_out = " and ".join(f"`{command}`" for command in commands)
    message = (
        f"{place.key} is at {place.location}, and {place.catalog} may write it; no file there is"
        f" collected. Hint: if {condition}, {way_out}"
    )
    return GcFinding(place.kind.value, key=place.key, location=place.location, message=message)


def _warehouses(given: Sequence[str]) -> list[str]:
    if not given:
        raise InvalidInput(
            "there is no warehouse, and files are deleted only below warehouses",
            hint="set --warehouse s3://bucket/path",
        )
    locations = []
    for location in given:
        try:
            locations.append(normalised(location))
        except InvalidInput as error:
            raise InvalidInput(f"warehouse {error.message}") from None
    return locations


def _owners(bases: Dataset) -> dict[str, list[tuple[str, str]]]:
    """Returns the locations of contents, each with the ids and keys of these contents.

    A content without an id is only staged. Its table may belong to another catalog, so a location
    of its own is not searched.
    """
    owners: dict[str, list[tuple[str, str]]] = {}
    for record in bases.records():
        if not record["content_id"]:
            continue
        owners.setdefault(record["base"], []).append((record["content_id"], record["key"]))
    return owners


def _why_not(base: str, allowed: LocationSet) -> str | None:
    """Returns the reason why no file of a location may be deleted, or None."""
    if allowed.around(base) is None:
        return "which is outside of the warehouses"
    if base == "/" or base.partition("://")[2].count("/") == 0 < base.count("://"):
        return "which is a whole file system or bucket"
    return None


def _untouched(marks: MarkDatasets) -> Iterator[str]:
    for record in marks.findings.records(["kind", "base"]):
        if record["base"]:
            yield record["base"]


def _own_files(run: Run, settings: RunSettings) -> Iterator[str]:
    """Yields this program's own folders, which may be below the location of a table."""
    yield normalised(str(run.folder.parent))
    if settings.store.startswith("sqlite:///"):
        store = normalised(settings.store.removeprefix("sqlite://"))
        yield from (f"{store}{end}" for end in ("", "-wal", "-shm"))


# -- listed files ---------------------------------------------------------------------------------


def rows_below(
    root: str, scope: CandidateScope, properties: Properties
) -> Iterator[tuple[Any, ...] | GcFinding]:
    """Yields the files below a location as rows of `LISTED`. A failed listing is a finding.

    Raises `StoreUnavailable` if a file system does not answer.
    """
    for file in files_below(root, properties):
        if isinstance(file, Unlisted):
            message = f"{file.location} cannot be listed: {file.message}"
            if file.silent:
                raise StoreUnavailable(message)
            yield GcFinding(LISTING, location=file.location, message=message)
            continue
        try:
            path = normalised(file.location)
        except InvalidInput as error:
            yield GcFinding(UNCLEAR, location=file.location, message=f"{error.message}; it is kept")
        else:
            yield path, file.location, file.size, file.modified, scope.base_of(path)


def _list(
    run: Run,
    scope: CandidateScope,
    properties: Properties,
    find: Callable[[GcFinding], None],
    progress: PhaseProgress,
) -> dict[str, int]:
    size = 0
    with run.dataset("listed").writing(LISTED) as write:
        rows = Rows(LISTED, write)
        for root in scope.roots:
            for row in rows_below(root, scope, properties):
                if isinstance(row, GcFinding):
                    find(row)
                    continue
                rows.add(*row)
                size += row[2]
                progress("files listed", rows.count, None)
        rows.flush()
    return {"listed": rows.count, "listedBytes": size}


# -- the difference -------------------------------------------------------------------------------


def is_metadata(path: str) -> bool:
    """Whether a file is a metadata file by its name."""
    return path.endswith(METADATA)


def differ(
    run: Run, scope: CandidateScope, progress: PhaseProgress, paths_at_once: int = PATHS_AT_ONCE
) -> dict[str, int]:
    """Writes the candidates. Reads the listed files once for each chunk of live paths."""
    listed = run.dataset("listed")
    needed = _needed(listed, run.marks().live, paths_at_once, progress)
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


def _needed(
    listed: Dataset, live: Dataset, paths_at_once: int, progress: PhaseProgress
) -> list[Any]:
    """Returns a bit for each listed file of each batch: whether it is live."""
    needed: list[Any] = []
    compared, total = 0, live.rows
    for lot in _lots(live, paths_at_once):
        for number, batch in enumerate(listed.batches(["path"])):
            whose = pc.replace_substring_regex(
                batch.column("path"), pattern=CHECKSUM, replacement=r"/\1"
            )
            is_live = pc.is_in(whose, value_set=lot)
            if number == len(needed):
                needed.append(is_live)
            else:
                needed[number] = pc.or_(needed[number], is_live)
        compared += len(lot)
        progress("live files compared", compared, total)
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
