"""A run of the garbage collection: a folder with all results and decisions.

    20261122T103000Z/run.json         settings, state and counts; replaced atomically
                     live-0/ ...      datasets (see `datasets`); run.json has their current folders
                     approval.json    who has approved which candidates
                     deleted.jsonl    the audit trail, written before and after each batch
                     lock             the lock of the process that works on the run

Every change of a run needs its lock. `run.json` is correct even if a process is killed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from nessie_cli.errors import InvalidInput, NessieError, RunNotFound, StoreUnavailable
from nessie_cli.gc.datasets import Dataset
from nessie_cli.workspace.files import locked_if_free, read_text, remove, replace_text

FORMAT = 1
RUN_FILE = "run.json"
APPROVAL_FILE = "approval.json"
AUDIT_FILE = "deleted.jsonl"
LOCK_FILE = "lock"
DEFAULT_FOLDER = "gc"
"""The folder of the runs in `.nessie/`."""

Clock = Callable[[], datetime]


class RunState(StrEnum):
    """The state of a run. An interrupted run stays in MARKING or APPLYING and can be resumed."""

    MARKING = "MARKING"
    MARKED = "MARKED"
    PLANNED = "PLANNED"
    APPROVED = "APPROVED"
    APPLYING = "APPLYING"
    APPLIED = "APPLIED"
    PARTLY = "PARTLY"
    FAILED = "FAILED"


class PinnedReference(Struct, frozen=True, rename="camel"):
    """A reference and its commit at the time of the mark."""

    name: str
    type: str
    hash: str


class ForeignKind(StrEnum):
    """Why another catalog may write a table. The value is the kind of a finding."""

    IMPORTED = "IMPORTED"
    EXPORTED = "EXPORTED"


class ForeignLocation(Struct, frozen=True, order=True):
    """The normal location of a table that `catalog`, another one, may write.

    `key` is the key under which the table was imported, or its name in the other catalog.
    `references` are those that say that the table was exported: a tag, a branch, or both.
    """

    location: str
    key: str
    catalog: str
    kind: ForeignKind
    references: tuple[str, ...] = ()


class RunSettings(Struct, frozen=True, rename="camel", kw_only=True):
    """The settings of a run.

    * `store`: the URL without secrets.
    * `cutoffs`: pairs of a pattern of reference names and a policy. The first match decides.
    * `reference_time`: durations count back from it.
    * `grace`: in seconds. It, `warehouse` and `foreign` are set by the plan.
    * `warehouse`: the locations below which files may be deleted.
    * `catalog`: the catalog in PyIceberg's configuration with the properties of the file systems.
    * `snapshots`: `listed` keeps every snapshot in a live metadata file, `referenced` only the
      snapshot of the content.
    * `foreign`: locations that another catalog may write. No file there is a candidate.
    """

    store: str
    reference_time: datetime
    engine: str = "local"
    cutoffs: tuple[tuple[str, str], ...] = ()
    default_cutoff: str = "NONE"
    grace: int = 0
    warehouse: tuple[str, ...] = ()
    catalog: str | None = None
    snapshots: str = "listed"
    foreign: tuple[ForeignLocation, ...] = ()

    def with_plan(
        self, warehouse: tuple[str, ...], grace: int, foreign: tuple[ForeignLocation, ...]
    ) -> RunSettings:
        """Returns the settings with those of the plan."""
        return msgspec.structs.replace(self, warehouse=warehouse, grace=grace, foreign=foreign)


class MarkDatasets(NamedTuple):
    """The datasets of one mark: contents, live files, locations of tables, and findings."""

    contents: Dataset
    live: Dataset
    bases: Dataset
    findings: Dataset


class RunInfo(Struct, frozen=True, rename="camel", kw_only=True):
    """The contents of `run.json`. `datasets` has folders by name, `error` the reason of FAILED."""

    format: int = FORMAT
    id: str
    state: RunState
    created: datetime
    settings: RunSettings
    references: tuple[PinnedReference, ...] = ()
    counts: dict[str, int] = {}
    times: dict[str, datetime] = {}
    datasets: dict[str, str] = {}
    error: str | None = None


class Approval(Struct, frozen=True, rename="camel", kw_only=True):
    """The approval to delete the candidates with a digest, the one of `Run.digest`."""

    by: str
    time: datetime
    digest: str
    candidates: int
    bytes: int


class Run:
    """One run in a folder. Properties are those of the last read. `changing` reads it again."""

    def __init__(self, folder: Path, info: RunInfo) -> None:
        self.folder = folder
        self.info = info

    @property
    def id(self) -> str:
        """The name of the run. Names sort by time."""
        return self.info.id

    @property
    def audit_path(self) -> Path:
        """The file of the audit trail."""
        return self.folder / AUDIT_FILE

    def dataset(self, name: str) -> Dataset:
        """Returns a dataset by name, such as `candidates`, written or not."""
        return Dataset(self.folder, name, self._folder_of, self._becomes)

    def marks(self, *, again: bool = False) -> MarkDatasets:
        """Returns the datasets of the mark, or of the mark before deletion (`again`)."""
        behind = "-again" if again else ""
        return MarkDatasets(*(self.dataset(f"{name}{behind}") for name in MarkDatasets._fields))

    def forget(self, *datasets: Dataset) -> None:
        """Drops datasets and their finished parts, so that they are written from scratch.

        Raises `StoreUnavailable` if a finished part cannot be removed: with it, a later mark would
        miss live files.
        """
        names = {dataset.name for dataset in datasets}
        gone = [
            self.folder / folder for name, folder in self.info.datasets.items() if name in names
        ]
        gone += [dataset.parts for dataset in datasets]
        self.update(
            datasets={
                name: folder for name, folder in self.info.datasets.items() if name not in names
            }
        )
        for folder in gone:
            shutil.rmtree(folder, ignore_errors=True)
        for dataset in datasets:
            if os.path.lexists(dataset.parts):
                raise StoreUnavailable(
                    f"{dataset.parts}: the results of an earlier mark cannot be removed",
                    hint="remove the folder and try again",
                )

    def _folder_of(self, name: str) -> str | None:
        return self.info.datasets.get(name)

    def _becomes(self, name: str, folder: str) -> None:
        self.update(datasets={**self.info.datasets, name: folder})

    def update(self, **changes: Any) -> None:
        """Changes `run.json` durably. `changes` are attributes of `RunInfo`."""
        info = msgspec.structs.replace(self.info, **changes)
        replace_text(
            self.folder / RUN_FILE,
            msgspec.json.format(msgspec.json.encode(info), indent=1).decode() + "\n",
        )
        self.info = info

    def reach(
        self,
        state: RunState,
        now: datetime,
        counts: Mapping[str, int] | None = None,
        **changes: Any,
    ) -> None:
        """Sets the state."""
        times = {**self.info.times, state.value.lower(): now}
        self.update(
            state=state,
            times=times,
            counts={**self.info.counts, **(counts or {})},
            error=None,
            **changes,
        )

    @contextmanager
    def changing(self) -> Iterator[Run]:
        """Holds the lock. Raises `StoreUnavailable` if another process holds it."""
        with locked_if_free(self.folder / LOCK_FILE) as free:
            if not free:
                raise StoreUnavailable(f"run {self.id}: another process is working on it")
            self.info = _read(self.folder)
            yield self

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Records an error of the block as the state FAILED. The run can be resumed.

        An interruption does not change the state.
        """
        try:
            yield
        except NessieError as error:
            # If the state cannot be written either, the first error is the one to report.
            with suppress(StoreUnavailable):
                self.update(state=RunState.FAILED, error=error.message)
            raise

    # -- approval ---------------------------------------------------------------------------------

    def digest(self) -> str:
        """Returns a SHA-256 over the candidates and the settings, which an approval covers."""
        settings = msgspec.json.encode(self.info.settings, order="deterministic")
        return hashlib.sha256(settings + self.dataset("candidates").digest().encode()).hexdigest()

    def approval(self) -> Approval | None:
        """Returns the approval, even one of earlier candidates. Raises `InvalidInput`."""
        approval: Approval | None = _decoded(self.folder / APPROVAL_FILE, Approval)
        return approval

    def approve(self, approval: Approval) -> None:
        """Stores an approval."""
        replace_text(
            self.folder / APPROVAL_FILE,
            msgspec.json.format(msgspec.json.encode(approval), indent=1).decode() + "\n",
        )
        self.reach(RunState.APPROVED, approval.time)

    def disapprove(self) -> None:
        """Removes the approval, before the candidates change."""
        remove(self.folder / APPROVAL_FILE)


class Runs:
    """The folder of the runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def new(self, settings: RunSettings, now: datetime) -> Run:
        """Begins a run."""
        name = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
        number = 0
        while True:
            id_ = f"{name}-{number}" if number else name
            folder = self.folder / id_
            try:
                folder.mkdir(parents=True)
            except FileExistsError:
                number += 1
                continue
            except OSError as error:
                raise StoreUnavailable(f"{folder} cannot be created: {error.strerror}") from None
            run = Run(
                folder, RunInfo(id=id_, state=RunState.MARKING, created=now, settings=settings)
            )
            run.update()
            return run

    def ids(self) -> list[str]:
        """Returns the names of all runs, newest first.

        A folder without `run.json` is not a run: its process was killed at the beginning.
        """
        if not self.folder.is_dir():
            return []
        return sorted(
            (path.parent.name for path in self.folder.glob(f"*/{RUN_FILE}")),
            key=_by_time,
            reverse=True,
        )

    def open(self, id_: str | None = None) -> Run:
        """Returns a run by its name or the beginning of it. None stands for the newest run.

        Raises `RunNotFound`, and `InvalidInput` for an ambiguous name.
        """
        ids = self.ids()
        if not ids:
            raise RunNotFound(
                f"{self.folder}: there is no run", id_ or "", hint="`nessie gc mark` begins one"
            )
        matches = [id_] if id_ in ids else [name for name in ids if name.startswith(id_ or "")]
        if not matches:
            raise RunNotFound(
                f"there is no run '{id_}' in {self.folder}",
                id_ or "",
                hint="`nessie gc list` lists the runs",
            )
        if id_ is not None and len(matches) > 1:
            raise InvalidInput(
                f"'{id_}' is ambiguous: {len(matches)} runs begin with it: {', '.join(matches[:5])}"
            )
        folder = self.folder / matches[0]
        return Run(folder, _read(folder))

    def all(self) -> Iterator[Run]:
        """Returns all runs, newest first."""
        return (self.open(id_) for id_ in self.ids())


def _by_time(id_: str) -> tuple[str, int]:
    time, _, number = id_.partition("-")
    return time, int(number) if number.isdecimal() else 0


def _read(folder: Path) -> RunInfo:
    info: RunInfo | None = _decoded(folder / RUN_FILE, RunInfo)
    if info is None:
        raise RunNotFound(f"{folder / RUN_FILE} is missing", folder.name)
    if info.format != FORMAT:
        raise InvalidInput(
            f"{folder / RUN_FILE} has format {info.format}; this program supports format {FORMAT}"
        )
    return info


def _decoded(path: Path, kind: Any) -> Any:
    text = read_text(path)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{path}: {str(error)[:1].lower()}{str(error)[1:]}") from None
