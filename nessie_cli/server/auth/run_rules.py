"""The rules for the programs of a run: they may write its branch only, until it is checked.

Otherwise they have the rights of the caller who began the run.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nessie_cli.model.runs import PipelineRun, RunStage
from nessie_cli.server.auth import rules
from nessie_cli.server.auth.identity import Caller
from nessie_cli.server.auth.rules import Question, Rules

READ_ONLY = "-"
"""Stands for the branch of a run whose command has ended: no branch has this name."""
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


def caller_of_run(run: PipelineRun) -> Caller:
    """Returns the caller of a program of a run."""
    branch = run.branch if run.stage is RunStage.COMMAND else READ_ONLY
    return Caller(run.who, run.roles, branch)


class RunRules(Struct, frozen=True):
    """The rules for programs of a run: those of its caller (None allows all), and a fence.

    It stands for `Rules`.
    """

    of_caller: Rules | None
    branch: str

    def allow(self, caller: Caller, api: int, question: Question) -> bool:
        """Returns whether an operation is allowed."""
        if question.op in _NEVER or (question.op in _WRITES and question.ref != self.branch):
            return False
        return self.of_caller is None or self.of_caller.allow(_own(caller), api, question)

    def rule_for(self, caller: Caller, api: int, question: Question) -> str | None:
        """Returns the name of the rule that allows an operation, or None."""
        if not self.allow(caller, api, question):
            return None
        if self.of_caller is None:
            return "run"
        return self.of_caller.rule_for(_own(caller), api, question)

    def readable_heads(self, caller: Caller, api: int, through: str) -> list[str]:
        """Returns commits whose whole history a caller may read through a reference."""
        if self.of_caller is None:
            return []
        return self.of_caller.readable_heads(_own(caller), api, through)

    def remember_readable(
        self, caller: Caller, api: int, through: str, hashes: Sequence[str]
    ) -> None:
        """Remembers such commits."""
        if self.of_caller is not None:
            self.of_caller.remember_readable(_own(caller), api, through, hashes)


def _own(caller: Caller) -> Caller:
    return caller._replace(run_branch="")
