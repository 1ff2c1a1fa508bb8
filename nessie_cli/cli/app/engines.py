"""`--engine`: whether a command runs in this process or on Spark."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any

import typer

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.errors import InvalidInput
from nessie_cli.workspace import environment


class Engine(StrEnum):
    """The values of `--engine`."""

    LOCAL = "local"
    SPARK = "spark"


EngineOption = Annotated[
    Engine | None,
    typer.Option(
        "--engine",
        case_sensitive=False,
        help="Run in this process (local) or on Spark. Default: NESSIE_ENGINE, or local.",
    ),
]


def chosen(given: Engine | None, otherwise: Engine = Engine.LOCAL) -> Engine:
    """Returns the engine: the given one, else that of the environment, else `otherwise`.

    Raises `InvalidInput` if the environment variable has an unknown value.
    """
    named = environment.variable(environment.ENGINE)
    if given is not None or named is None:
        return given or otherwise
    try:
        return Engine(named.lower())
    except ValueError:
        raise InvalidInput(
            f"{environment.ENGINE}={named} must be one of {', '.join(Engine)}"
        ) from None


@contextmanager
def spark_session(app: Invocation, *, brief: bool = False) -> Iterator[Any]:
    """Yields a Spark session: that of the calling program, or a new one.

    `brief` is for commands whose work is done by Python tasks, not by Spark's Java. Raises
    `ModuleNotFoundError` without PySpark; failures of Spark are raised as errors of
    `nessie_cli.errors`.
    """
    import_module("pyspark")
    environment.spark_for_this_python(brief=brief)
    from nessie_cli.spark import session

    with app.at_work("Spark tasks") as work, session("nessie", work) as spark:
        yield spark
