"""A run with all that its programs need: server, environment, checks and publication."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Self

from msgspec import Struct

from nessie_cli.errors import (
    CannotRun,
    NessieError,
    ReferenceConflict,
    ReferenceMoved,
    ReferenceNotFound,
)
from nessie_cli.model import CombinationRules, CommitMeta
from nessie_cli.model.runs import PROPERTY, CheckResult, RunStage
from nessie_cli.repository.urls import is_server
from nessie_cli.runs.checks import RunCheck
from nessie_cli.runs.combining import combine_by
from nessie_cli.runs.environment import Environment, RunAccess, environment_of
from nessie_cli.runs.lifecycle import ActiveRun, is_written_past
from nessie_cli.runs.private_folder import private_folder_of_run
from nessie_cli.runs.programs import Ending, RunningProgram
from nessie_cli.runs.publication import ChecksFailed, check, publish
from nessie_cli.runs.temporary_server import WarehouseChoice, temporary_server


class SessionSettings(Struct, frozen=True, kw_only=True):
    """How the programs of a run reach it, and how it is published.

    `store` is the URL of the store with its secrets. `catalog` is the name of the catalog for
    programs. `rules` say how tables combine (None: never), and `storage` has properties of
    PyIceberg's FileIO. `rechecks` is whether a merged state is checked again. `message` is that
    of the merge.
    """

    store: str
    inherited: Mapping[str, str]
    folder: Path
    catalog: str = "lake"
    warehouses: WarehouseChoice = WarehouseChoice()
    rules: CombinationRules | None = CombinationRules()
    storage: Mapping[str, str] = {}
    rechecks: bool = True
    message: str = ""


class RunSession:
    """A run in the hands of this process. Use it as a context manager.

    The server of an embedded store starts when a program first needs it, and ends with the block.
    """

    def __init__(
        self,
        active: ActiveRun,
        settings: SessionSettings,
        report: Callable[[CheckResult], None] = lambda _: None,
    ) -> None:
        self.active = active
        self._settings = settings
        self._report = report
        self._stack = ExitStack()
        self._access: RunAccess | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # -- programs --------------------------------------------------------------------------------

    @property
    def access(self) -> RunAccess:
        """How programs reach the branch of the run. Starts the server of an embedded store."""
        if self._access is None:
            run, store = self.active.run, self._settings.store
            token = self.active.add_token()
            if is_server(store):
                api = store.rstrip("/")
            else:
                address = self._stack.enter_context(
                    temporary_server(store, self._settings.warehouses)
                )
                api = f"{address}/api/v2"
            self._access = RunAccess(
                id=run.id,
                api=api,
                iceberg=f"{api.removesuffix('/api/v2')}/iceberg",
                branch=run.branch,
                base=run.base,
                token=token,
                catalog=self._settings.catalog,
            )
        return self._access

    def environment(self, command: Sequence[str]) -> Environment:
        """Returns the environment of a command, and writes its files."""
        return self._environment(self.access, command, "program")

    def run_command(
        self,
        command: Sequence[str],
        environment: Environment,
        stdout: int | None = None,
        *,
        is_last: bool = True,
    ) -> Ending:
        """Runs a command of the run in the foreground, and records if it fails.

        The `is_last` one ends the writing to the branch. Its output goes to another stream if one
        is given. Raises `CannotRun`, and records it.
        """
        try:
            program = RunningProgram(command, environment.applied(self._settings.inherited), stdout)
        except CannotRun as error:
            self.active.fail(RunStage.COMMAND, error.message, exit_code=error.exit_code)
            raise
        with self.active.working(program.stop):
            ending = program.wait()
        head = ""
        with suppress(ReferenceNotFound):
            head = self.active.head()
        if ending.interrupted is not None:
            self.active.fail(RunStage.COMMAND, "interrupted", exit_code=ending.exit_code, head=head)
        elif ending.exit_code:
            reason = f"the command ended with exit code {ending.exit_code}"
            self.active.fail(RunStage.COMMAND, reason, exit_code=ending.exit_code, head=head)
        elif is_last and (past := is_written_past(self.active)):
            run = self.active.run
            reason = f"the command wrote to {run.target} (commit {past[:12]}) and not to the run"
            self.active.fail(RunStage.COMMAND, reason, exit_code=ending.exit_code, head=head)
        elif is_last:
            self.active.end_command(ending.exit_code)
        return ending

    # -- checks and publication --------------------------------------------------------------------

    def check(self) -> None:
        """Runs the checks of the run on its head, and records the results.

        Raises `ChecksFailed`.
        """
        with self.active.working(), self._recording(RunStage.CHECK):
            check(self.active, self._run_checks)

    def publish(self) -> str:
        """Publishes the commit that the checks saw, and returns the new commit of the target.

        Raises the errors of `publication.publish`, and records them.
        """
        run = self.active.run
        combine = combine_by(self.active.repository, self._settings.rules, self._settings.storage)
        meta = CommitMeta(
            self._settings.message or f"Merge branch '{run.branch}' into {run.target}",
            authors=(run.who,) if run.who else (),
            properties={PROPERTY: (run.id,)},
        )
        checks = self._run_checks if run.checks and self._settings.rechecks else None
        with self.active.working(), self._recording(RunStage.PUBLISH):
            return publish(self.active, combine, checks, meta)

    @contextmanager
    def _recording(self, stage: RunStage) -> Iterator[None]:
        """Records that the run has failed if the block raises.

        What cannot be recorded now leaves a run that can be resumed, too.
        """
        try:
            yield
        except (NessieError, KeyboardInterrupt, SystemExit) as error:
            reason = error.message if isinstance(error, NessieError) else "interrupted"
            with suppress(NessieError):
                self.active.fail(_stage_of(error) or stage, reason)
            raise

    def add_check(self, check: RunCheck) -> None:
        """Adds a check to those of the run."""
        self.active.change(checks=(*self.active.run.checks, check.description))

    def _run_checks(self, head: str, against: str) -> list[CheckResult]:
        descriptions = self.active.run.checks
        if not descriptions:
            return []
        state = self.access._replace(branch=head, base=against)
        environment = self._environment(state, (), "check").applied(self._settings.inherited)
        results = []
        for description in descriptions:
            result = RunCheck.of(description).run(environment, state)
            self._report(result)
            results.append(result)
        return results

    def _environment(self, access: RunAccess, command: Sequence[str], name: str) -> Environment:
        return environment_of(
            access,
            command,
            self._settings.inherited,
            self._folder / name,
            self._settings.folder,
        )

    @cached_property
    def _folder(self) -> Path:
        """The private folder of the session, which is deleted at its end."""
        return self._stack.enter_context(private_folder_of_run())


def _stage_of(error: BaseException) -> RunStage | None:
    """Returns the stage of a run that an error belongs to, if it tells."""
    if isinstance(error, ChecksFailed):
        return RunStage.CHECK
    if isinstance(error, ReferenceConflict) and not isinstance(error, ReferenceMoved):
        return RunStage.CONFLICT
    return None
