"""`nessie run`."""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from msgspec import Struct
from msgspec.structs import replace

from nessie_cli.cli.app.engines import Engine, chosen
from nessie_cli.cli.app.global_options import carried
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.merge.advice import conflicts_of_merge
from nessie_cli.cli.run.documents import (
    COLUMNS,
    RunDocument,
    RunDocuments,
    RunEnvironment,
    RunList,
    RunResult,
    RunVariable,
    ShownEnvironment,
    ShownRun,
    run_rows,
)
from nessie_cli.cli.run.settings import code_version, session_settings
from nessie_cli.cli.serve.options import AllowLocationOption, WarehousesOption, warehouse_option
from nessie_cli.errors import (
    FailedRun,
    InvalidInput,
    NessieError,
    ReferenceConflict,
    ReferenceMoved,
)
from nessie_cli.inspection.text import short_hash
from nessie_cli.model.runs import CheckResult, PipelineRun, RunStage, RunState
from nessie_cli.repository.urls import is_server
from nessie_cli.revisions import Revision
from nessie_cli.runs.checks import CheckKind, RunCheck
from nessie_cli.runs.environment import RunAccess, described, environment_of
from nessie_cli.runs.lifecycle import ActiveRun, RunPlan, begin, join, new_id
from nessie_cli.runs.programs import check_command, ending_by_signals
from nessie_cli.runs.publication import ChecksFailed, finish_publication
from nessie_cli.runs.session import RunSession
from nessie_cli.runs.shown_text import shown_command
from nessie_cli.workspace import environment as env

EXAMPLES = (
    "nessie run -- spark-submit load.py",
    "nessie run --check 'pytest checks' --tag nightly-2026-11-30 -- python load.py",
    "nessie run --check-sql checks/orders.sql -- python load.py",
    "nessie run --list",
    "nessie run --resume 20261130-021500-1f2e3d",
)
CHECK_FAILED = 1
_USAGE = "nessie run [OPTIONS] -- COMMAND [ARGUMENT...]"


class Options(Struct, frozen=True, kw_only=True):
    """Run a command on a branch, check what it wrote, and publish all of it or nothing.

    Makes the branch run/ID, runs COMMAND with an environment in which nessie, Spark, PyIceberg,
    dbt, SQLMesh and DuckDB use this branch, runs the checks on its last commit, merges that commit,
    and deletes the branch. If the target has changed a table of the run meanwhile, both changes are
    combined, and the checks run again.

    If anything fails, the target is unchanged, and the branch stays until it expires (the setting
    run-expiry of the repository). The exit status is that of COMMAND; 1 for a failed check, 3 for a
    conflict, 5 if the target changes too often. --json names the stage.
    """

    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND...]", help="The command to run, and its arguments."),
    ] = None
    into: Annotated[
        str | None,
        typer.Option(
            "--into",
            metavar="BRANCH",
            help="The branch to publish on, the target. Default: the current branch.",
        ),
    ] = None
    from_: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="REV", help="Begin with this commit of the target. Default: its head."
        ),
    ] = None
    check: Annotated[
        list[str] | None,
        typer.Option(
            "--check",
            metavar="COMMAND",
            help=(
                "Check by a command line of the shell, which must exit with 0; repeatable. The"
                " record of the run has its text, so secrets must be in the environment."
            ),
        ),
    ] = None
    check_sql: Annotated[
        list[str] | None,
        typer.Option(
            "--check-sql",
            metavar="FILE|SQL",
            help=(
                "Check by a query, which must return no rows; repeatable. Tables are"
                " lake.NAMESPACE.TABLE, and base.NAMESPACE.TABLE as they were before the run."
                " With DuckDB, a file may have several queries."
            ),
        ),
    ] = None
    check_audit: Annotated[
        bool, typer.Option("--check-audit", help="Check the files of all tables: nessie audit.")
    ] = False
    engine: Annotated[
        Engine | None,
        typer.Option(
            "--engine",
            case_sensitive=False,
            help="Run --check-sql with DuckDB (local) or Spark. Default: NESSIE_ENGINE, or local.",
        ),
    ] = None
    no_recheck: Annotated[
        bool,
        typer.Option(
            "--no-recheck",
            help="Publish tables that combine with changes of the target without checking again.",
        ),
    ] = False
    tag: Annotated[
        str | None,
        typer.Option("--tag", metavar="NAME", help="Create this tag at the published commit."),
    ] = None
    message: Annotated[
        str | None,
        typer.Option("-m", "--message", metavar="MSG", help="The message of the merge."),
    ] = None
    no_merge: Annotated[
        bool,
        typer.Option(
            "--no-merge", help="Stop before the publication, and print the line that publishes."
        ),
    ] = False
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            help="With --begin: join the run that was begun with this key, if there is one.",
        ),
    ] = None
    begin: Annotated[
        bool, typer.Option("--begin", help="Only make the run and its branch, and print its id.")
    ] = False
    join: Annotated[
        str | None,
        typer.Option(
            "--join", metavar="ID", help="Run COMMAND in the environment of a run, and no more."
        ),
    ] = None
    run_checks: Annotated[
        str | None,
        typer.Option("--run-checks", metavar="ID", help="Only run the checks of a run."),
    ] = None
    publish: Annotated[
        str | None,
        typer.Option("--publish", metavar="ID", help="Check a run, and publish it."),
    ] = None
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="ID",
            help="Check and publish a run that failed or was killed after its command.",
        ),
    ] = None
    discard: Annotated[
        str | None,
        typer.Option("--discard", metavar="ID", help="Delete the branch of a run for good."),
    ] = None
    list_: Annotated[bool, typer.Option("--list", help="List the runs, the oldest first.")] = False
    show: Annotated[
        str | None, typer.Option("--show", metavar="ID", help="Show a run in full.")
    ] = None
    print_env: Annotated[
        bool,
        typer.Option(
            "--print-env", help="Print the environment that COMMAND would get, and run nothing."
        ),
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done, and do nothing.")
    ] = False
    warehouse: Annotated[
        list[str] | None,
        warehouse_option(
            "The warehouse of the run on an embedded store. Default: setting run.warehouse."
        ),
    ] = None
    allow_location: AllowLocationOption = None
    warehouses: WarehousesOption = None

    @property
    def checks(self) -> list[RunCheck]:
        """The checks, commands first."""
        return [
            *(RunCheck(CheckKind.COMMAND, text) for text in self.check or ()),
            *(RunCheck(self._sql_kind, text) for text in self.check_sql or ()),
            *([RunCheck(CheckKind.AUDIT)] if self.check_audit else []),
        ]

    @property
    def _sql_kind(self) -> CheckKind:
        return CheckKind.SPARK_SQL if chosen(self.engine) is Engine.SPARK else CheckKind.SQL


AnyResult = RunResult | RunList | ShownRun | ShownEnvironment


class _Verb(NamedTuple):
    """A part of a run that an option asks for; `value` is its value, None if it is not given."""

    option: str
    value: str | bool | None
    do: Callable[[Options, Invocation], AnyResult]
    takes_command: bool = False


def _verbs(options: Options) -> list[_Verb]:
    return [
        _Verb("--list", options.list_ or None, _list),
        _Verb("--show", options.show, _show),
        _Verb("--discard", options.discard, _discard),
        _Verb("--begin", options.begin or None, _begun),
        _Verb("--join", options.join, _joined, takes_command=True),
        _Verb("--run-checks", options.run_checks, _checked),
        _Verb("--publish", options.publish, _published),
        _Verb("--resume", options.resume, _published),
        _Verb("--print-env", options.print_env or None, _environment, takes_command=True),
    ]


def run(options: Options, app: Invocation) -> AnyResult:
    """Runs the command and publishes, or does the part that an option names."""
    given = [verb for verb in _verbs(options) if verb.value is not None]
    if len(given) > 1:
        raise InvalidInput(f"{given[0].option} and {given[1].option} cannot be used together")
    verb = given[0] if given else _Verb("", None, _run, takes_command=True)
    if options.command and not verb.takes_command:
        raise InvalidInput(f"{verb.option} runs no command, but there is {options.command[0]!r}")
    if not options.command and verb.takes_command:
        raise InvalidInput(f"no command; usage: {_USAGE}")
    if options.key is not None and not options.begin:
        raise InvalidInput("--key needs --begin")
    if options.key == "":
        raise InvalidInput(
            "--key is empty, so all runs would share it",
            hint="a variable of the shell in --key may have no value",
        )
    _refuse_unused(options, verb.option)
    try:
        with ending_by_signals():
            return verb.do(options, app)
    except SystemExit as ended:
        raise typer.Exit(int(ended.code or 0)) from None


def _refuse_unused(options: Options, verb: str) -> None:
    """Raises `InvalidInput` for options that would have no effect beside another one."""
    of_plan = {
        "--into": options.into,
        "--from": options.from_,
        "--check": options.check,
        "--check-sql": options.check_sql,
        "--check-audit": options.check_audit,
        "--tag": options.tag,
    }
    of_publication = {"--message": options.message, "--no-recheck": options.no_recheck}
    of_command = {"--no-merge": options.no_merge, "--dry-run": options.dry_run}
    unused = {
        **(of_plan if verb not in ("", "--begin", "--print-env") else {}),
        **(of_publication if verb not in ("", "--publish", "--resume") else {}),
        **(of_command if verb else {}),
    }
    for name, value in unused.items():
        if value:
            raise InvalidInput(f"{name} has no effect with {verb}")


# -- the whole run -------------------------------------------------------------------------------


def _run(options: Options, app: Invocation) -> RunResult | ShownEnvironment:
    command = options.command or []
    check_command(command)
    if options.dry_run:
        return _environment(options, app)
    with _session(options, app, _begin(options, app)) as session:
        run_ = session.active.run
        app.output.note(
            f"run {run_.id}: branch {run_.branch}, from {run_.target} at {short_hash(run_.base)}"
        )
        failed = _run_command(session, command, app)
        return replace(failed or _finish(session, app, options), beside_command=True)


def _begin(options: Options, app: Invocation) -> ActiveRun:
    """Begins the run of the options."""
    checks = options.checks
    for check in checks:
        check.validate()
    repository, target = app.repository(), options.into or app.reference_name()
    start = app.revision(options.from_) if options.from_ else Revision(target)
    plan = RunPlan(
        target,
        repository.resolve(start).hash,
        options.key or "",
        shown_command(options.command or ()),
        [check.description for check in checks],
        code_version(),
        options.tag or "",
    )
    return begin(repository, plan, app.who())


@contextmanager
def _session(options: Options, app: Invocation, active: ActiveRun) -> Iterator[RunSession]:
    """Yields the session of a run. An error of the block names the run and its stage."""

    def report(result: CheckResult) -> None:
        app.output.note(f"{'passed' if result.passed else 'failed'}  {result.check}")
        for line in result.output.splitlines():
            app.output.note(f"        {line}")

    with RunSession(active, session_settings(options, app), report) as session:
        try:
            yield session
        except NessieError as error:
            error.run = FailedRun(active.run.id, active.branch, active.run.stage)
            raise


def _run_command(
    session: RunSession, command: Sequence[str], app: Invocation, *, is_last: bool = True
) -> RunResult | None:
    """Runs the command. Returns the result of the run if it has failed."""
    try:
        environment = session.environment(command)
    except (NessieError, KeyboardInterrupt, SystemExit) as error:
        if is_last:
            # Nothing has been written yet. A joined run has what its other commands wrote.
            reason = error.message if isinstance(error, NessieError) else "interrupted"
            session.active.fail(RunStage.COMMAND, reason)
            session.active.discard()
        raise
    for warning in environment.warnings:
        app.output.note(f"warning: {warning}")
    sys.stdout.flush()
    ending = session.run_command(
        command, environment, stdout=2 if app.output.is_json else None, is_last=is_last
    )
    run_ = session.active.run
    if run_.state is RunState.FAILED:
        return _failed(run_, ending.code)
    return None


def _finish(session: RunSession, app: Invocation, options: Options) -> RunResult:
    """Checks and publishes, or stops before the publication."""
    active = session.active
    try:
        session.check()
        if options.no_merge:
            active.ready()
            return _result(
                active.run, f"ready: `nessie run --publish {active.run.id}` publishes it"
            )
        with _conflicts(app, active.run):
            session.publish()
    except ChecksFailed:
        return _failed(active.run, CHECK_FAILED)
    except (KeyboardInterrupt, SystemExit):
        id_ = active.run.id
        app.output.note(f"run {id_} is interrupted; `nessie run --resume {id_}`")
        raise
    except NessieError as error:
        is_conflict = isinstance(error, ReferenceConflict) and not isinstance(error, ReferenceMoved)
        if not (is_conflict or active.run.result):
            app.output.note(
                f"the branch {active.branch} stays;"
                f" `nessie run --resume {active.run.id}` checks and publishes it"
            )
        raise
    return _result(active.run, _publication(active.run))


@contextmanager
def _conflicts(app: Invocation, run_: PipelineRun) -> Iterator[None]:
    """Adds the ways out of a conflict: the target is merged into the branch of the run."""
    merging = copy(app)
    given = carried(app.options, ("store", "profile"))
    merging.argv = (*given, "merge", run_.target, "--into", run_.branch)
    try:
        with conflicts_of_merge(merging, run_.branch, run_.target):
            yield
    except ReferenceConflict as error:
        if not isinstance(error, ReferenceMoved):
            app.output.note(
                f"after the merge into {run_.branch}, `nessie run --resume {run_.id}` checks and"
                " publishes the result"
            )
        raise


def _publication(run_: PipelineRun) -> str:
    if run_.head == run_.base:
        return f"run {run_.id} changed nothing"
    tag = f", tag {run_.tag}" if run_.tag else ""
    reason = f"; {run_.reason}" if run_.reason else ""
    return f"published {short_hash(run_.result)} on {run_.target}{tag}{reason}"


def _result(run_: PipelineRun, *lines: str) -> RunResult:
    return RunResult(document=RunDocument.of(run_), lines=lines)


def _failed(run_: PipelineRun, code: int) -> RunResult:
    line = f"run {run_.id} failed: {run_.reason}; nothing was published on {run_.target}"
    hint = (
        f"Hint: the branch {run_.branch} stays;"
        f" `nessie run --resume {run_.id}` checks it again, `nessie run --discard {run_.id}`"
        " deletes it"
        if run_.stage is not RunStage.COMMAND
        else f"Hint: the branch {run_.branch} stays; `nessie run --discard {run_.id}` deletes it"
    )
    return RunResult(document=RunDocument.of(run_), lines=(line, hint), code=code or CHECK_FAILED)


# -- parts ---------------------------------------------------------------------------------------


def _begun(options: Options, app: Invocation) -> RunResult:
    run_ = _begin(options, app).run
    if run_.state is RunState.DISCARDED:
        raise InvalidInput(
            f"run {run_.id} with the key {run_.key!r} is discarded", hint="choose another key"
        )
    if run_.state is RunState.PUBLISHED:
        app.output.note(f"run {run_.id} is published already")
    return RunResult(document=RunDocument.of(run_), lines=(run_.id,))


def _joined(options: Options, app: Invocation) -> RunResult:
    command = options.command or []
    check_command(command)
    active = join(app.repository(), options.join or "")
    _refuse_ended(active.run)
    if active.run.state is not RunState.RUNNING:
        active.take_over()
    with _session(options, app, active) as session:
        session.active.change(stage=RunStage.COMMAND)
        failed = _run_command(session, command, app, is_last=False)
    return replace(failed or _result(session.active.run), beside_command=True)


def _checked(options: Options, app: Invocation) -> RunResult:
    active = _taken(join(app.repository(), options.run_checks or ""))
    with _session(options, app, active) as session:
        try:
            session.check()
        except ChecksFailed:
            return _failed(session.active.run, CHECK_FAILED)
        session.active.ready()
        return _result(session.active.run)


def _published(options: Options, app: Invocation) -> RunResult:
    active = join(app.repository(), options.publish or options.resume or "")
    if active.run.state is RunState.PUBLISHED:
        if active.run.tag and active.run.reason:
            # The tag was not created at that time. Raises the error if it still cannot be.
            active.published(active.run.result)
        return _result(active.run, _publication(active.run))
    taken = _taken(active, resumes=options.resume is not None)
    with _session(options, app, taken) as session:
        if finish_publication(session.active):
            return _result(session.active.run, _publication(session.active.run))
        return _finish(session, app, options)


def _taken(active: ActiveRun, *, resumes: bool = False) -> ActiveRun:
    """Returns a run whose command has ended, in the hands of this process."""
    run_ = active.run
    _refuse_ended(run_)
    if active.is_alive():
        raise InvalidInput(
            f"run {run_.id} is still running on {run_.host}", hint=f"nessie run --show {run_.id}"
        )
    # A run without a command was begun for programs that another process starts and publishes.
    may_be_whole = run_.state is RunState.RUNNING and not run_.command and not resumes
    if run_.stage is RunStage.COMMAND and not may_be_whole:
        raise InvalidInput(
            f"the command of run {run_.id} did not end well: {run_.reason or 'it was killed'}",
            hint=f"begin another run, and delete this one by `nessie run --discard {run_.id}`",
        )
    active.take_over()
    if run_.stage is RunStage.COMMAND:
        # Programs wrote to the branch by themselves.
        active.change(stage=RunStage.CHECK)
    return active


def _refuse_ended(run_: PipelineRun) -> None:
    if run_.has_ended:
        raise InvalidInput(f"run {run_.id} is {run_.state}")


def _discard(options: Options, app: Invocation) -> RunResult:
    active = join(app.repository(), options.discard or "")
    active.discard()
    return _result(active.run, f"discarded run {active.run.id}; deleted {active.branch}")


def _list(_: Options, app: Invocation) -> RunList:
    runs = [record.run for record in app.repository().runs.all()]
    return RunList(document=RunDocuments(runs=map(RunDocument.of, runs)), runs=runs)


def _show(options: Options, app: Invocation) -> ShownRun:
    run_ = join(app.repository(), options.show or "").run
    return ShownRun(document=RunDocument.of(run_), run=run_)


def _environment(options: Options, app: Invocation) -> ShownEnvironment:
    """Returns the environment of a run that is not made: its id and port are examples."""
    settings = session_settings(options, app)
    checks = options.checks
    for check in checks:
        check.validate()
    target = options.into or app.reference_name()
    run_id = new_id(int(time.time()))
    base = app.repository().resolve(options.from_ or target).hash
    url = settings.store
    api = url.rstrip("/") if is_server(url) else "http://127.0.0.1:PORT/api/v2"
    access = RunAccess(
        id=run_id,
        api=api,
        iceberg=f"{api.removesuffix('/api/v2')}/iceberg",
        branch=f"run/{run_id}",
        base=base,
        token="***",  # noqa: S106 - stands for one
        catalog=settings.catalog,
    )
    with tempfile.TemporaryDirectory(prefix="nessie-run-") as folder:
        environment = environment_of(
            access, options.command or (), env.everything(), Path(folder), Path.cwd()
        )
    variables = [RunVariable(each.name, each.value) for each in described(environment)]
    return ShownEnvironment(
        document=RunEnvironment(
            branch=access.branch,
            checks=[check.description for check in options.checks],
            variables=variables,
            warnings=list(environment.warnings),
        ),
        is_plan=options.dry_run,
    )


def show(result: AnyResult, output: Output) -> None:
    """Prints the runs, a run, an environment, or what has become of a run."""
    if isinstance(result, RunList):
        output.out.print_table(COLUMNS, run_rows(result.runs), paged=True)
    elif isinstance(result, RunResult):
        _print_outcome(result, output)
    else:
        for line in result.lines:
            output.out.print_line(line)


def _print_outcome(result: RunResult, output: Output) -> None:
    if result.code:
        reason, *hints = result.lines
        output.err.print_text(reason)
        for hint in hints:
            output.note(hint)
        return
    for line in result.lines:
        if result.beside_command:
            output.note(line)
        else:
            output.say(line)
