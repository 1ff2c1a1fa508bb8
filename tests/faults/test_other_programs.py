"""A store is a plain SQLite file: other programs read, checkpoint, copy and rewrite it.

They do so beside writers, and after writers were killed.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from nessie_cli import CommitMeta, ContentKey, Namespace, Put, connect, create
from tests.faults.test_kill import Killer, check_history

SHELL = shutil.which("sqlite3")
needs_shell = pytest.mark.skipif(SHELL is None, reason="the sqlite3 shell is not installed")

ROUNDS = 3
"""How often each program meets a writer, and runs after its death."""
LIFE = 0.15  # seconds between a writer's first acknowledgement and its end
PATIENCE = 60
"""Seconds that a program waits for locks."""

Program = Callable[[Path, Path], None]
"""Gets the file of a store, and a path at which it may make a copy."""


def by_module(*statements: str) -> Program:
    """Returns a program that runs statements with Python's module, `{copy}` being the copy."""

    def run(store: Path, copy: Path) -> None:
        with closing(sqlite3.connect(store, timeout=PATIENCE, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement.format(copy=copy)).fetchall()

    return run


def by_shell(*commands: str) -> Program:
    def run(store: Path, copy: Path) -> None:
        lines = [f".timeout {PATIENCE}000", *(one.format(copy=copy) for one in commands)]
        shell(store, "\n".join(lines))

    return run


def shell(store: Path, script: str) -> str:
    assert SHELL is not None
    return subprocess.run(
        [SHELL, "-bail", str(store)], input=script, capture_output=True, text=True, check=True
    ).stdout


def by_backup_interface(pages: int) -> Program:
    """Returns a program that copies so many pages at once, and begins again after each write."""

    def run(store: Path, copy: Path) -> None:
        with (
            closing(sqlite3.connect(store, timeout=PATIENCE)) as connection,
            closing(sqlite3.connect(copy)) as target,
        ):
            connection.backup(target, pages=pages, sleep=0.001)

    return run


READ = "SELECT count(*), sum(length(packed)) FROM objects"
PROGRAMS: dict[str, Program] = {
    "module reads": by_module(READ, "SELECT * FROM refs", "SELECT * FROM reflog"),
    "module checks": by_module("PRAGMA integrity_check"),
    **{
        f"module checkpoints: {mode}": by_module(f"PRAGMA wal_checkpoint({mode})")
        for mode in ("PASSIVE", "FULL", "RESTART", "TRUNCATE")
    },
    "module copies": by_module("VACUUM INTO '{copy}'"),
    "module backs up": by_backup_interface(-1),
    "module backs up in steps": by_backup_interface(500),
    "module rewrites": by_module("VACUUM", "ANALYZE", "REINDEX", "PRAGMA optimize"),
    "shell reads": by_shell(READ + ";", ".schema", ".dump"),
    "shell checkpoints": by_shell("PRAGMA wal_checkpoint(TRUNCATE);"),
    "shell copies": by_shell("VACUUM INTO '{copy}';"),
    "shell backs up": by_shell(".backup '{copy}'"),
    "shell rewrites": by_shell("VACUUM;"),
}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.sqlite"
    create(str(path)).close()
    return path


NAMED = [
    pytest.param(name, marks=needs_shell if name.startswith("shell") else ()) for name in PROGRAMS
]


@pytest.mark.parametrize("name", NAMED)
def test_a_program_beside_and_after_killed_writers(store: Path, tmp_path: Path, name: str) -> None:
    """The store has each acknowledged commit once, and a copy those acknowledged before it."""
    program = PROGRAMS[name]
    seed = Random().randrange(2**32)
    print("seed", seed)
    chance = Random(seed)
    acknowledged: dict[int, list[str]] = {}
    with Killer("write", str(store)) as killer, ThreadPoolExecutor(1) as pool:
        for number in range(ROUNDS):
            copies = [tmp_path / f"{number} {when}.sqlite" for when in ("beside", "after")]
            before = acknowledged.copy()
            beside = pool.submit(program, store, copies[0])
            acknowledged[number] = killer.kill(number, chance.uniform(0.05, LIFE))
            beside.result(2 * PATIENCE)
            program(store, copies[1])
            check_history(str(store), acknowledged)
            for copy, commits in zip(copies, (before, acknowledged), strict=True):
                if copy.exists():
                    check_history(str(copy), commits)
                    commit(copy)
    assert sum(map(len, acknowledged.values())) > ROUNDS


def commit(path: Path) -> None:
    """Commits to a copy, which is a store itself."""
    with connect(str(path)) as repository:
        count = len(list(repository.log("main")))
        repository.commit(
            "main", [Put(ContentKey(("new",)), Namespace(elements=("new",)))], CommitMeta("new")
        )
        assert len(list(repository.log("main"))) == count + 1
        assert list(repository.check()) == []


@needs_shell
def test_a_program_that_reads_for_long_does_not_stop_writers(store: Path) -> None:
    """Its snapshot keeps SQLite's log from being reset."""
    with closing(sqlite3.connect(store)) as reader, Killer("write", str(store)) as killer:
        reader.execute("BEGIN")
        [seen] = reader.execute("SELECT count(*) FROM reflog").fetchall()
        acknowledged = {0: killer.kill(0, LIFE)}
        shell(store, "PRAGMA wal_checkpoint(PASSIVE);")
        acknowledged[1] = killer.kill(1, LIFE)
        assert reader.execute("SELECT count(*) FROM reflog").fetchall() == [seen]
    check_history(str(store), acknowledged)


@needs_shell
def test_a_store_restored_from_a_dump_of_the_shell_opens_again(store: Path, tmp_path: Path) -> None:
    """A dump has all rows, and lacks the two numbers of the header."""
    with Killer("write", str(store)) as killer:
        acknowledged = {0: killer.kill(0, LIFE)}
    header = [
        f"PRAGMA {name} = {shell(store, f'PRAGMA {name};').strip()};"
        for name in ("application_id", "user_version")
    ]
    restored = tmp_path / "restored.sqlite"
    shell(restored, shell(store, ".dump") + "\n".join(header))
    check_history(str(restored), acknowledged)
    commit(restored)
