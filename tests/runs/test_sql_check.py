"""The program of a check in SQL."""

from __future__ import annotations

import subprocess
import sys

import pytest
from msgspec import json

from nessie_cli.errors import InvalidInput
from nessie_cli.runs.checks import CheckKind, RunCheck
from nessie_cli.runs.sql_check import SqlCheck

pytest.importorskip("duckdb", reason="the extra sql is not installed")


def checked(query: str) -> tuple[int, str]:
    """Returns the exit code of the program for a query, and what it prints."""
    ended = subprocess.run(
        [sys.executable, "-m", "nessie_cli.runs.sql_check"],
        input=json.encode(SqlCheck((), "lake", query)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return ended.returncode, ended.stdout.decode()


@pytest.mark.parametrize(
    ("query", "code", "printed"),
    [
        ("SELECT 1 WHERE false", 0, ""),
        ("SELECT 7 AS a", 1, "a\n7\n"),
        # Not only the last query counts.
        ("SELECT 7 AS a; SELECT 1 WHERE false", 1, "a\n7\n"),
        ("SELECT 1 WHERE false; SELECT 8 AS b;", 1, "b\n8\n"),
        ("SELECT 7 AS a; SELECT 8 AS b", 1, "a\n7\nb\n8\n"),
        ("CREATE TEMP TABLE t AS SELECT 1 AS c; SELECT * FROM t WHERE c > 1", 0, ""),
        ("CREATE TEMP MACRO f(x) AS x > 1; SELECT 9 AS d WHERE f(2)", 1, "d\n9\n"),
        ("SET threads = 1; SELECT 1 WHERE false; -- the end", 0, ""),
    ],
)
def test_each_query_must_return_no_rows(query: str, code: int, printed: str) -> None:
    assert checked(query) == (code, printed)


@pytest.mark.parametrize("query", ["", "-- nothing", ";", "CREATE TEMP TABLE t AS SELECT 1"])
def test_without_a_query_nothing_was_checked(query: str) -> None:
    code, printed = checked(query)
    assert (code, printed) == (2, "there is no query, so nothing was checked\n")


def test_a_wrong_query_is_one_line() -> None:
    code, printed = checked("SELECT 1 WHERE false; SELEC")
    assert code == 2
    assert printed.startswith("Parser Error")


@pytest.mark.parametrize("kind", [CheckKind.COMMAND, CheckKind.SQL, CheckKind.SPARK_SQL])
@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_check_is_refused(kind: CheckKind, text: str) -> None:
    with pytest.raises(InvalidInput, match="check nothing"):
        RunCheck(kind, text).validate()
