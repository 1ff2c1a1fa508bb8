"""A pipeline's run: a branch that is published as one commit, or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.model.references import check_reference_name

PREFIX = "run/"
"""The first letters of the branches of runs."""
PROPERTY = "run"
"""The property of a commit that names the run which made it."""
MOST_TEXT = 65_536
"""The most characters of all texts of a record."""
_LATEST = 253_402_300_800
_HASH = re.compile(r"[0-9a-f]{64}")
_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


class RunState(StrEnum):
    """The states of a run. A run that is failed or discarded was never published."""

    RUNNING = "running"
    """Its command or its checks run, or their process was killed."""
    READY = "ready"
    """All checks have passed, and it waits for its publication."""
    PUBLISHED = "published"
    FAILED = "failed"
    DISCARDED = "discarded"


UNPUBLISHED = (RunState.FAILED, RunState.DISCARDED, RunState.RUNNING)
"""The states of runs whose commits may be incomplete or unchecked."""


class RunStage(StrEnum):
    """What a run does, or what it failed at."""

    COMMAND = "command"
    CHECK = "check"
    CONFLICT = "conflict"
    PUBLISH = "publish"


class CheckResult(Struct, frozen=True, omit_defaults=True):
    """The result of a check: its description, and what it printed or found if it failed."""

    check: str
    passed: bool
    output: str = ""


class PipelineRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of a run.

    `base` is the commit of `target` with which the branch began. `command` has no secrets. `head`
    is the commit that the checks saw, and `against` the commit of the target at that time.
    `result` is the commit of the publication, or the head of the target if nothing had changed.
    `exit_code` is that of the command. `tokens` are the SHA-256 (hexadecimal) of the secrets of the
    tokens that may write the branch: one for each process that works on the run. Times are in
    seconds since 1970; the branch of a run that was not published is deleted at `expires`.
    """

    id: str
    target: str
    base: str
    who: str
    began: int
    expires: int
    state: RunState = RunState.RUNNING
    stage: RunStage = RunStage.COMMAND
    key: str = ""
    command: tuple[str, ...] = ()
    code: str = ""
    """The commit of the working folder's git repository."""
    host: str = ""
    pid: int = 0
    """The process that works on the run, on the machine `host`."""
    checks: tuple[str, ...] = ()
    """The descriptions of the checks that must pass."""
    results: tuple[CheckResult, ...] = ()
    tag: str = ""
    head: str = ""
    against: str = ""
    result: str = ""
    exit_code: int | None = None
    reason: str = ""
    ended: int | None = None
    seen: int = 0
    """The time of the last change: a process that works on the run makes one every few seconds."""
    tokens: tuple[str, ...] = ()
    credentials: Mapping[str, str] = {}
    """At a server with authentication, for each of `tokens`, the credential by which its caller
    added it: it ends with this credential.
    """
    roles: tuple[str, ...] = ()
    """The roles of the caller who began it, at a server."""
    is_remote: bool = False
    """Whether an authenticated caller of a server wrote the record."""
    nonce: str = ""
    """Random text in the request ids of the run, so that other callers cannot use them up."""

    @property
    def branch(self) -> str:
        """The branch of the run."""
        return PREFIX + self.id

    @property
    def has_ended(self) -> bool:
        """Whether nothing more can happen: it is published or discarded."""
        return self.state in (RunState.PUBLISHED, RunState.DISCARDED)


def check_record(run: PipelineRun) -> PipelineRun:
    """Returns a record. Raises `InvalidInput` for values that no run has, or too many of them."""
    for name in ("base", "head", "against", "result"):
        hash_ = getattr(run, name)
        if hash_ and not _HASH.fullmatch(hash_):
            raise InvalidInput(f"run.{name}: {hash_[:80]!r} is not the hash of a commit")
    if not all(_HASH.fullmatch(token) for token in run.tokens):
        raise InvalidInput("run.tokens: not SHA-256 in hexadecimal digits")
    for name in ("began", "expires", "ended", "seen"):
        if not 0 <= (getattr(run, name) or 0) < _LATEST:
            raise InvalidInput(f"run.{name}: not a time in seconds since 1970")
    check_reference_name(run.target)
    if run.tag:
        check_reference_name(run.tag)
    size = sum(map(len, _texts(run)))
    if size > MOST_TEXT:
        raise InvalidInput(f"run: its texts have {size:,} characters, {MOST_TEXT:,} are allowed")
    return run


def _texts(run: PipelineRun) -> Iterator[str]:
    yield from (run.key, run.code, run.host, run.tag, run.reason, run.nonce)
    for texts in (run.command, run.checks, run.tokens, run.roles):
        # An empty text takes space, too.
        yield from (f"{text} " for text in texts)
    for result in run.results:
        yield f"{result.check} {result.output} "


def check_run_id(id_: str) -> str:
    """Returns the id of a run. Raises `InvalidInput` for a text that cannot be one."""
    id_ = id_.removeprefix(PREFIX)
    if not _ID.fullmatch(id_) or ".." in id_:
        raise InvalidInput(f"{id_!r} is not the id of a run", hint="nessie run --list")
    return id_
