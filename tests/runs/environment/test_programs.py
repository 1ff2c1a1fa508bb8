"""Which program a command starts."""

from __future__ import annotations

import pytest

from nessie_cli.runs.environment.programs import program_of


@pytest.mark.parametrize(
    ("command", "name", "arguments"),
    [
        (["spark-submit", "load.py"], "spark-submit", ["load.py"]),
        (["/opt/spark/bin/spark-submit", "--name", "x"], "spark-submit", ["--name", "x"]),
        (["env", "A=b", "-u", "C", "spark-submit", "x"], "spark-submit", ["x"]),
        (["env", "--", "spark-submit", "x"], "spark-submit", ["x"]),
        (["/usr/bin/env", "python3", "-m", "dbt.cli.main", "run"], "dbt", ["run"]),
        (["python3.11", "-m", "sqlmesh", "plan"], "sqlmesh", ["plan"]),
        (["python", "load.py", "-m", "dbt"], "python", ["load.py", "-m", "dbt"]),
        (["sh", "-c", "spark-submit 'my load.py'"], "spark-submit", ["my load.py"]),
        (["bash", "-c", "A=b exec spark-submit x"], "spark-submit", ["x"]),
        (
            ["sh", "-c", 'duckdb -init "$NESSIE_RUN_DUCKDB"'],
            "duckdb",
            ["-init", "$NESSIE_RUN_DUCKDB"],
        ),
        (["uv", "run", "dbt", "build"], "dbt", ["build"]),
        (["nohup", "trino", "--catalog", "lake"], "trino", ["--catalog", "lake"]),
    ],
)
def test_a_program_is_recognised(command: list[str], name: str, arguments: list[str]) -> None:
    program = program_of(command)

    assert (program.name, list(program.arguments)) == (name, arguments)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["sh", "-c", "cd x && spark-submit y"], "sh"),
        (["sh", "-c", "spark-submit y > log"], "sh"),
        (["sh", "-c", "echo 'unbalanced"], "sh"),
        (["sh", "-c", ""], "sh"),
        (["sh", "load.sh"], "sh"),
        (["uv", "run", "--with", "dbt", "dbt"], "uv"),
        (["env", "-S", "spark-submit x"], "env"),
        (["env"], "env"),
        ([], ""),
    ],
)
def test_nothing_is_guessed(command: list[str], name: str) -> None:
    assert program_of(command).name == name


def test_variables_that_the_command_changes() -> None:
    program = program_of(["env", "-u", "A", "--unset=B", "C=d=e", "sh", "-c", "F=g true"])

    assert program.changes == {"A": None, "B": None, "C": "d=e", "F": "g"}
    assert not program.clears
    assert program_of(["env", "-i", "true"]).clears


@pytest.mark.parametrize(
    ("command", "is_python"),
    [
        (["python"], True),
        (["/usr/bin/python3.12", "x.py"], True),
        (["./load.py"], True),
        (["ipython3"], True),
        (["pythonic"], False),
        (["dbt", "run"], False),
    ],
)
def test_programs_of_python(command: list[str], is_python: bool) -> None:
    assert program_of(command).is_python == is_python
