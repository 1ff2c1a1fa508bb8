"""The life of a run: begun, checked, published or failed, discarded, expired.

Each step is one write of the repository with a request id made from the id of the run, and one
change of its record. If a process is killed between them, the step can be repeated.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import socket
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from nessie_cli.errors import (
    AlreadyExists,
    InvalidInput,
    NessieError,
    ReferenceNotFound,
    StoreUnavailable,
    WriteRefused,
)
from nessie_cli.model import Reference, ReferenceType, check_new_reference_name
from nessie_cli.model.runs import (
    PipelineRun,
    RunStage,
    RunState,
    check_run_id,
)
from nessie_cli.repository.base import Repository
from nessie_cli.repository.expiry import run_expiry
from nessie_cli.repository.failed_runs import is_guarding
from nessie_cli.repository.runs import (
    TOKEN_LIFE,
    RunRecord,
    RunRecords,
    new_token,
    run_not_found,
)
from nessie_cli.revisions import Revision

BEAT = 3.0
"""Seconds between two signs of life of a run."""
SILENCE = 3 * BEAT
"""Seconds without a sign of life after which the process of a run is dead."""
MOST_SECONDS = 10.0
"""How long the commits of a caller's expired runs are compared with the branches."""
_NAME = re.compile(r"[^a-z0-9._-]+")
_SPACE = uuid.UUID("6a1c6a0e-6c5e-4a6b-9a53-0d2b5d2f9d61")
"""The name space of the request ids of runs."""


class RunPlan(NamedTuple):
    """What a run is to do. `start` is the commit with which its branch begins."""

    target: str
    start: str
    key: str = ""
    command: Sequence[str] = ()
    checks: Sequence[str] = ()
    code: str = ""
    tag: str = ""


def begin(repository: Repository, plan: RunPlan, who: str) -> ActiveRun:
    """Begins a run: its record and its branch. With a key, joins the run of this key.

    Raises `InvalidInput` for a target that is not a branch or a start that the target does not
    contain, `AlreadyExists` for a tag or branch of the run that exists, and `NotAllowed`.
    """
    records = repository.runs
    expire_branches(repository)
    target = repository.reference(plan.target)
    if target.type is not ReferenceType.BRANCH:
        raise InvalidInput(f"{plan.target} is a {target.type.lower()}, and a run needs a branch")
    if not repository.is_ancestor(Revision(None, plan.start), Revision(None, target.hash)):
        raise InvalidInput(
            f"{plan.start[:12]} is not a commit of {plan.target}, into which the run is merged"
        )
    if plan.tag and not (plan.key and records.get(id_of_key(plan.key))):
        # A run of this key may have created the tag already.
        _refuse_tag(repository, plan.tag)
    now = int(time.time())
    run = PipelineRun(
        id=id_of_key(plan.key) if plan.key else new_id(now),
        target=target.name,
        base=plan.start,
        who=who,
        began=now,
        expires=now + _seconds(run_expiry(repository.config().settings)),
        key=plan.key,
        command=tuple(plan.command),
        checks=tuple(plan.checks),
        code=plan.code,
        tag=plan.tag,
        host=socket.gethostname(),
        pid=os.getpid(),
        nonce=secrets.token_hex(16),
    )
    record = records.put(RunRecord(run))
    if record is None:
        # Another process has begun the run of this key, and may have ended before its branch was.
        active = join(repository, run.id)
        if not active.run.has_ended:
            with suppress(ReferenceNotFound):
                active.head()
                return active
            active.make_branch()
        return active
    active = ActiveRun(repository, records, record)
    try:
        active.make_branch()
    except StoreUnavailable:
        # The branch may have been created, and the record lets it expire.
        raise
    except NessieError:
        records.delete(run.id)
        raise
    return active


def join(repository: Repository, id_: str) -> ActiveRun:
    """Returns a run by its id. Raises `NotFound`."""
    id_ = check_run_id(id_)
    records = repository.runs
    record = records.get(id_)
    if record is None:
        raise run_not_found(id_)
    return ActiveRun(repository, records, record)


def new_id(now: int) -> str:
    """Returns a new id: the time in UTC, and letters that tell runs of one second apart."""
    begun = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d-%H%M%S")
    return f"{begun}-{secrets.token_hex(3)}"


def id_of_key(key: str) -> str:
    """Returns the id of the run with a key: a readable part of it, and digits of its hash."""
    readable = _NAME.sub("-", key.lower()).strip("-._").replace("..", ".")[:40].rstrip("-._")
    digits = hashlib.sha256(key.encode()).hexdigest()[:12]
    return f"{readable}-{digits}" if readable else digits


def expire_branches(
    repository: Repository,
    *,
    now: float | None = None,
    dry_run: bool = False,
    report: Callable[[PipelineRun, NessieError], None] = lambda _, __: None,
) -> list[PipelineRun]:
    """Deletes the branches of expired runs, and their records.

    Returns these runs; with `dry_run`, deletes nothing. Leaves a run whose branch cannot be deleted
    now, and reports it. The record of a run that was not published stays while another branch has
    its commits, because the guard refuses merges of that branch by it. Runs of a caller of a server
    are left, too, if comparing their commits takes longer than `MOST_SECONDS` in all.
    """
    time_ = time.time() if now is None else now
    records, expired = repository.runs, []
    spent: dict[str, float] = defaultdict(float)
    for record in records.all():
        run = record.run
        is_alive = run.state is RunState.RUNNING and time_ - run.seen < TOKEN_LIFE
        if run.expires > time_ or is_alive:
            continue
        try:
            branch = _branch(repository, run)
            if branch is not None and not run.head:
                # It was killed during its command.
                run = replace(run, state=RunState.FAILED, head=branch.hash, tokens=())
            is_needed = _is_guarding(repository, run, spent)
            if branch is None and is_needed:
                continue
            if not dry_run:
                if is_needed and run != record.run:
                    records.put(RunRecord(run, record.version))
                delete_branch(repository, run)
                if not is_needed:
                    records.delete(run.id)
        except NessieError as error:
            report(run, error)
            continue
        expired.append(run)
    return expired


def _is_guarding(repository: Repository, run: PipelineRun, spent: dict[str, float]) -> bool:
    """Returns whether a run is still needed. `spent` are the seconds for all runs of a caller."""
    begun = time.monotonic()
    try:
        return is_guarding(repository, run, begun + MOST_SECONDS - spent[run.who])
    except TimeoutError:
        raise WriteRefused(
            f"comparing the commits of the runs of {run.who} takes longer than {MOST_SECONDS:g} s"
        ) from None
    finally:
        spent[run.who] += time.monotonic() - begun


def _branch(repository: Repository, run: PipelineRun) -> Reference | None:
    with suppress(ReferenceNotFound):
        return repository.reference(run.branch)
    return None


def delete_branch(repository: Repository, run: PipelineRun) -> None:
    """Deletes the branch of a run, if there is one."""
    with suppress(ReferenceNotFound):
        reference = repository.reference(run.branch)
        repository.delete_reference(run.branch, expected_hash=reference.hash)


class RunChanged(NessieError):
    """Another process has changed the run."""

    code = "RUN_CHANGED"


class ActiveRun:
    """A run in the hands of this process, and the current version of its record."""

    def __init__(self, repository: Repository, records: RunRecords, record: RunRecord) -> None:
        self.repository = repository
        self._records = records
        self._record = record
        self._lock = threading.Lock()

    @property
    def run(self) -> PipelineRun:
        """The record of the run."""
        return self._record.run

    @property
    def branch(self) -> str:
        """The branch of the run."""
        return self.run.branch

    def head(self) -> str:
        """Returns the present commit of the branch. Raises `ReferenceNotFound`."""
        return self.repository.reference(self.branch).hash

    def published_commit(self) -> str:
        """Returns the commit of the publication, also if it is not recorded yet; or ""."""
        run = self.run
        if run.result or not run.head:
            return run.result
        done = self.repository.find_request(self.publication_id(run.head), branch=run.target)
        # Others can know the request ids of runs of older versions.
        return done.reference.hash if done and done.reference.name == run.target else ""

    def publication_id(self, head: str) -> str:
        """Returns the request id of the publication of a commit."""
        return self.request_id(f"publish {head}")

    def request_id(self, step: str) -> str:
        """Returns the request id of a step, the same for each repetition of it."""
        run = self.run
        return str(uuid.uuid5(_SPACE, f"{run.id} {run.began} {run.nonce}{step}"))

    # -- the record ------------------------------------------------------------------------------

    def change(self, **changes: object) -> None:
        """Changes the record.

        Several processes may work on a run that they have joined. Raises `RunChanged` if another
        process has taken over or ended the run.
        """
        with self._lock:
            while True:
                record = self._record
                stored = self._records.put(
                    RunRecord(replace(record.run, **changes), record.version)
                )
                if stored is not None:
                    self._record = stored
                    return
                current = self._records.get(record.run.id)
                if current is None or _holder(current.run) != _holder(record.run):
                    raise RunChanged(
                        f"run {record.run.id} was continued or ended by another process",
                        hint=f"nessie run --show {record.run.id}",
                    )
                self._record = current

    def add_token(self) -> str:
        """Returns a new token for the programs of the run."""
        token, digest = new_token(self.run.id)
        self.change(tokens=(*self.run.tokens, digest))
        return token

    def make_branch(self) -> None:
        """Creates the branch, once. Raises `AlreadyExists` for a branch of others."""
        self.repository.create_reference(
            ReferenceType.BRANCH,
            self.branch,
            self.run.base,
            request_id=self.request_id("branch"),
        )

    @contextmanager
    def working(self, on_loss: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Shows by signs of life that a process works on the run, within the block.

        Calls `on_loss`, on another thread, if another process has changed the run.
        """
        ending = threading.Event()

        def beat() -> None:
            while not ending.wait(BEAT):
                try:
                    self.change()
                except RunChanged:
                    on_loss()
                    return
                except NessieError:
                    # A store that is away now may be there for the next sign.
                    continue

        thread = threading.Thread(target=beat, name="run", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()

    def is_alive(self) -> bool:
        """Returns whether a process works on the run. Waits up to `SILENCE` seconds for a sign."""
        run = self.run
        if run.state is not RunState.RUNNING:
            return False
        if run.host == socket.gethostname() and not _exists(run.pid):
            return False
        before, until = self._record.version, time.monotonic() + SILENCE
        while time.monotonic() < until:
            time.sleep(BEAT / 10)
            record = self._records.get(run.id)
            if record is None or record.version != before:
                return record is not None
        return False

    # -- steps -----------------------------------------------------------------------------------

    def take_over(self) -> None:
        """Makes this process the one that works on the run."""
        self.change(
            state=RunState.RUNNING,
            host=socket.gethostname(),
            pid=os.getpid(),
            reason="",
            ended=None,
            tokens=(),
        )

    def fail(
        self, stage: RunStage, reason: str, *, exit_code: int | None = None, head: str = ""
    ) -> None:
        """Records that the run has failed, unless it is published.

        Its branch stays until it expires.
        """
        if self.run.result:
            return
        self.change(
            state=RunState.FAILED,
            stage=stage,
            reason=reason,
            exit_code=self.run.exit_code if exit_code is None else exit_code,
            head=head or self.run.head,
            tokens=(),
            ended=int(time.time()),
        )

    def end_command(self, exit_code: int) -> None:
        """Records that the command has ended. Its token is for reading from now on."""
        self.change(stage=RunStage.CHECK, exit_code=exit_code)

    def ready(self) -> None:
        """Records that the run waits for its publication."""
        self.change(state=RunState.READY, stage=RunStage.PUBLISH, ended=int(time.time()))

    def published(self, result: str) -> None:
        """Tags the published commit, deletes the branch and records the publication.

        Each of these steps can be repeated. A branch that cannot be deleted, or that has moved
        since the checks, stays until it expires. Raises the error of a tag that cannot be created,
        after all other steps.
        """
        run = self.run
        self.change(stage=RunStage.PUBLISH, result=result)
        refused = self._make_tag() if run.tag else None
        reason = refused.message if refused else ""
        with suppress(NessieError):
            if self.head() == run.head:
                self.repository.delete_reference(run.branch, expected_hash=run.head)
            else:
                reason = reason or f"{run.branch} has moved since it was checked, and stays"
        self.change(
            state=RunState.PUBLISHED,
            ended=int(time.time()),
            reason=reason,
            tokens=(),
        )
        if refused:
            raise refused

    def _make_tag(self) -> NessieError | None:
        """Creates the tag of the published commit. Returns the error if it cannot be."""
        run, repository = self.run, self.repository
        try:
            repository.create_reference(
                ReferenceType.TAG, run.tag, run.result, request_id=self.request_id("tag")
            )
        except StoreUnavailable:
            raise
        except NessieError as error:
            with suppress(NessieError):
                # Another user may have begun to publish, and have been interrupted.
                tag = repository.reference(run.tag)
                if (tag.type, tag.hash) == (ReferenceType.TAG, run.result):
                    return None
            error.message = (
                f"run {run.id} is published as {run.result[:12]} on {run.target}, but the tag was"
                f" not created: {error.message}"
            )
            return error
        return None

    def discard(self) -> None:
        """Deletes the branch, and records that the run is never published.

        A process that runs the command or the checks ends itself. Raises `InvalidInput` for a
        run that is published, or is being published.
        """
        while True:
            self._refuse_published()
            run, head = self.run, self.run.head
            with suppress(ReferenceNotFound):
                head = self.head()
            discarded = replace(
                run,
                state=RunState.DISCARDED,
                head=head,
                tokens=(),
                ended=int(time.time()),
                reason="",
            )
            # Only what was looked at is discarded: its publication may have begun meanwhile.
            stored = self._records.put(RunRecord(discarded, self._record.version))
            if stored is not None:
                self._record = stored
                break
            current = self._records.get(run.id)
            if current is None:
                raise run_not_found(run.id)
            self._record = current
        delete_branch(self.repository, self.run)

    def _refuse_published(self) -> None:
        if result := self.published_commit():
            raise InvalidInput(
                f"run {self.run.id} is published as {result[:12]}",
                hint=f"nessie revert {result[:12]} --ref {self.run.target}",
            )
        if self.run.stage is RunStage.PUBLISH and self.is_alive():
            raise InvalidInput(
                f"run {self.run.id} is being published", hint=f"nessie run --show {self.run.id}"
            )


def is_written_past(active: ActiveRun) -> str:
    """Returns the newest commit of the caller on the target beside an empty branch, or "".

    Then the command has probably written to the target, and not to the branch of the run. It is
    unknown for callers without a name.
    """
    run, repository = active.run, active.repository
    if not run.who or active.head() != run.base:
        return ""
    target = repository.reference(run.target).hash
    if target == run.base:
        return ""
    for entry in repository.log_excluding(Revision(None, target), [Revision(None, run.base)]):
        if entry.meta.committer == run.who and "run" not in entry.meta.properties:
            return entry.hash
    return ""


def _holder(run: PipelineRun) -> tuple[object, ...]:
    """Returns what changes if another process takes over or ends a run."""
    return run.state, run.host, run.pid


def _refuse_tag(repository: Repository, tag: str) -> None:
    check_new_reference_name(tag)
    with suppress(ReferenceNotFound):
        repository.reference(tag)
        raise AlreadyExists(
            f"{tag} exists already, so the run cannot create this tag",
            tag,
            hint="choose another name after --tag",
        )


def _exists(pid: int) -> bool:
    """Returns whether there is a process with this number on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _seconds(duration: timedelta) -> int:
    return duration // timedelta(seconds=1)
