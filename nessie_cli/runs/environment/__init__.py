"""The environment in which the programs of a run find its branch without change.

`environment_of` returns the variables and writes the files that they name: a copy of Spark's
configuration folder, and a script for DuckDB. docs/guides/run-with-spark.md and the pages beside
it describe them.
"""

from nessie_cli.runs.environment.access import RunAccess
from nessie_cli.runs.environment.environment import (
    HIDDEN,
    Environment,
    Variable,
    described,
    environment_of,
)

__all__ = ["HIDDEN", "Environment", "RunAccess", "Variable", "described", "environment_of"]
