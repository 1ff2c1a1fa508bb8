"""`nessie run` on an embedded store, as processes: its server, streams, signals, full disks."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nessie_cli import connect
from nessie_cli.model.runs import PipelineRun, RunState
from nessie_cli.repository.base import Repository
from tests.cli.run.conftest import WRITER, state, writer
from tests.cli.run.leftovers import no_token_works, nothing_is_left
from tests.command.process import Forker, Nessie, Started, fresh
from tests.command.terminal import Running
from tests.server.waiting import until


class Workspace:
    """An embedded store, and the command in processes of their own."""

    def __init__(self, nessie: Nessie, folder: Path) -> None:
        self.nessie, self.folder = nessie, nessie.folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        nessie.environment |= {
            "TMPDIR": str(self.temporary),
            "NESSIE_TEST_MARK": str(folder),
            "NESSIE_AUTHOR": "etl",
        }
        nessie.ok("init")
        self.store = str(self.folder / ".nessie" / "store.sqlite")
        self.mark = folder

    def run(self, *args: str) -> object:
        return self.nessie("run", *args)

    def on_terminal(self, *args: str, width: int = 200) -> Running:
        assert self.nessie.forker is not None
        environment = {**self.nessie.environment, "NO_COLOR": "1"}
        return Running(
            self.nessie.forker, ("run", *args), self.folder, environment, width=width, height=50
        )

    def started(self, *args: str) -> Started:
        """Starts `nessie run` without a terminal, whose end would end its command."""
        assert self.nessie.forker is not None
        with Path(os.devnull).open("r+b") as null:
            streams = [null.fileno()] * 3
            line = ("run", *args)
            return self.nessie.forker.start(line, self.folder, self.nessie.environment, streams)

    def repository(self) -> Repository:
        return connect(self.store)

    def only(self) -> PipelineRun:
        with self.repository() as repository:
            (record,) = repository.runs.all()
            return record.run

    def main(self) -> dict[str, int]:
        with self.repository() as repository:
            return state(repository)

    def nothing_is_left(self) -> None:
        nothing_is_left(self.mark, self.temporary)
        with self.repository() as repository:
            no_token_works(repository)


@pytest.fixture
def workspace(tmp_path: Path, forker: Forker) -> Iterator[Workspace]:
    found = Workspace(fresh(tmp_path, forker), tmp_path)
    yield found
    found.nothing_is_left()


def test_the_first_load_of_an_empty_store(workspace: Workspace) -> None:
    """The streams of the command are its own, and the run tells its end on stderr."""
    command = f"cat; {shlex.join(writer('b=2'))}; echo err >&2"
    done = workspace.nessie("run", "--", "sh", "-c", command, stdin="some\0bytes\n")
    done.expect(0, "err\n", "published ", out="some\0bytes\n")
    assert workspace.main() == {"b": 2}
    again = workspace.nessie(
        "run", "--json", "--", "sh", "-c", f"echo x; {' '.join(writer('b=3'))}"
    )
    assert again.json["state"] == "published"
    assert "x\n" in again.err


def test_the_environment_of_the_command_has_the_branch_and_no_way_around(
    workspace: Workspace,
) -> None:
    done = workspace.nessie.ok("run", "--", "env")
    values = dict(line.partition("=")[::2] for line in done.lines)
    run = workspace.only()
    assert values["NESSIE_REF"] == run.branch
    assert values["NESSIE_ENDPOINT"].startswith("http://127.0.0.1:")
    assert "NESSIE_STORE" not in values
    assert values["NESSIE_AUTH_TOKEN"].startswith(f"nessie-run_{run.id}_")
    assert values["NESSIE_AUTH_TOKEN"] not in done.err
    secret = values["NESSIE_AUTH_TOKEN"].encode()
    assert not any(
        secret in path.read_bytes() for path in workspace.folder.rglob("*") if path.is_file()
    )


def test_the_token_cannot_write_past_the_run(workspace: Workspace) -> None:
    done = workspace.nessie("run", "--", "env", "WRITER_REF=main", *writer("b=2"))
    done.expect(9, "403 ", "nothing was published")
    assert workspace.main() == {}


def test_a_command_that_opens_the_store_itself_is_noticed(workspace: Workspace) -> None:
    program = (
        "from nessie_cli import connect; from nessie_cli.model import *; import sys;"
        " r = connect(sys.argv[1], who='etl');"
        " r.commit('main', [Put(ContentKey(('x',)), Namespace(elements=('x',)))], CommitMeta('m'))"
    )
    done = workspace.nessie("run", "--", sys.executable, "-c", program, workspace.store)
    done.expect(1, "the command wrote to main", "and not to the run")
    assert workspace.only().stage == "command"


def test_at_80_columns_and_on_a_pipe(workspace: Workspace) -> None:
    running = workspace.on_terminal("--check", "true", "--", *writer("b=2"), width=80)
    shown = running.end()
    shown.expect(0, "passed  command: true", "published")
    listed = workspace.on_terminal("--list", width=80).end()
    assert max(map(len, listed.plain.splitlines())) <= 80
    piped = workspace.nessie.ok("run", "--list")
    assert len(piped.lines) == 2
    assert workspace.only().id in piped.out


# -- signals -------------------------------------------------------------------------------------


def test_ctrl_c_during_the_command(workspace: Workspace) -> None:
    """It reaches the command once, and the run waits for the command."""
    trap = "trap 'echo caught; sleep 0.2; exit 7' INT; echo ready; sleep 60 & wait"
    running = workspace.on_terminal("--", "sh", "-c", trap)
    running.wait_for("ready")
    running.interrupt()
    shown = running.end()
    shown.expect(7, "nothing was published")
    assert shown.plain.count("caught") == 1
    run = workspace.only()
    assert (run.state, run.stage, run.exit_code) == (RunState.FAILED, "command", 7)


def test_ctrl_c_that_the_command_survives_fails_the_run(workspace: Workspace) -> None:
    command = f"trap '' INT; {shlex.join(writer('b=2'))}; echo ready; sleep 1"
    running = workspace.on_terminal("--", "sh", "-c", command)
    running.wait_for("ready")
    running.interrupt()
    running.end().expect(130, "interrupted", "nothing was published")
    assert (workspace.main(), workspace.only().state) == ({}, RunState.FAILED)


def test_sigterm_is_passed_on_to_the_command(workspace: Workspace) -> None:
    running = workspace.on_terminal("--", "sh", "-c", "echo ready; exec sleep 60")
    running.wait_for("ready")
    os.kill(running.process, signal.SIGTERM)
    running.end().expect(128 + signal.SIGTERM, "nothing was published")
    assert workspace.only().reason == "interrupted"


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("program", ["exec sleep 60", "sleep 60; true", "sleep 60 & wait"])
def test_a_check_that_is_interrupted_can_be_resumed(
    workspace: Workspace, sign: int, program: str
) -> None:
    check = f"test -e go || {{ touch checking; {program}; }}"
    running = workspace.on_terminal("--check", check, "--", *writer("b=2"))
    until((workspace.folder / "checking").exists)
    if sign == signal.SIGINT:
        running.interrupt()
    else:
        os.kill(running.process, sign)
    running.end().expect(128 + sign, "is interrupted", "nessie run --resume")
    run = workspace.only()
    assert (run.state, run.stage, run.reason) == (RunState.FAILED, "check", "interrupted")
    workspace.nothing_is_left()
    (workspace.folder / "go").touch()
    workspace.nessie("run", "--resume", run.id).expect(0)
    assert workspace.main() == {"b": 2}


def test_sigterm_before_the_command_leaves_no_running_run(workspace: Workspace) -> None:
    running = workspace.on_terminal("--", "sleep", "60")

    def server_starts() -> bool:
        with workspace.repository() as repository:
            return any(record.run.tokens for record in repository.runs.all())

    until(server_starts)
    os.kill(running.process, signal.SIGTERM)
    running.end()
    run = workspace.only()
    assert (run.state, run.reason) in ((RunState.DISCARDED, ""), (RunState.FAILED, "interrupted"))
    workspace.nothing_is_left()


def test_a_killed_run_ends_its_server_and_its_token(workspace: Workspace) -> None:
    """The command lives on, and cannot write any more."""
    late = f"touch ready; while ! test -e go; do sleep 0.05; done; {shlex.join(writer('late=1'))}"
    command = f"{shlex.join(writer('b=2'))}; {late}; echo $? > code"
    running = workspace.started("--", "sh", "-c", command)
    until((workspace.folder / "ready").exists)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    until(lambda: not any(workspace.temporary.iterdir()))
    (workspace.folder / "go").touch()
    until((workspace.folder / "code").exists)
    until(lambda: (workspace.folder / "code").read_text() != "")
    assert (workspace.folder / "code").read_text() != "0\n"
    run = workspace.only()
    workspace.nessie("run", "--resume", run.id).expect(2, "did not end well: it was killed")
    workspace.nessie("merge", run.branch).expect(6, "commits of run", "was killed")
    with workspace.repository() as repository:
        assert state(repository, run.branch) == {"b": 2}
    workspace.nessie("run", "--discard", run.id).expect(0)
    assert workspace.main() == {}


def test_a_run_that_is_alive_is_not_resumed(workspace: Workspace) -> None:
    running = workspace.on_terminal("--check", "touch checking; sleep 4", "--", *writer("b=2"))
    until((workspace.folder / "checking").exists)
    run = workspace.only()
    workspace.nessie("run", "--resume", run.id).expect(2, "is still running")
    running.end().expect(0)


def test_a_discarded_run_stops_its_command(workspace: Workspace) -> None:
    running = workspace.on_terminal("--", "sh", "-c", "echo ready; exec sleep 60")
    running.wait_for("ready")
    workspace.nessie("run", "--discard", workspace.only().id).expect(0)
    shown = running.end()
    assert shown.code != 0
    assert "was continued or ended by another process" in shown.plain
    assert workspace.only().state is RunState.DISCARDED


# -- a full disk ---------------------------------------------------------------------------------


def test_a_full_disk_during_the_publication(workspace: Workspace) -> None:
    """The check limits the size of files of the process that publishes."""
    limit = (
        "import os, resource, sys; pid = int(open(f'/proc/{os.getppid()}/stat').read().split()[3]);"
        " resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, 1 << 40)); open('limited', 'w')"
    )
    check = f"test -e limited || {shlex.join([sys.executable, '-c', limit])}"
    shown = workspace.on_terminal("--check", check, "--", *writer("b=2")).end()
    shown.expect(7, without=("Traceback",))
    assert workspace.main() == {}
    run = workspace.only()
    workspace.nessie("run", "--resume", run.id).expect(0)
    assert workspace.main() == {"b": 2}


def test_the_document_of_a_run_is_json(workspace: Workspace) -> None:
    done = subprocess.run(
        [*workspace.nessie.command("run", "--json", "--", *WRITER, "b=2")],
        cwd=workspace.folder,
        env=workspace.nessie.environment,
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["state"] == "published"
