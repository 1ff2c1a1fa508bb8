"""`nessie run`: what is published, exit codes and records, at a running server."""

from __future__ import annotations

import shlex
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from nessie_cli import run as block_of
from nessie_cli.model import CommitMeta
from nessie_cli.model.runs import RunStage, RunState
from nessie_cli.runs.lifecycle import RunChanged, join
from nessie_cli.runs.publication import publish
from tests.cli.run.conftest import Runs, state, write, writer

TRUE = ("--", "true")


def test_a_run_is_published_as_one_commit(runs: Runs) -> None:
    before = runs.repository.reference("main").hash
    done = runs("--tag", "v1", "-m", "nightly load", "--", *writer("b=2", "c=3", "a=5"))
    done.expect(0, "run ", "published ")
    assert runs.main == {"a": 5, "b": 2, "c": 3}
    entry = runs.repository.commit_at("main")
    assert (entry.parent, entry.meta.message) == (before, "nightly load")
    run = runs.only()
    assert entry.meta.properties["run"] == (run.id,)
    assert (run.state, run.base, run.result) == (RunState.PUBLISHED, before, entry.hash)
    assert runs.repository.reference("v1").hash == entry.hash
    assert runs.branches == []


def test_a_run_that_changes_nothing_is_no_commit(runs: Runs) -> None:
    before = runs.repository.reference("main").hash
    runs(*TRUE).expect(0, "changed nothing")
    assert runs.repository.reference("main").hash == before
    assert runs.only().state is RunState.PUBLISHED
    assert runs.branches == []


@pytest.mark.parametrize("code", [1, 2, 3, 5, 77, 255])
def test_the_code_of_the_command_is_that_of_the_run(runs: Runs, code: int) -> None:
    done = runs("--", *writer("b=2", f"exit:{code}"))
    done.expect(code, f"exit code {code}", "nothing was published on main", "--discard")
    assert runs.main == {"a": 1}
    run = runs.only()
    assert (run.state, run.stage, run.exit_code) == (RunState.FAILED, "command", code)
    assert state(runs.repository, run.branch) == {"a": 1, "b": 2}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_signal_that_ends_the_command_is_added_to_128(runs: Runs, number: int) -> None:
    done = runs("--json", "--", "sh", "-c", f"kill -{int(number)} $$")
    assert done.code == 128 + number
    assert (done.json["exitCode"], done.json["stage"]) == (128 + number, "command")


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [("nosuchcommand", 127, "command not found"), ("./file", 126, "not an executable")],
)
def test_a_command_that_cannot_run_makes_no_branch(
    runs: Runs, command: str, code: int, text: str
) -> None:
    Path("file").write_text("#!/nosuch\n")
    for more in ([], ["--dry-run"]):
        done = runs(*more, "--", command)
        done.expect(code, f"{command}: {text}")
    assert runs.branches == runs.repository.runs.all() == []


def test_a_program_whose_interpreter_is_missing(runs: Runs) -> None:
    """It looks executable, so the run begins."""
    Path("file").write_text("#!/nosuch\n")
    Path("file").chmod(0o755)
    runs("--", "./file").expect(127, "./file")
    assert runs.only().state is RunState.FAILED


# -- checks --------------------------------------------------------------------------------------


def test_all_checks_must_pass(runs: Runs) -> None:
    done = runs("--check", "true", "--check", "echo three rows; exit 4", "--", *writer("b=2"))
    done.expect(1, "passed  command: true", "failed  command: echo", "three rows")
    done.expect(1, "check failed", "nothing was published on main", "--resume")
    assert runs.main == {"a": 1}
    run = runs.only()
    assert (run.state, run.stage, run.exit_code) == (RunState.FAILED, "check", 0)
    assert [result.passed for result in run.results] == [True, False]
    assert run.results[1].output == "three rows"


def test_checks_see_the_commit_and_cannot_write(runs: Runs) -> None:
    write_main = " ".join(writer("x=1"))
    check = (
        f'test "$NESSIE_REF" != main && test "$NESSIE_RUN_BASE" != "$NESSIE_REF"'
        f' && env > checked; ! WRITER_REF="$NESSIE_REF" {write_main}'
    )
    runs("--check", check, "--", *writer("b=2")).expect(0)
    environment = dict(
        line.partition("=")[::2] for line in Path("checked").read_text().splitlines()
    )
    run = runs.only()
    assert environment["NESSIE_REF"] == run.head
    assert environment["NESSIE_RUN_BASE"] == run.base
    assert runs.main == {"a": 1, "b": 2}


def test_what_is_written_after_the_checks_is_not_published(runs: Runs) -> None:
    """An orphan of the command writes while the checks run."""
    late = " ".join(writer("late=1"))
    done = runs("--check", f"WRITER_REF=run/$NESSIE_RUN {late}", "--", *writer("b=2"))
    run = runs.only()
    done.expect(0, f"{run.branch} has moved since it was checked, and stays")
    assert runs.main == {"a": 1, "b": 2}
    assert runs.branches == [run.branch]


@pytest.mark.parametrize("check", ["if then", "exit )", "'"])
def test_a_check_with_a_syntax_error_fails(runs: Runs, check: str) -> None:
    runs("--check", check, "--", *writer("b=2")).expect(1, f"failed  command: {check}")
    assert runs.main == {"a": 1}


def test_a_file_of_sql_that_is_missing_is_an_error_before_the_run(runs: Runs) -> None:
    runs("--check-sql", "nosuch.sql", *TRUE).expect(2, "nosuch.sql", "cannot be read")
    assert runs.branches == []


def test_long_output_of_a_check_is_shortened(runs: Runs) -> None:
    check = "yes no | head -c 100000; exit 1"
    runs("--check", check, "--", *writer("b=2")).expect(1)
    assert len(runs.only().results[0].output) < 5000


# -- a target that moves -------------------------------------------------------------------------


def test_changes_of_other_tables_are_merged(runs: Runs) -> None:
    """They need no second check."""
    check = "echo x >> checks"
    meanwhile = f"WRITER_REF=main {' '.join(writer('m=1'))} && {' '.join(writer('b=2'))}"
    runs("--check", check, "--", "sh", "-c", meanwhile).expect(0)
    assert runs.main == {"a": 1, "b": 2, "m": 1}
    assert Path("checks").read_text() == "x\n"


def test_a_conflict_leaves_the_target(runs: Runs) -> None:
    meanwhile = f"WRITER_REF=main {' '.join(writer('a=7'))} && {' '.join(writer('a=2'))}"
    done = runs("--json", "--", "sh", "-c", meanwhile)
    assert done.code == 3
    assert done.error["errorCode"]
    assert runs.main == {"a": 7}
    run = runs.only()
    assert (run.state, run.stage) == (RunState.FAILED, "conflict")
    assert done.json["run"] == {"id": run.id, "branch": run.branch, "stage": "conflict"}
    assert state(runs.repository, run.branch) == {"a": 2}


@pytest.mark.parametrize(("side", "number"), [("ours", 2), ("theirs", 7)])
def test_the_printed_line_resolves_a_conflict(runs: Runs, side: str, number: int) -> None:
    """It merges the target into the branch of the run, which is then checked and published."""
    meanwhile = f"WRITER_REF=main {' '.join(writer('a=7'))} && {' '.join(writer('a=2', 'b=3'))}"
    done = runs("--check", "true", "--", "sh", "-c", meanwhile)
    run = runs.only()
    done.expect(3, f"a was changed on {run.branch} and on main", f"nessie run --resume {run.id}")
    (line,) = [
        line.strip().removeprefix("or").split()
        for line in done.err.splitlines()
        if f" --{side} a " in line
    ]
    runs.nessie(*line[1:]).expect(0)
    runs("--resume", run.id).expect(0, "passed  command: true")
    assert runs.main == {"a": number, "b": 3}


def test_the_printed_line_is_about_the_commit_of_the_target_that_conflicts(runs: Runs) -> None:
    meanwhile = f"WRITER_REF=main {' '.join(writer('a=7'))} && {' '.join(writer('a=2'))}"
    done = runs("--", "sh", "-c", meanwhile)
    run = runs.only()
    conflicting = runs.repository.reference("main").hash
    write(runs.repository, "main", "a", 8)
    (line,) = [line for line in done.err.splitlines() if " --theirs a " in line]
    assert f"nessie merge main@{conflicting[:12]} --into {run.branch} --theirs a" in line
    runs.nessie(*line.split()[2:]).expect(0)
    assert state(runs.repository, run.branch) == {"a": 7}


def test_a_run_whose_programs_wrote_by_themselves_is_published(runs: Runs) -> None:
    id_ = runs("--begin").out.strip()
    write(runs.repository, f"run/{id_}", "b", 2)
    assert runs("--publish", id_).out.startswith("published ")
    assert runs.main == {"a": 1, "b": 2}


@pytest.mark.parametrize("option", ["--resume", "--publish", "--run-checks"])
def test_a_block_that_raised_is_not_published(runs: Runs, option: str) -> None:
    with suppress(ZeroDivisionError), block_of(runs.repository, into="main") as block:
        write(runs.repository, block.branch, "b", 2)
        raise ZeroDivisionError
    runs(option, block.id).expect(2, "did not end well: ZeroDivisionError")
    assert runs.main == {"a": 1}


def test_a_block_that_was_killed_is_not_resumed(runs: Runs) -> None:
    id_ = runs("--begin").out.strip()
    write(runs.repository, f"run/{id_}", "b", 2)
    runs("--resume", id_).expect(2, "did not end well: it was killed")
    assert runs.main == {"a": 1}


def test_a_tag_that_cannot_be_is_refused_first(runs: Runs) -> None:
    runs("--tag", "a..b", "--", *writer("b=2")).expect(2, "a..b")
    assert runs.repository.runs.all() == []


def test_a_server_without_callers_does_not_tell_who_wrote_to_the_target(runs: Runs) -> None:
    done = runs("--", "env", "WRITER_REF=main", *writer("b=2"))
    done.expect(0, "changed nothing")


# -- parts of a run ------------------------------------------------------------------------------


def test_no_merge_stops_before_the_publication(runs: Runs) -> None:
    stopped = runs("--no-merge", "--check", "true", "--", *writer("b=2"))
    run = runs.only()
    stopped.expect(0, f"nessie run --publish {run.id}")
    assert (run.state, runs.main) == (RunState.READY, {"a": 1})
    published = runs("--publish", run.id).expect(0, "passed  command: true")
    assert published.out.startswith("published ")
    assert runs.main == {"a": 1, "b": 2}
    again = runs.repository.reference("main").hash
    assert runs("--publish", run.id).out == runs("--resume", run.id).out == published.out
    assert runs.repository.reference("main").hash == again
    runs("--discard", run.id).expect(2, "is published as", "nessie revert")
    assert runs.branches == []


def test_a_run_in_several_processes(runs: Runs) -> None:
    id_ = runs("--begin", "--key", "dag 7", "--check", "true").expect(0).out.strip()
    assert runs("--begin", "--key", "dag 7").out.strip() == id_
    runs("--join", id_, "--", *writer("b=2")).expect(0)
    runs("--join", id_, "--", *writer("c=3")).expect(0)
    assert runs.main == {"a": 1}
    runs("--run-checks", id_).expect(0, "passed  command: true")
    runs("--publish", f"run/{id_}").expect(0)
    assert runs.main == {"a": 1, "b": 2, "c": 3}
    for verb in ("--join", "--run-checks"):
        command = TRUE if verb == "--join" else ()
        runs(verb, id_, *command).expect(2, f"run {id_} is published")


def test_a_joined_command_that_fails_ends_the_run(runs: Runs) -> None:
    id_ = runs("--begin").out.strip()
    runs("--join", id_, "--", *writer("b=2", "exit:4")).expect(4, "exit code 4")
    assert runs.only().state is RunState.FAILED
    # The orchestrator repeats the task.
    runs("--join", id_, "--", *writer("b=3")).expect(0)
    runs("--publish", id_).expect(0)
    assert runs.main == {"a": 1, "b": 3}


def test_resume_repeats_the_checks(runs: Runs) -> None:
    failed = runs("--check", "test -e file", "--", *writer("b=2"))
    failed.expect(1, "--resume")
    id_ = runs.only().id
    runs("--resume", id_).expect(1, "failed  command: test -e file")
    Path("file").touch()
    runs("--resume", id_).expect(0, "passed")
    assert runs.main == {"a": 1, "b": 2}


def test_a_failed_command_cannot_be_resumed(runs: Runs) -> None:
    runs("--", *writer("b=2", "exit:3"))
    id_ = runs.only().id
    runs("--resume", id_).expect(2, "did not end well", "exit code 3", f"--discard {id_}")
    runs("--discard", id_).expect(0, out=f"discarded run {id_}; deleted run/{id_}\n")
    runs("--discard", id_).expect(0)
    runs("--resume", id_).expect(2, "is discarded")
    assert (runs.branches, runs.main) == ([], {"a": 1})


def test_the_branch_of_a_failed_run_is_not_merged(runs: Runs) -> None:
    runs("--", *writer("b=2", "exit:3"))
    branch = runs.only().branch
    refused = runs.nessie("merge", branch)
    refused.expect(6, "commits of run", "exit code 3", "--allow-failed-run")
    assert runs.main == {"a": 1}
    assert runs.nessie("merge", branch, "--allow-failed-run").code == 0
    assert runs.main == {"a": 1, "b": 2}


def test_no_other_verb_brings_contents_of_a_failed_run(runs: Runs) -> None:
    before = runs.repository.reference("main").hash
    runs("--", *writer("a=2", "b=2", "exit:3"))
    branch = runs.only().branch
    for words in (("branch", "-f", "main", branch), ("restore", "a", "b", "-s", branch, "-m", "x")):
        runs.nessie(*words).expect(6, "commits of run", "--allow-failed-run")
        runs.nessie(*words, "--dry-run") if words[0] == "branch" else None
        assert runs.repository.reference("main").hash == before
    runs.nessie("restore", "a", "-s", branch).expect(6, "commits of run")
    assert runs.nessie("status").code == 0
    runs.nessie("restore", "a", "-s", "main", "-m", "the same")
    restored = runs.nessie("restore", "a", "-s", branch, "-m", "x", "--allow-failed-run")
    assert (restored.code, runs.main) == (0, {"a": 2})
    moved = runs.nessie("branch", "-f", "main", branch, "--yes", "--allow-failed-run")
    assert (moved.code, runs.main) == (0, {"a": 2, "b": 2})
    for main in ({"a": 2}, {"a": 2, "b": 2}):
        assert runs.nessie("undo", "main", "--yes").code == 0
        assert runs.main == main


def test_from_a_commit_of_the_target(runs: Runs) -> None:
    start = runs.repository.reference("main").hash
    write(runs.repository, "main", "b", 1)
    runs("--from", start, "--", *writer("c=3")).expect(0)
    assert runs.main == {"a": 1, "b": 1, "c": 3}
    runs.nessie("branch", "other")
    other = write(runs.repository, "other", "o", 1)
    runs("--from", other, *TRUE).expect(2, "is not a commit of main")
    runs("--into", "nosuch", *TRUE).expect(4, "nosuch")
    runs.nessie("tag", "t1")
    runs("--into", "t1", *TRUE).expect(2, "t1 is a tag")


def test_into_another_branch(runs: Runs) -> None:
    runs.nessie("branch", "dev")
    runs("--into", "dev", "--", *writer("b=2")).expect(0)
    assert (runs.main, state(runs.repository, "dev")) == ({"a": 1}, {"a": 1, "b": 2})


def test_a_tag_that_exists(runs: Runs) -> None:
    runs.nessie("tag", "v1")
    runs("--tag", "v1", "--", *writer("b=2")).expect(5, "v1 exists already", "--tag")
    assert (runs.main, runs.branches) == ({"a": 1}, [])
    id_ = runs("--begin", "--tag", "v2").out.strip()
    runs("--join", id_, "--", *writer("b=2")).expect(0)
    runs.nessie("tag", "v2")
    runs("--publish", id_).expect(5, f"run {id_} is published as", "the tag was not created")
    assert runs.main == {"a": 1, "b": 2}
    assert runs.branches == []
    # The repetition creates the tag, or says again that it cannot.
    runs("--publish", id_).expect(5, "the tag was not created")
    runs.nessie("tag", "-d", "v2", "--yes")
    assert runs("--publish", id_).out.endswith(" on main, tag v2\n")
    assert "v2" in runs.tags
    head = runs.repository.reference("main").hash
    assert runs.repository.reference("v2").hash == head
    assert runs.only().reason == ""


# -- protected targets ---------------------------------------------------------------------------


def test_a_joined_command_that_is_refused_leaves_what_others_wrote(runs: Runs) -> None:
    id_ = runs("--begin").out.strip()
    runs("--join", id_, "--", *writer("b=2")).expect(0)
    refused = runs("--join", id_, "--", "sh", "-c", "NESSIE_AUTH_TOKEN=x nessie log")
    refused.expect(2, "does not reach the branch")
    run = runs.only()
    assert run.state is RunState.RUNNING
    assert state(runs.repository, run.branch) == {"a": 1, "b": 2}
    runs("--publish", id_).expect(0)
    assert runs.main == {"a": 1, "b": 2}


def test_an_error_at_the_end_names_the_run_and_the_way_out(runs: Runs) -> None:
    id_ = runs("--begin").out.strip()
    runs("--join", id_, "--", *writer("b=2")).expect(0)
    branch = runs.only().branch
    runs.nessie("branch", "-d", branch, "--yes")
    lost = runs("--json", "--publish", id_)
    assert lost.code == 4
    assert lost.json["run"] == {"id": id_, "branch": branch, "stage": "check"}
    assert f"nessie run --resume {id_}" in lost.err


def test_a_target_that_changes_only_by_merges(runs: Runs) -> None:
    runs.repository.put_setting("protect.main", "merge-only, no-delete, no-rewind")
    runs("--", *writer("b=2")).expect(0)
    assert runs.main == {"a": 1, "b": 2}


# -- output and usage ----------------------------------------------------------------------------


def test_dry_run_writes_nothing(runs: Runs) -> None:
    shown = runs("--dry-run", "--check", "true", "--", *writer("b=2"))
    assert shown.code == 0
    assert "NESSIE_REF=run/" in shown.out
    assert shown.lines[0].startswith("branch: run/")
    assert shown.lines[1] == "check:  command: true"
    assert runs.branches == runs.repository.runs.all() == []
    assert runs.main == {"a": 1}


def test_print_env_hides_secrets(runs: Runs) -> None:
    shown = runs("--print-env", "--", "python", NESSIE_AUTH_TOKEN="hush", NESSIE_AUTH_TYPE="BEARER")
    assert shown.code == 0
    assert "hush" not in shown.out + shown.err
    assert "NESSIE_AUTH_TOKEN=***" in shown.out
    document = runs("--json", "--print-env", "--", "python").json
    values = {each["name"]: each["value"] for each in document["variables"]}
    assert values["NESSIE_AUTH_TOKEN"] == "***"
    assert runs.repository.runs.all() == []


def test_secrets_of_the_command_line_are_not_recorded(runs: Runs) -> None:
    words = (
        "--password", "pw-1", "--api-key=pw-2", "TOKEN=pw-3", "-Dspark.x.token=pw-4",
        "https://ann:pw-5@host/x", "--conf", "spark.hadoop.fs.s3a.secret.key=pw-6", "plain",
    )  # fmt: skip
    runs("--", "echo", *words).expect(0)
    run = runs.only()
    assert not any(f"pw-{number}" in " ".join(run.command) for number in range(1, 7)), run.command
    assert run.command[-1] == "plain"
    assert "pw-" not in runs("--show", run.id).out + runs("--list").out


def test_json_names_the_stage(runs: Runs) -> None:
    done = runs("--json", "--check", "false", "--", *writer("b=2"))
    assert (done.code, done.json["state"], done.json["stage"]) == (1, "failed", "check")
    done = runs("--json", "--", *writer("b=2"))
    assert (done.code, done.json["state"], done.json["exitCode"]) == (0, "published", 0)
    assert done.json["result"] == runs.repository.reference("main").hash
    states = {run["state"] for run in runs("--json", "--list").json["runs"]}
    assert states == {"failed", "published"}


def test_list_and_show(runs: Runs) -> None:
    runs("--check", "false", "--", *writer("b=2"))
    run = runs.only()
    listed = runs("--list")
    assert run.id in listed.out
    assert "failed" in listed.out
    shown = runs("--show", run.id)
    for text in (run.id, "failed (check)", "failed   command: false", "expires:", "writer.py b=2"):
        assert text in shown.out
    assert runs("--show", f"run/{run.id}").out == shown.out
    runs("--show", "nosuch").expect(4, "there is no run nosuch")
    runs("--show", "../x").expect(2, "is not the id of a run")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ([], "no command"),
        (["--list", "--begin"], "cannot be used together"),
        (["--begin", "--", "true"], "runs no command"),
        (["--key", "k", "--", "true"], "--key needs --begin"),
        (["--join", "x"], "no command"),
        (["--no-merge", "--publish", "x"], "--no-merge"),
        (["--tag", "t", "--list"], "--tag"),
        (["--check", "true", "--publish", "x"], "--check has no effect with --publish"),
        (["--dry-run", "--discard", "x"], "--dry-run"),
    ],
)
def test_options_that_do_not_fit(runs: Runs, line: list[str], text: str) -> None:
    runs(*line).expect(2, text)


def test_expired_runs_are_deleted_by_the_next_one(runs: Runs) -> None:
    runs("--", *writer("b=2", "exit:1"))
    record = runs.repository.runs.all()[0]
    from msgspec.structs import replace

    from nessie_cli.repository.runs import RunRecord

    expired = replace(record.run, expires=1)
    assert runs.repository.runs.put(RunRecord(expired, record.version))
    runs(*TRUE).expect(0)
    assert runs.branches == []
    assert [entry.run.state for entry in runs.repository.runs.all()] == [RunState.PUBLISHED]
    runs.nessie("config", "set", "--repository", "run-expiry", "2d")
    runs("--", *writer("b=2", "exit:1"))
    run = runs.repository.runs.all(RunState.FAILED)[0].run
    assert run.expires - run.began == 2 * 86400


def test_commands_that_join_a_run_do_not_disturb_each_other(runs: Runs) -> None:
    """The first one ends while the second one runs."""
    id_ = runs("--begin").out.strip()
    inner = "import sys; from nessie_cli.cli.main import run; sys.exit(run(sys.argv[1:]))"
    first = [sys.executable, "-c", inner, "run", "--join", id_, "--", *writer("b=2")]
    both = f"unset NESSIE_ENDPOINT NESSIE_AUTH_TOKEN NESSIE_REF; {shlex.join(first)}"
    second = f"({both}) && {shlex.join(writer('c=3'))}"
    runs("--join", id_, "--", "sh", "-c", second).expect(0)
    runs("--publish", id_).expect(0)
    assert runs.main == {"a": 1, "b": 2, "c": 3}


def test_a_run_is_not_discarded_while_it_is_published(runs: Runs) -> None:
    """The first change of the record decides: the publication or the end."""
    id_ = runs("--begin").out.strip()
    write(runs.repository, f"run/{id_}", "b", 2)
    publishing, other = (join(runs.repository, id_) for _ in range(2))
    publishing.change(stage=RunStage.CHECK, head=publishing.head())
    other.discard()
    with pytest.raises(RunChanged):
        publish(publishing, lambda do, options, _: do(options), None, CommitMeta("m"))
    assert runs.main == {"a": 1}


def test_a_key_is_used_once(runs: Runs) -> None:
    id_ = runs("--begin", "--key", "k").out.strip()
    runs("--discard", id_).expect(0)
    runs("--begin", "--key", "k").expect(2, "is discarded", "another key")
    runs("--begin", "--key", "").expect(2, "--key is empty")
    published = runs("--begin", "--key", "p").out.strip()
    runs("--publish", published).expect(0)
    runs("--begin", "--key", "p").expect(0, "is published already")
