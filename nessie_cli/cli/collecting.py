"""What the commands of `nessie gc` share: which run, which engine does the work, and a run as a document and on the screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.engines import Engine, chosen, spark_session
from nessie_cli.errors import InvalidInput, StoreNotFound

if TYPE_CHECKING:
    from nessie_cli.gc.applying import Revived
    from nessie_cli.gc.marker import RepositoryMarker
    from nessie_cli.gc.marking import Marked
    from nessie_cli.gc.run import Approval, Marks, Run, Runs, Settings
    from nessie_cli.repository.base import Repository

NO_RUNS = "no workspace here or above to keep runs in; `nessie init` makes one, or name a folder with --runs"

RunsFolder = Annotated[
    str | None, typer.Option("--runs", metavar="DIR", help="The folder of the runs; else gc/ in the workspace's .nessie/.", show_default=False)
]
RunName = Annotated[str | None, typer.Argument(metavar="[RUN]", help="Which run, or its first letters; else the newest.", show_default=False)]


def runs(call: Invocation, folder: str | None) -> Runs:
    """The runs that are meant.

    Raises `StoreNotFound` if nothing says where they are, and `NotAllowed` if only an untrusted workspace does: a run
    names the files to delete.
    """
    from nessie_cli.gc.run import DEFAULT_FOLDER, Runs
    from nessie_cli.workspace.trust import TRUSTED

    if folder is not None:
        return Runs(Path(folder).absolute())
    if call.workspace is None:
        raise StoreNotFound(NO_RUNS)
    if call.workspace.trust != TRUSTED:
        raise call.workspace.refusal("its runs are not used")
    return Runs(call.workspace.folder / DEFAULT_FOLDER)


def clock() -> datetime:
    """The time now: a run takes longer than the one time of an invocation would be true."""
    return datetime.now(UTC)


# -- engines ------------------------------------------------------------------------------------------------------------------------------


class Worker:
    """Marks and plans a run by its engine, on the store that it was begun on, for the workspace of this invocation."""

    def __init__(self, call: Invocation, run: Run, engine: Engine | None, tell: Any) -> None:
        self._call = call
        self._run = run
        self._tell = tell
        self._settings = run.info.settings
        self._spark = chosen(engine, Engine(self._settings.engine)) is Engine.SPARK
        self._repository = call.repository()
        if self._repository.url != self._settings.store:
            raise InvalidInput(f"run {run.id} is of the store {self._settings.store}, not of {self._repository.url}")

    @property
    def properties(self) -> Mapping[str, str]:
        """Those of the file systems."""
        from nessie_cli.iceberg.filesystems import properties_of
        from nessie_cli.workspace.environment import of_s3

        return of_s3() | properties_of(self._run.info.settings.catalog)

    @cached_property
    def _marker(self) -> RepositoryMarker:
        from nessie_cli.gc.marker import RepositoryMarker
        from nessie_cli.gc.staged import staged_states

        workspace = self._call.workspace
        return RepositoryMarker(
            self._repository,
            self._run.info.settings,
            self.properties,
            self._tell,
            staged=lambda: staged_states(workspace) if workspace else (),
            engine=self._engine,
        )

    def _engine(self, repository: Repository, settings: Settings, marks: Marks, properties: Mapping[str, str], told: Any) -> Marked:
        if self._spark:
            from nessie_cli.spark import gc_mark

            with spark_session(self._call):
                found: Marked = gc_mark(repository, settings, marks, properties, told)
            return found
        from nessie_cli.gc.marking import mark

        return mark(repository, settings, marks, properties, told)

    def verify(self) -> int | None:
        """Verify the part of the store that marking reads, see `Marker`. Says so if that is not possible from here."""
        verified = self._marker.verify()
        if verified is None:
            self._call.note(f"{self._repository.url}: a server's store cannot be verified by its clients; run `nessie fsck` where it is first")
        return verified

    def mark(self, marks: Marks) -> Marked:
        """See `Marker`."""
        return self._marker.mark(marks)

    def revived(self) -> Iterator[Revived]:
        """See `Marker`."""
        return self._marker.revived()

    def plan(self) -> Mapping[str, int]:
        """Find the candidates; answers counts."""
        settings = self._run.info.settings
        if self._spark:
            from nessie_cli.spark import gc_plan

            with spark_session(self._call):
                counts: Mapping[str, int] = gc_plan(self._run, settings, self.properties, self._tell)
            return counts
        from nessie_cli.gc.planning import plan

        return plan(self._run, settings, self.properties, self._tell)


# -- documents ----------------------------------------------------------------------------------------------------------------------------


def document(run: Run) -> dict[str, Any]:
    """A run for `--json`."""
    from nessie_cli.wire.encode import instant

    info, settings, approval = run.info, run.info.settings, run.approval()
    return {
        "run": info.id,
        "state": info.state.value,
        "folder": str(run.folder),
        "created": instant(info.created),
        "store": settings.store,
        "engine": settings.engine,
        "referenceTime": instant(settings.reference_time),
        "defaultCutoff": settings.default_cutoff,
        "cutoffs": [{"pattern": pattern, "policy": policy} for pattern, policy in settings.cutoffs],
        "snapshots": settings.snapshots,
        "graceSeconds": settings.grace,
        "warehouse": list(settings.warehouse),
        "catalog": settings.catalog,
        "references": [{"type": one.type, "name": one.name, "hash": one.hash} for one in info.references],
        "times": {name: instant(when) for name, when in info.times.items()},
        "counts": dict(sorted(info.counts.items())),
        "digest": digest_of(run),
        "approval": approval and _approval_document(approval),
        "failure": info.error,
    }


def digest_of(run: Run) -> str | None:
    """What an approval has to be for; None before there are candidates."""
    return run.digest() if run.dataset("candidates").exists else None


def _approval_document(approval: Approval) -> dict[str, Any]:
    from nessie_cli.wire.encode import instant

    return {
        "by": approval.by,
        "time": instant(approval.time),
        "digest": approval.digest,
        "candidates": approval.candidates,
        "bytes": approval.bytes,
    }


def finding_documents(run: Run) -> Iterator[dict[str, Any]]:
    """What a run could not read or list, and what it has left alone."""
    for name in ("findings", "plan-findings"):
        if run.dataset(name).exists:
            for row in run.dataset(name).records():
                yield {
                    "kind": row["kind"],
                    "contentId": row["content_id"],
                    "key": row["key"],
                    "reference": row["reference"],
                    "location": row["location"],
                    "base": row["base"],
                    "message": row["message"],
                }


def base_documents(run: Run) -> list[dict[str, Any]]:
    """How many candidates there are below each base, and their bytes, the largest first."""
    if not run.dataset("candidates").exists:
        return []
    sums: dict[str, list[int]] = {}
    for batch in run.dataset("candidates").batches(["base", "size"]):
        for base, size in zip(batch.column("base").to_pylist(), batch.column("size").to_pylist(), strict=True):
            one = sums.setdefault(base, [0, 0])
            one[0] += 1
            one[1] += size
    return [{"base": base, "files": files, "bytes": size} for base, (files, size) in sorted(sums.items(), key=lambda item: (-item[1][1], item[0]))]


# -- on the screen ------------------------------------------------------------------------------------------------------------------------

_NEXT = {
    "MARKING": "nessie gc mark --resume {run}",
    "MARKED": "nessie gc plan {run} --warehouse LOCATION",
    "PLANNED": "nessie gc show {run} --candidates, then nessie gc approve {run}",
    "APPROVED": "nessie gc apply {run}",
    "APPLYING": "nessie gc apply {run}",
    "PARTLY": "nessie gc apply {run}",
}


def next_step(run: Run) -> str:
    """The command that comes next, an empty text where there is none."""
    return _NEXT.get(_came_to(run), "").format(run=run.id)


def _came_to(run: Run) -> str:
    """The state of a run; of one that has failed, the state that it goes on from."""
    from nessie_cli.gc.phases import MARKED

    if run.info.state.value != "FAILED":
        return run.info.state.value
    if run.approval():
        return "APPLYING"
    return "MARKED" if MARKED in run.info.times else "MARKING"


_STEP = 1000
"""From a unit to the next."""


def size(count: int) -> str:
    """Bytes for people.

    >>> size(1_234_567)
    '1.2 MB'
    """
    value = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < _STEP or unit == "TB":
            break
        value /= _STEP
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def summary(run: Run) -> str:
    """One line about a run: its name, how far it is, and what was found."""
    counts = run.info.counts
    parts = [f"run {run.id}: {run.info.state.value}"]
    if "live" in counts:
        parts.append(f"{counts['live']:,} live files of {counts.get('contents', 0):,} contents")
    if "candidates" in counts:
        parts.append(f"{counts['candidates']:,} files to be deleted ({size(counts.get('candidateBytes', 0))})")
    if "deleted" in counts:
        parts.append(f"{counts['deleted']:,} deleted ({size(counts.get('deletedBytes', 0))})")
    return ", ".join(parts)


def finish(call: Invocation, run: Run) -> None:
    """Tell how far the run is, and end with 8 where something was left out or could not be done."""
    from nessie_cli.cli.errors.report import PARTLY_DONE
    from nessie_cli.gc.phases import is_incomplete
    from nessie_cli.gc.run import State

    if call.wants_json:
        call.answer(document(run))
    else:
        call.say(summary(run))
    partly = run.info.state is State.PARTLY
    if partly:
        call.note(f"{run.info.counts.get('failed', 0):,} files could not be deleted: `nessie gc show {run.id} --kept` tells why")
    elif left_out := run.info.state in (State.MARKED, State.PLANNED) and is_incomplete(run):
        call.note(f"something could not be read or listed, and is left alone: `nessie gc show {run.id}` tells what")
        partly = left_out
    if step := next_step(run):
        call.note(f"next: {step}")
    if partly:
        raise typer.Exit(PARTLY_DONE)
