"""The checks of a run: programs that read the state which is to be published.

Each runs in a process of its own, in the environment of the run with the commit instead of the
branch: it sees one state, whatever others write.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct, json

from nessie_cli.errors import InvalidInput
from nessie_cli.model.runs import CheckResult
from nessie_cli.runs.environment import RunAccess
from nessie_cli.runs.environment.duckdb_script import attach_statements
from nessie_cli.runs.environment.spark_folder import catalog_settings
from nessie_cli.runs.shown_text import has_secret, has_secret_in_literal
from nessie_cli.runs.spark_check import SparkCheck
from nessie_cli.runs.sql_check import BASE, SqlCheck

LONGEST_OUTPUT = 4_000
"""The most characters of the output of a failed check that are kept: the first ones."""
LONGEST_OUTPUTS = 40_000
"""The most characters of all outputs of a run together."""
_SQL_ENDING = ".sql"
_TOKEN = re.compile(r"nessie-run_[A-Za-z0-9._-]+")


class CheckKind(StrEnum):
    """What a check is: a command of the shell, queries that must return no rows, or an audit.

    The queries are those of DuckDB, or one of Spark.
    """

    COMMAND = "command"
    SQL = "sql"
    SPARK_SQL = "spark-sql"
    AUDIT = "audit"


_QUERIES = {CheckKind.SQL: ("duckdb", "sql"), CheckKind.SPARK_SQL: ("pyspark", "spark")}
"""The package that runs a query, and the extra that has it."""


class RunCheck(Struct, frozen=True):
    """A check: its kind, and its command, its query or the file of its query."""

    kind: CheckKind
    text: str = ""

    @property
    def description(self) -> str:
        """The check as people see it, and as the record has it."""
        return self.kind if self.kind is CheckKind.AUDIT else f"{self.kind}: {self.text}"

    @staticmethod
    def of(description: str) -> RunCheck:
        """Returns the check with a description."""
        kind, _, text = description.partition(": ")
        return RunCheck(CheckKind(kind), text)

    def validate(self) -> None:
        """Raises `InvalidInput` for an empty check, which would check nothing.

        Raises it also for a check with a value that looks secret, because the record of the run
        would have it, for a file of SQL that cannot be read, and for a missing package.
        """
        if self.kind is not CheckKind.AUDIT and not self.text.strip():
            raise InvalidInput(
                "a check is empty, so it would check nothing",
                hint="a variable of the shell in --check or --check-sql may have no value",
            )
        if self._has_secret():
            raise InvalidInput(
                f"a check ({self.kind}) has a value that looks secret, which the record of the run"
                " would show",
                hint="use a variable of the environment, or put the check into a file",
            )
        if self.kind not in _QUERIES:
            return
        self._sql()
        package, extra = _QUERIES[self.kind]
        if find_spec(package) is None:
            raise InvalidInput(
                f"{self.description}: the package {package} is not installed",
                hint=f"pip install 'nessie-cli[{extra}]'",
            )

    def run(self, environment: Mapping[str, str], state: RunAccess) -> CheckResult:
        """Runs the check in an environment, on a state, and returns its result."""
        code, printed = self._ended(environment, self._input(state))
        passed = code == 0
        # A program that prints its environment prints the token of the run, too.
        text = _TOKEN.sub("***", printed.decode(errors="replace").strip())
        if not passed and not text:
            text = f"ended with exit code {code}"
        return CheckResult(self.description, passed, "" if passed else _shortened(text))

    def _ended(self, environment: Mapping[str, str], given: bytes) -> tuple[int, bytes]:
        """Runs the program, and returns its exit code and its output.

        It has a process group, so that an interrupt ends the programs that it has started, too.
        """
        process = subprocess.Popen(  # noqa: S603 - what the user asked for
            self._arguments(),
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Spark logs to stderr, and its program prints errors on stdout.
            stderr=subprocess.DEVNULL if self.kind is CheckKind.SPARK_SQL else subprocess.STDOUT,
            process_group=0,
        )
        try:
            printed, _ = process.communicate(given)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        return process.returncode, printed

    def _arguments(self) -> list[str]:
        if self.kind is CheckKind.COMMAND:
            return ["/bin/sh", "-c", self.text]
        if self.kind is CheckKind.SQL:
            return [sys.executable, "-m", "nessie_cli.runs.sql_check"]
        if self.kind is CheckKind.SPARK_SQL:
            return [sys.executable, "-m", "nessie_cli.runs.spark_check"]
        return [sys.executable, "-m", "nessie_cli", "--no-pager", "audit"]

    def _input(self, state: RunAccess) -> bytes:
        """Returns what the program reads on stdin."""
        if self.kind not in _QUERIES:
            return b""
        before = state._replace(branch=state.base, catalog=BASE)
        if self.kind is CheckKind.SPARK_SQL:
            return json.encode(SparkCheck(catalog_settings(before), self._sql()))
        attached = [attach_statements(each) for each in (state, before)]
        return json.encode(SqlCheck(attached, state.catalog, self._sql()))

    def _has_secret(self) -> bool:
        if self.kind is CheckKind.COMMAND:
            return has_secret(self.text)
        return self.kind in _QUERIES and has_secret_in_literal(self.text)

    def _sql(self) -> str:
        """Returns the query: that of the file of this name, or the text itself."""
        if not self.text.endswith(_SQL_ENDING):
            return self.text
        try:
            return Path(self.text).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(
                f"--check-sql {self.text}: the file cannot be read: {error}"
            ) from None


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_OUTPUT:
        return text
    return text[:LONGEST_OUTPUT] + "\n..."


def fitted(results: Sequence[CheckResult]) -> tuple[CheckResult, ...]:
    """Returns results whose outputs together fit into the record of a run."""
    most = LONGEST_OUTPUTS // max(1, len(results))
    return tuple(
        result
        if len(result.output) <= most
        else CheckResult(result.check, result.passed, f"{result.output[:most]}\n...")
        for result in results
    )
