"""Runs of Python programs: a block whose changes are published together, or not at all.

>>> from nessie_cli import create, run
>>> with create("memory:") as repository:  # doctest: +SKIP
...     with run(repository, into="main") as nightly:
...         nightly.catalog().create_namespace("db")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nessie_cli.errors import InvalidInput, NessieError, ReferenceConflict
from nessie_cli.iceberg.locations import absolute_location
from nessie_cli.model import CombinationRules
from nessie_cli.model.runs import RunStage, RunState
from nessie_cli.repository.base import Repository
from nessie_cli.revisions import Revision
from nessie_cli.runs.checks import CheckKind, RunCheck
from nessie_cli.runs.environment import Environment
from nessie_cli.runs.environment.spark_folder import spark_options
from nessie_cli.runs.lifecycle import ActiveRun, RunPlan, begin
from nessie_cli.runs.publication import ChecksFailed
from nessie_cli.runs.session import RunSession, SessionSettings
from nessie_cli.runs.temporary_server import WarehouseChoice
from nessie_cli.workspace import environment as env

if TYPE_CHECKING:
    from nessie_cli.iceberg.catalog import NessieCatalog


class RunContext:
    """A run within the block of `run`."""

    def __init__(self, session: RunSession, store: str, warehouse: str | None) -> None:
        self._session = session
        self._store = store
        self._warehouse = warehouse

    @property
    def id(self) -> str:
        """The id of the run."""
        return self._session.active.run.id

    @property
    def branch(self) -> str:
        """The branch of the run."""
        return self._session.active.branch

    @property
    def base(self) -> str:
        """The commit of the target with which the branch began."""
        return self._session.active.run.base

    @property
    def result(self) -> str:
        """The commit of the publication; empty before."""
        return self._session.active.run.result

    def catalog(self, **properties: str) -> NessieCatalog:
        """Returns PyIceberg's catalog of the branch. `properties` are those of its FileIO."""
        from nessie_cli.iceberg.catalog import NessieCatalog

        options = dict(properties, uri=self._store, ref=self.branch)
        if self._warehouse is not None:
            options["warehouse"] = self._warehouse
        if who := self._session.active.run.who:
            options["author"] = who
        return NessieCatalog("lake", **options)

    def spark_options(self) -> Mapping[str, str]:
        """Returns the settings of a Spark session whose default catalog is the branch.

        On an embedded store this starts a server, which ends with the block.
        """
        return spark_options(self._session.access)

    def environment(self, command: Sequence[str] = ()) -> Environment:
        """Returns the environment of a program that is to use the branch."""
        return self._session.environment(command)

    def check(self, text: str, *, command: bool = False) -> None:
        """Runs a check on the present commit, and again on the one that is published.

        `text` is a query of DuckDB that must return no rows, a file with one (`.sql`), or with
        `command` a command line of the shell. Raises `ChecksFailed`. Does nothing in a run that is
        published already, which is not published again.
        """
        if self._session.active.run.state is RunState.PUBLISHED:
            return
        check = RunCheck(CheckKind.COMMAND if command else CheckKind.SQL, text)
        check.validate()
        self._session.add_check(check)
        self._session.check()


@contextmanager
def run(
    repository: Repository,
    *,
    into: str | None = None,
    start: str | None = None,
    key: str = "",
    tag: str = "",
    message: str = "",
    publish: bool = True,
    warehouse: str | None = None,
    catalog: str = "lake",
    store: str = "",
    who: str = "",
) -> Iterator[RunContext]:
    """Yields a run into a branch (default: the default branch), which is published at the end.

    An exception of the block leaves the target unchanged; the branch stays until it expires. With a
    `key`, joins the run that was begun with it, so that several processes work on one run; all but
    the last do so with `publish=False`. A run of this key that is published already is published
    again without an effect.

    `start` is a commit of the target, `tag` a new tag at the published commit, `message` that of
    the merge. `warehouse` is the location of new tables, `catalog` the name of the catalog for
    engines. `store` is the URL of the store if that of the repository lacks a password. `who` is
    the committer.

    Raises `ChecksFailed`, the conflicts of a merge that do not combine, and `ReferenceMoved` if the
    target changes too often.
    """
    target = into or repository.config().default_branch
    base = repository.resolve(Revision(target) if start is None else start).hash
    active = begin(repository, RunPlan(target, base, key=key, tag=tag), who)
    location = None if warehouse is None else absolute_location(warehouse)
    settings = SessionSettings(
        store=store or repository.url,
        inherited=env.everything(),
        folder=Path.cwd(),
        catalog=catalog,
        warehouses=WarehouseChoice(warehouse=() if location is None else (location,)),
        rules=CombinationRules(),
        storage=env.of_s3(),
        message=message,
    )
    if active.run.state is RunState.DISCARDED:
        raise InvalidInput(f"run {active.run.id} with the key {key!r} is discarded")
    with RunSession(active, settings) as session:
        context = RunContext(session, settings.store, location)
        if active.run.state is RunState.PUBLISHED:
            yield context
            return
        if active.run.state is not RunState.RUNNING:
            active.take_over()
        active.change(stage=RunStage.COMMAND)
        try:
            with active.working():
                yield context
        except BaseException as error:
            _failed(active, error)
            raise
        if publish:
            if active.run.state is not RunState.RUNNING:
                # The block has gone on after a failed check, which is repeated now.
                active.take_over()
            active.end_command(0)
            session.check()
            try:
                session.publish()
            except ReferenceConflict as error:
                active.fail(RunStage.CONFLICT, error.message)
                raise


def _failed(active: ActiveRun, error: BaseException) -> None:
    """Records that the block of a run has failed, unless a check has recorded it."""
    if isinstance(error, ChecksFailed):
        return
    reason = error.message if isinstance(error, NessieError) else f"{type(error).__name__}: {error}"
    active.fail(RunStage.COMMAND, reason, head=active.head())
