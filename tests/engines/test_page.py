"""The blocks of docs/guides/iceberg-rest.md. That of Spark is run by tests/spark."""

from __future__ import annotations

import doctest
import re
from contextlib import closing
from pathlib import Path

import pytest

from tests.engines.served import EXTENSIONS, WAREHOUSE, Duck, Served, extension

PAGE = Path(__file__).parents[2] / "docs/guides/iceberg-rest.md"
SERVER = "http://127.0.0.1:19120"


def block(section: str, language: str, served: Served) -> str:
    """Returns the code of a section, for the server of the test."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    found = re.search(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert found
    return found[1].replace(SERVER, served.url)


def duckdb_block(served: Served) -> None:
    """Run DuckDB's block; its extensions are those of the wheels."""
    code = block("DuckDB", "sql", served)
    for name in EXTENSIONS:
        assert f"INSTALL {name};" in code
        code = code.replace(f"INSTALL {name};", "").replace(
            f"LOAD {name};", f"LOAD '{extension(name)}';"
        )
    with closing(Duck({})) as duck:
        for statement in filter(None, map(str.strip, code.split(";"))):
            duck(statement)
        assert duck("SELECT * FROM x.shop.orders ORDER BY id") == [(1, 1100), (2, 2550)]


def python_block(section: str, served: Served) -> None:
    """Run a block of Python and compare what it prints."""
    code = block(section, "python", served)
    output: list[str] = []
    runner = doctest.DocTestRunner()
    runner.run(doctest.DocTestParser().get_doctest(code, {}, section, None, 0), out=output.append)
    assert not runner.failures, "".join(output)
    assert runner.tries


def test_duckdb_pyiceberg_and_the_command_line(served: Served) -> None:
    served.nessie("branch", "feature/x", "main")
    duckdb_block(served)
    python_block("PyIceberg", served)
    for line in block("Review and merge", "console", served).splitlines():
        served.nessie(*line.removeprefix("$ nessie ").split())
    with closing(Duck({"merged": served.rest("main")})) as duck:
        assert duck("SELECT sum(cents) FROM merged.shop.orders") == [(6200,)]


@pytest.mark.parametrize("option", ["serve --store", f"--warehouse {WAREHOUSE}="])
def test_the_server_is_started_with_the_warehouse_of_the_blocks(option: str) -> None:
    assert option in PAGE.read_text(encoding="utf-8")
