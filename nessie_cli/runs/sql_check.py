"""A check in SQL: a program that runs queries with DuckDB and fails if one returns rows.

`python -m nessie_cli.runs.sql_check` reads a `SqlCheck` as JSON on stdin and prints the first rows.
Exit codes: 0 without rows, 1 with rows, 2 if a query fails.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, json

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

BASE = "base"
"""The catalog with the state at which the run began."""
MOST_ROWS = 10
"""The most rows that are printed."""
_EXTENSIONS = ("avro", "httpfs", "iceberg")
_LONGEST_VALUE = 60


class SqlCheck(Struct, frozen=True):
    """The statements that attach the catalogs, the name of the run's catalog, and the query.

    The query may be several statements.
    """

    attached: Sequence[str]
    catalog: str
    query: str


def main() -> int:
    """Runs the query on stdin, and returns the exit code."""
    try:
        import duckdb
    except ImportError:
        return failed("a check in SQL needs DuckDB: pip install 'nessie-cli[sql]'")
    given = json.decode(sys.stdin.buffer.read(), type=SqlCheck)
    try:
        connection = duckdb.connect(config={"allow_unsigned_extensions": "false"})
        for name in _EXTENSIONS:
            connection.execute(_load(name))
        for statements in given.attached:
            connection.execute(statements)
        return _run(connection, given.query)
    except duckdb.Error as error:
        return failed(str(error))


def _run(connection: DuckDBPyConnection, text: str) -> int:
    """Runs all statements, and returns the exit code. Others than queries may prepare them."""
    from duckdb import ExpectedResultType

    queries, returned = 0, False
    for statement in connection.extract_statements(text):
        result = connection.execute(statement)
        if statement.expected_result_type != [ExpectedResultType.QUERY_RESULT]:
            continue
        queries += 1
        rows = result.fetchmany(MOST_ROWS + 1)
        if rows:
            print_rows([column[0] for column in result.description or ()], rows)
            returned = True
    if not queries:
        return failed("there is no query, so nothing was checked")
    return 1 if returned else 0


def _load(name: str) -> str:
    """Returns the statements that load an extension: that of its package, or a downloaded one."""
    package = find_spec(f"duckdb_extension_{name}")
    folder = Path(package.origin).parent if package and package.origin else None
    file = next(folder.glob("extensions/*/*.duckdb_extension"), None) if folder else None
    if file is None:
        return f"INSTALL {name}; LOAD {name};"
    path = str(file).replace("'", "''")
    return f"LOAD '{path}';"


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints the first rows of a query."""
    print(" | ".join(columns))  # noqa: T201 - the output of this program
    for row in rows[:MOST_ROWS]:
        print(" | ".join(map(_shown, row)))  # noqa: T201
    if len(rows) > MOST_ROWS:
        print("... and more rows")  # noqa: T201


def _shown(value: object) -> str:
    text = "" if value is None else str(value).replace("\n", " ")
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."


def failed(reason: str) -> int:
    """Prints why a query fails, and returns the exit code."""
    print(reason)  # noqa: T201
    return 2


if __name__ == "__main__":
    raise SystemExit(main())
