"""A run on a server with tokens: its branch, and commands in its environment."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

import duckdb

from nessie_cli import connect
from nessie_cli.model import ReferenceType
from nessie_cli.runs.environment import Environment, RunAccess, environment_of
from nessie_cli.server.auth.tokens import add_token
from tests.engines.served import EXTENSIONS, WAREHOUSE, Served, extension, serving

PATIENCE = 240
FIRST_ROWS = [(1, "ann", 10), (2, "bob", 20)]


class ServedRun:
    """A run whose target `main` has the table shop.orders with two rows."""

    def __init__(self, served: Served, folder: Path, token: str) -> None:
        self._served = served
        self._folder = folder
        name = f"20261130-0145-{token_hex(2)}"
        with connect(served.store) as repository:
            base = repository.reference("main").hash
            repository.create_reference(ReferenceType.BRANCH, f"run/{name}", base)
        self.access = RunAccess(
            id=name,
            api=f"{served.url}/api/v2",
            iceberg=f"{served.url}/iceberg",
            branch=f"run/{name}",
            base=base,
            token=token,
            warehouse=WAREHOUSE,
        )

    def environment(
        self, command: Sequence[str | Path], **inherited: str
    ) -> tuple[Environment, Mapping[str, str]]:
        """Returns the changes that the run makes, and the whole environment of a command."""
        whole = {**os.environ, "HOME": str(self._folder), **inherited}
        made = environment_of(
            self.access, list(map(str, command)), whole, self._folder / "run", self._folder
        )
        return made, made.applied(whole)

    def run(self, *command: str | Path, **inherited: str) -> str:
        """Runs a command in the environment of the run, and returns what it prints."""
        _, environment = self.environment(command, **inherited)
        done = subprocess.run(
            command,
            cwd=self._folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, (done.stdout, done.stderr[-6000:])
        return done.stdout

    def script(self, text: str, name: str = "load.py") -> Path:
        """Returns a file with a program, which has no arguments and names no branch."""
        path = self._folder / name
        path.write_text(text)
        return path

    def rows(self, ref: str) -> list[tuple[Any, ...]]:
        """Returns the rows of shop.orders on a reference."""
        from pyiceberg.catalog import load_catalog

        catalog = load_catalog(
            "reader",
            type="rest",
            uri=self._served.rest(ref),
            warehouse=WAREHOUSE,
            token=str(self.access.token),
        )
        rows = catalog.load_table("shop.orders").scan().to_arrow().to_pylist()
        return sorted(tuple(row.values()) for row in rows)

    def target_is_untouched(self) -> bool:
        """Returns whether main is where the run began."""
        return self._served.hash_of("main") == self.access.base


@contextmanager
def served_lake(folder: Path) -> Iterator[tuple[Served, str]]:
    """Yields a server, which ends with the block, and a token for it."""
    tokens = folder / "tokens"
    token, _ = add_token(tokens, "loader", [], None, datetime.now(UTC))
    (folder / "lake").mkdir()
    with serving(folder / "lake", "--tokens", str(tokens)) as served:
        _fill(served, token)
        yield served, token


def _fill(served: Served, token: str) -> None:
    with duckdb.connect() as connection:
        for name in EXTENSIONS:
            connection.execute(f"LOAD '{extension(name)}'")
        connection.execute(f"CREATE SECRET own (TYPE iceberg, TOKEN '{token}')")
        connection.execute(
            f"ATTACH '{WAREHOUSE}' AS x (TYPE iceberg, ENDPOINT '{served.rest('main')}', SECRET own)"
        )
        connection.execute("CREATE SCHEMA x.shop")
        connection.execute("CREATE TABLE x.shop.orders (id BIGINT, client VARCHAR, cents INTEGER)")
        connection.executemany("INSERT INTO x.shop.orders VALUES (?, ?, ?)", FIRST_ROWS)
