"""The command line in real processes, each in a clean environment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import pytest

from tests.preloaded import EVERYTHING


class Outcome(NamedTuple):
    """How one process ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The error in that document."""
        return self.json["error"]


class Server:
    """The process that command lines are forked from.

    It has loaded all modules of the package, and `more`.
    """

    def __init__(self, *more: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("forking.py")), *EVERYTHING, *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def run(self, **request: Any) -> Outcome:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return Outcome(*json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        self._process.communicate("")


class Nessie:
    """`nessie ARGS...` in a folder.

    Every call is a process of its own, with `server` one that has not to load anything.
    """

    def __init__(self, folder: Path, home: Path, server: Server | None) -> None:
        self.folder = folder
        self.server = server
        self.environment = {
            "PATH": os.defpath,
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "LOGNAME": "tester",
            "LC_ALL": "C.UTF-8",
        }

    def command(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "nessie_cli", *args]

    def __call__(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        cwd: Path | None = None,
    ) -> Outcome:
        environment = {**self.environment, **(env or {})}
        folder = cwd or self.folder
        if self.server is None:
            done = subprocess.run(
                self.command(*args),
                cwd=folder,
                env=environment,
                input=stdin,
                capture_output=True,
                encoding="utf-8",
                timeout=120,
                check=False,
            )
            outcome = Outcome(done.returncode, done.stdout, done.stderr)
        else:
            outcome = self.server.run(args=args, cwd=str(folder), env=environment, stdin=stdin)
        assert "Traceback" not in outcome.err or "--debug" in args, outcome.err
        return outcome

    def ok(self, *args: str, **more: Any) -> Outcome:
        """As a call, for steps that have to work."""
        outcome = self(*args, **more)
        assert outcome.code == 0, (args, outcome)
        return outcome

    def table(self, key: str, snapshot: int, *more: str) -> Outcome:
        """Put an Iceberg table."""
        location = f"s3://lake/{snapshot}.json"
        return self.ok(
            "content",
            "put",
            key,
            "--type",
            "iceberg-table",
            "--metadata-location",
            location,
            "--snapshot-id",
            str(snapshot),
            *more,
        )

    def snapshot(self, key: str, *more: str) -> int:
        """The snapshot id of a table as it is committed."""
        found: int = self.ok("content", "show", key, *more, "--json").json["content"]["snapshotId"]
        return found

    def messages(self, *more: str) -> list[str]:
        """The commit messages of the current reference, newest first."""
        return [
            entry["commitMeta"]["message"]
            for entry in self.ok("log", "--json", *more).json["logEntries"]
        ]

    def staged(self) -> list[tuple[str, str]]:
        """Type and key of every staged operation."""
        operations = self.ok("status", "--json").json["batch"]["operations"]
        return [
            (operation["type"], ".".join(operation["key"]["elements"])) for operation in operations
        ]


def fresh(folder: Path, server: Server | None) -> Nessie:
    """The command in an empty folder without a workspace."""
    home = folder / "home"
    work = folder / "work"
    home.mkdir()
    work.mkdir()
    return Nessie(work, home, server)


def recorded(nessie: Nessie) -> None:
    """Let the workspaces be those that this user made: copied ones are not trusted."""
    state = Path(nessie.environment["HOME"], ".local/state/nessie")
    state.mkdir(parents=True, exist_ok=True)
    lines = []
    for folder in nessie.folder.rglob(".nessie"):
        identity = token_hex(32)
        (folder / "identity").write_text(f"{identity}\n")
        lines.append(f"{os.getuid()} {identity} {folder.parent.resolve()}\n")
    (state / "workspaces").write_text("".join(lines))


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One for all tests."""
    server = Server()
    yield server
    server.close()


@pytest.fixture
def nessie(tmp_path: Path, server: Server) -> Nessie:
    """The command in an empty folder without a workspace."""
    return fresh(tmp_path, server)


@pytest.fixture
def workspace(nessie: Nessie) -> Nessie:
    """The command in a folder with a fresh workspace."""
    nessie.ok("init")
    return nessie


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Nessie:
    """What `catalog` copies; not to be changed."""
    nessie = fresh(tmp_path_factory.mktemp("catalog"), server)
    nessie.ok("init")
    nessie.ok("content", "put", "db", "--type", "namespace")
    nessie.table("db.orders", 1)
    nessie.ok("commit", "-m", "first tables")
    return nessie


@pytest.fixture
def catalog(nessie: Nessie, made_once: Nessie) -> Nessie:
    """A workspace with one commit on main: namespace `db`, table `db.orders` at snapshot 1."""
    shutil.copytree(made_once.folder, nessie.folder, dirs_exist_ok=True)
    recorded(nessie)
    return nessie
