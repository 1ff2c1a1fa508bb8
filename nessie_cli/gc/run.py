"""A run of the garbage collection: a folder that holds all that was found and decided, so that it can be looked at, gone on with, and proved later.

    20261122T103000Z/run.json         what was asked for, how far it is, counts; replaced whole
                     live-0/ ...      datasets (see `datasets`); run.json names the folder that counts
                     approval.json    who has approved which candidates
                     deleted.jsonl    what was deleted, written before and after each batch
                     lock             held by the process that works on it

Whoever changes a run holds its lock. A process may be killed between any two writes: what `run.json` says is always true.
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
"""The folder of runs in a workspace's `.nessie/`."""

Clock = Callable[[], datetime]


class State(StrEnum):
    """How far a run is. MARKING and APPLYING are also the states of a run whose process was stopped on the way: it is gone on with."""

    MARKING = "MARKING"
    MARKED = "MARKED"
    PLANNED = "PLANNED"
    APPROVED = "APPROVED"
    APPLYING = "APPLYING"
    APPLIED = "APPLIED"
    PARTLY = "PARTLY"
    FAILED = "FAILED"


class Pinned(Struct, frozen=True, rename="camel"):
    """A reference, and where it stood when the run was marked."""

    name: str
    type: str
    hash: str


class Settings(Struct, frozen=True, rename="camel", kw_only=True):
    """What was asked for. `store` is the URL without secrets; `cutoffs` are (pattern of reference names, policy), the first that fits counts.

    Durations count back from `reference_time`. `grace` is in seconds. `warehouse` lists the locations that files may be deleted below, `catalog`
    is the one of PyIceberg's configuration that has the properties of the file systems. Grace and warehouse are settled when the run is planned.
    `snapshots` is `listed` (every snapshot that a live metadata file lists stays) or `referenced` (only the one that the content names).
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

    def with_plan(self, warehouse: tuple[str, ...], grace: int) -> Settings:
        """With what is settled when the run is planned."""
        return msgspec.structs.replace(self, warehouse=warehouse, grace=grace)


class Marks(NamedTuple):
    """The datasets of one mark: contents that the history names, files that are live, locations of tables, and what could not be read."""

    contents: Dataset
    live: Dataset
    bases: Dataset
    findings: Dataset


class RunInfo(Struct, frozen=True, rename="camel", kw_only=True):
    """What `run.json` says. `times` and `counts` have a name each, `datasets` the folder of each; `error` is why the state is FAILED."""

    format: int = FORMAT
    id: str
    state: State
    created: datetime
    settings: Settings
    references: tuple[Pinned, ...] = ()
    counts: dict[str, int] = {}
    times: dict[str, datetime] = {}
    datasets: dict[str, str] = {}
    error: str | None = None


class Approval(Struct, frozen=True, rename="camel", kw_only=True):
    """Somebody's word that these candidates may be deleted: `digest` is that of `Run.digest`."""

    by: str
    time: datetime
    digest: str
    candidates: int
    bytes: int


class Run:
    """One run in a folder. Properties read what was read last; `changing` reads anew under the lock."""

    def __init__(self, folder: Path, info: RunInfo) -> None:
        self.folder = folder
        self.info = info

    @property
    def id(self) -> str:
        """The name of the run; runs sort by it as by time."""
        return self.info.id

    @property
    def audit_path(self) -> Path:
        """The file that tells what was deleted."""
        return self.folder / AUDIT_FILE

    def dataset(self, name: str) -> Dataset:
        """One of its tables, written or not: `candidates` and the others."""
        return Dataset(self.folder, name, self._folder_of, self._becomes)

    def marks(self, *, again: bool = False) -> Marks:
        """The datasets of the mark, or those of the mark just before deletion."""
        behind = "-again" if again else ""
        return Marks(*(self.dataset(f"{name}{behind}") for name in Marks._fields))

    def forget(self, *datasets: Dataset) -> None:
        """Drop datasets, and what is finished of them, so that they are written anew.

        Raises `StoreUnavailable` where something is left that would be taken for finished: by that a live file could be missed.
        """
        names = {dataset.name for dataset in datasets}
        gone = [
            self.folder / folder for name, folder in self.info.datasets.items() if name in names
        ]
        gone += [dataset.pieces for dataset in datasets]
        self.update(
            datasets={
                name: folder for name, folder in self.info.datasets.items() if name not in names
            }
        )
        for folder in gone:
            shutil.rmtree(folder, ignore_errors=True)
        for dataset in datasets:
            if os.path.lexists(dataset.pieces):
                raise StoreUnavailable(
                    f"{dataset.pieces}: cannot be removed; it holds what an earlier mark has found, so remove it and try again"
                )

    def _folder_of(self, name: str) -> str | None:
        return self.info.datasets.get(name)

    def _becomes(self, name: str, folder: str) -> None:
        self.update(datasets={**self.info.datasets, name: folder})

    def update(self, **changes: Any) -> None:
        """Change what `run.json` says, durably; `changes` are attributes of `RunInfo`."""
        info = msgspec.structs.replace(self.info, **changes)
        replace_text(
            self.folder / RUN_FILE,
            msgspec.json.format(msgspec.json.encode(info), indent=1).decode() + "\n",
        )
        self.info = info

    def reach(
        self, state: State, now: datetime, counts: Mapping[str, int] | None = None, **changes: Any
    ) -> None:
        """It is as far as this from now on."""
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
        """Work on it while nobody else does; raises `StoreUnavailable` where somebody else does."""
        with locked_if_free(self.folder / LOCK_FILE) as free:
            if not free:
                raise StoreUnavailable(f"run {self.id}: another process is working on it")
            self.info = _read(self.folder)
            yield self

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Note an error of this block in the run. An interrupt leaves the run as it is: to be gone on with, and so does a failure."""
        try:
            yield
        except NessieError as error:
            # Where not even that can be written, the first error is the one to be told.
            with suppress(StoreUnavailable):
                self.update(state=State.FAILED, error=error.message)
            raise

    # -- approval ---------------------------------------------------------------------------------------------------------------------

    def digest(self) -> str:
        """A SHA-256 over the candidates and all that decides about them: an approval counts for nothing else."""
        settings = msgspec.json.encode(self.info.settings, order="deterministic")
        return hashlib.sha256(settings + self.dataset("candidates").digest().encode()).hexdigest()

    def approval(self) -> Approval | None:
        """The approval, whether or not it fits what there is now; raises `InvalidInput` for a file that is none."""
        found: Approval | None = _decoded(self.folder / APPROVAL_FILE, Approval)
        return found

    def approve(self, approval: Approval) -> None:
        """Keep an approval."""
        replace_text(
            self.folder / APPROVAL_FILE,
            msgspec.json.format(msgspec.json.encode(approval), indent=1).decode() + "\n",
        )
        self.reach(State.APPROVED, approval.time)

    def disapprove(self) -> None:
        """Forget the approval: the candidates are about to change."""
        remove(self.folder / APPROVAL_FILE)


class Runs:
    """The folder that the runs are in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def new(self, settings: Settings, now: datetime) -> Run:
        """Begin a run."""
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
                raise StoreUnavailable(f"{folder}: cannot be made: {error.strerror}") from None
            run = Run(folder, RunInfo(id=id_, state=State.MARKING, created=now, settings=settings))
            run.update()
            return run

    def ids(self) -> list[str]:
        """The names of all runs, the newest first. A folder without `run.json` is the beginning of one whose process was killed, and is none."""
        if not self.folder.is_dir():
            return []
        return sorted(
            (path.parent.name for path in self.folder.glob(f"*/{RUN_FILE}")),
            key=_by_time,
            reverse=True,
        )

    def open(self, id_: str | None = None) -> Run:
        """A run by its name or the beginning of it, None: the newest one. Raises `RunNotFound`, and `InvalidInput` for an ambiguous name."""
        ids = self.ids()
        if not ids:
            raise RunNotFound(
                f"{self.folder}: there is no run yet; `nessie gc mark` begins one", id_ or ""
            )
        found = [one for one in ids if one == id_] or [
            one for one in ids if one.startswith(id_ or "")
        ]
        if not found:
            raise RunNotFound(
                f"there is no run '{id_}' in {self.folder}; `nessie gc list` lists them", id_ or ""
            )
        if id_ is not None and len(found) > 1:
            raise InvalidInput(
                f"'{id_}' are the first letters of {len(found)} runs: {', '.join(found[:5])}"
            )
        folder = self.folder / found[0]
        return Run(folder, _read(folder))

    def all(self) -> Iterator[Run]:
        """All runs, the newest first."""
        return (self.open(id_) for id_ in self.ids())


def _by_time(id_: str) -> tuple[str, int]:
    time, _, number = id_.partition("-")
    return time, int(number) if number.isdecimal() else 0


def _read(folder: Path) -> RunInfo:
    found: RunInfo | None = _decoded(folder / RUN_FILE, RunInfo)
    if found is None:
        raise RunNotFound(f"{folder / RUN_FILE}: is gone", folder.name)
    if found.format != FORMAT:
        raise InvalidInput(
            f"{folder / RUN_FILE}: is of format {found.format}; this program knows format {FORMAT}"
        )
    return found


def _decoded(path: Path, kind: Any) -> Any:
    text = read_text(path)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{path}: {str(error)[:1].lower()}{str(error)[1:]}") from None
