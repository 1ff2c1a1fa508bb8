"""The command line in processes, each in a clean environment."""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import IO, Any, Self

from tests.command.in_process import do_not_combine_tables
from tests.command.outcome import Outcome
from tests.command.preloaded import EVERYTHING

PATIENCE = 120
PROGRAM = (sys.executable, "-m", "nessie_cli")
"""The command as a process of its own, which has to load its modules."""


def run(
    *args: str,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    program: Sequence[str | Path] = PROGRAM,
) -> Outcome:
    """Runs a program to its end, `nessie` by default, in a process of its own."""
    done = subprocess.run(
        [*program, *args],
        cwd=cwd,
        env=env,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


class Started:
    """A forked command line."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._code: int | None = None
        self.pid = int.from_bytes(connection.recv(8))

    def wait(self) -> int:
        """Waits for the end, and returns the exit code."""
        if self._code is None:
            self._code = int.from_bytes(self._connection.recv(8), signed=True)
            self._connection.close()
        return self._code

    def ended(self) -> bool:
        return self._code is not None or bool(select.select([self._connection], [], [], 0)[0])


class Forker:
    """The process that command lines are forked from; `loaded` are the modules that it has
    loaded for them, by default all of the package."""

    def __init__(self, loaded: Iterable[str] = EVERYTHING) -> None:
        self._folder = tempfile.mkdtemp(prefix="nessie-forker-")
        self._address = f"{self._folder}/socket"
        self._process = subprocess.Popen(
            [
                sys.executable,
                str(Path(__file__).with_name("forking.py")),
                self._address,
                *loaded,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def start(
        self,
        args: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        streams: Sequence[int],
        *,
        terminal: bool = False,
        seconds: int = 0,
    ) -> Started:
        """Starts a command line with stdin, stdout and stderr, `terminal` if they are one.

        The command line is killed after some seconds, unless they are 0.
        """
        data = json.dumps(
            {
                "args": args,
                "cwd": str(folder),
                "env": dict(environment),
                "terminal": terminal,
                "seconds": seconds,
            }
        ).encode()
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._address)
        socket.send_fds(connection, [len(data).to_bytes(8)], streams)
        connection.sendall(data)
        return Started(connection)

    def run(
        self,
        args: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        stdin: str = "",
        seconds: int = 0,
    ) -> Outcome:
        """Runs a command line to its end. Bytes that are not UTF-8 are surrogates."""
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            given.write(stdin.encode("utf-8", "surrogateescape"))
            given.seek(0)
            streams = [stream.fileno() for stream in (given, out, err)]
            code = self.start(args, folder, environment, streams, seconds=seconds).wait()
            return Outcome(code, _text(out), _text(err))

    def write_program(self, path: Path) -> None:
        """Writes a program for shells that runs command lines as this process does.

        Signals do not reach the command line, and it is not in the shell's job.
        """
        client = Path(__file__).with_name("client.py")
        path.write_text(
            f'#!/bin/sh\nexec {sys.executable} -I -S {client} {self._address} "$@"\n',
            encoding="utf-8",
        )
        path.chmod(0o755)

    def close(self) -> None:
        self._process.communicate("")
        shutil.rmtree(self._folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode("utf-8", "surrogateescape")


class Nessie:
    """`nessie ARGS...` in a folder.

    Every call is a process of its own, with a forker one that does not have to load modules.
    """

    def __init__(self, folder: Path, home: Path, forker: Forker | None) -> None:
        self.folder = folder
        self.forker = forker
        self.environment = {
            "PATH": os.defpath,
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "LOGNAME": "tester",
            "LC_ALL": "C.UTF-8",
        }
        do_not_combine_tables(home / "config")

    def command(self, *args: str) -> list[str]:
        return [*PROGRAM, *args]

    def __call__(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        cwd: Path | None = None,
    ) -> Outcome:
        environment = {**self.environment, **(env or {})}
        folder = cwd or self.folder
        if self.forker is None:
            outcome = run(*args, cwd=folder, env=environment, stdin=stdin)
        else:
            outcome = self.forker.run(args, folder, environment, stdin)
        assert "Traceback" not in outcome.err or "--debug" in args, outcome.err
        return outcome

    def ok(self, *args: str, **more: Any) -> Outcome:
        """As a call, for steps that have to work."""
        outcome = self(*args, **more)
        assert outcome.code == 0, f"{args}\n{outcome}"
        return outcome

    def table(self, key: str, snapshot: int, *more: str, location: str = "") -> Outcome:
        """Puts an Iceberg table, whose metadata file is in a bucket unless `location` names it."""
        return self.ok(
            "content",
            "put",
            key,
            "--type",
            "iceberg-table",
            "--metadata-location",
            location or f"s3://lake/{snapshot}.json",
            "--snapshot-id",
            str(snapshot),
            *more,
        )

    def snapshot(self, key: str, *more: str) -> int:
        """The snapshot id of a table as it is committed."""
        content = self.ok("content", "show", key, *more, "--json").json["content"]
        return int(content["snapshotId"])

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


def fresh(folder: Path, forker: Forker | None) -> Nessie:
    """The command in an empty folder without a workspace."""
    home = folder / "home"
    work = folder / "work"
    home.mkdir()
    work.mkdir()
    return Nessie(work, home, forker)


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
