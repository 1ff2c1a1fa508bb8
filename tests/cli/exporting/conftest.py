"""A workspace and another catalog, in SQL and behind Iceberg REST."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.exporting.place import PREFIX, Place
from tests.command.in_process import InProcess
from tests.server.iceberg_rest.lake import lake as served_lake


@pytest.fixture(params=["sql", "rest"])
def place(
    request: pytest.FixtureRequest,
    nessie: InProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Place]:
    assert nessie("init").code == 0
    with ExitStack() as stack:
        if request.param == "sql":
            uri = f"sqlite:///{tmp_path}/other.sqlite"
            other = {"type": "sql", "uri": uri, "warehouse": f"{tmp_path}/other"}
        else:
            (tmp_path / "warehouse").mkdir()
            server = stack.enter_context(served_lake(tmp_path / "warehouse"))
            other = {"type": "rest", "uri": f"{server.url}/iceberg/main"}
        for name, value in other.items():
            monkeypatch.setenv(PREFIX + name.upper(), value)
        yield Place(nessie, tmp_path, other, stack)
