"""`--engine`: where the work of a command is done, in this process or by Spark."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.errors import InvalidInput


class Engine(StrEnum):
    """Who does the work."""

    LOCAL = "local"
    SPARK = "spark"


EngineOption = Annotated[
    Engine | None,
    typer.Option(
        "--engine", case_sensitive=False, help="Who does the work: this process, or Spark's; else NESSIE_ENGINE, else local.", show_default=False
    ),
]


def chosen(given: Engine | None, otherwise: Engine = Engine.LOCAL) -> Engine:
    """Who does the work: what was given, else what the environment says. Raises `InvalidInput` where that is no engine."""
    from nessie_cli.workspace import environment

    named = environment.variable(environment.ENGINE)
    if given is not None or named is None:
        return given or otherwise
    try:
        return Engine(named.lower())
    except ValueError:
        raise InvalidInput(f"{environment.ENGINE}={named}: must be one of {', '.join(Engine)}") from None


@contextmanager
def spark_session(call: Invocation, *, brief: bool = False) -> Iterator[Any]:
    """A session of Spark for this command, its own or the one of the program that calls it; what fails in it is one error of ours.

    `brief` is for commands whose work is done by the Python of tasks, and not by Spark's Java.
    """
    from importlib.util import find_spec

    from nessie_cli.cli.heard import progress_of
    from nessie_cli.workspace.environment import spark_for_this_python

    if find_spec("pyspark") is None:
        raise InvalidInput("--engine spark: PySpark is not installed; install nessie-cli[spark]")
    spark_for_this_python(brief=brief)
    from nessie_cli.spark import session

    # Other commands tell by themselves how far they are.
    progress = progress_of(call, "tasks of Spark") if brief else call.at_work("working with Spark")
    with progress as tell, session("nessie", tell) as spark:
        yield spark
