"""The rules for the programs of a run: they may write its branch only, until it is checked.

Otherwise they have the rights of the caller who began the run.
"""

from __future__ import annotations

import time

from nessie_cli.model.runs import PipelineRun, RunStage, RunState
from nessie_cli.repository.runs import RunRecords
from nessie_cli.server.auth import rules
from nessie_cli.server.auth.identity import Caller
from nessie_cli.server.auth.rules import NOTHING_READABLE, Question, Readable, Rules

_WRITES = frozenset(
    (
        rules.COMMIT_CHANGE_AGAINST_REFERENCE,
        rules.CREATE_ENTITY,
        rules.UPDATE_ENTITY,
        rules.DELETE_ENTITY,
    )
)
_NEVER = frozenset(
    (
        rules.CREATE_REFERENCE,
        rules.ASSIGN_REFERENCE_TO_HASH,
        rules.DELETE_REFERENCE,
        rules.UPDATE_REPOSITORY_CONFIG,
        rules.MANAGE_RUNS,
    )
)
FENCED = _WRITES | _NEVER
"""The operations that the fence restricts."""
_REMEMBERED = 0.1
"""Seconds for which a request remembers that its run may write: a commit asks for each key."""


def caller_of_run(run: PipelineRun) -> Caller:
    """Returns the caller of a program of a run."""
    return Caller(run.who, run.roles, run.id)


class RunRules:
    """The rules for the programs of a run: those of its caller, and a fence.

    Without rules of the caller, everything within the fence is allowed, but to choose locations: no
    caller may do that then. The record of the run is read when a change is judged, because a
    request can be older than the end of its command. It stands for `Rules`.
    """

    def __init__(self, of_caller: Rules | None, id_: str, records: RunRecords) -> None:
        self._of_caller = of_caller
        self._id = id_
        self._records = records
        self._writable_until = 0.0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunRules) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[int, str]:
        return id(self._of_caller), self._id

    @property
    def depend_on_content_type(self) -> bool:
        """Whether the type of a content can decide."""
        return self._of_caller is not None and self._of_caller.depend_on_content_type

    def allow(self, caller: Caller, api: int, question: Question) -> bool:
        """Returns whether an operation is allowed."""
        if question.op in _NEVER or (question.op in _WRITES and not self._may_write(question.ref)):
            return False
        if self._of_caller is None:
            return question.op != rules.CHOOSE_LOCATION
        return self._of_caller.allow(_own(caller), api, question)

    def _may_write(self, reference: str) -> bool:
        if reference != f"run/{self._id}":
            return False
        now = time.monotonic()
        if now >= self._writable_until:
            record = self._records.get(self._id)
            if record is None or (record.run.state, record.run.stage) != (
                RunState.RUNNING,
                RunStage.COMMAND,
            ):
                return False
            self._writable_until = now + _REMEMBERED
        return True

    def rule_for(self, caller: Caller, api: int, question: Question) -> str | None:
        """Returns the name of the rule that allows an operation, or None."""
        if not self.allow(caller, api, question):
            return None
        if self._of_caller is None:
            return "run"
        return self._of_caller.rule_for(_own(caller), api, question)

    def readable(self, caller: Caller, api: int, through: str) -> Readable:
        """Returns commits whose whole history a caller may read through a reference."""
        if self._of_caller is None:
            return NOTHING_READABLE
        return self._of_caller.readable(_own(caller), api, through)

    def remember_readable(self, caller: Caller, api: int, through: str, readable: Readable) -> None:
        """Remembers such commits."""
        if self._of_caller is not None:
            self._of_caller.remember_readable(_own(caller), api, through, readable)


def _own(caller: Caller) -> Caller:
    return caller._replace(run="")
