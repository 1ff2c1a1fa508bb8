"""The environment of the programs of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from nessie_cli.runs.environment.access import RunAccess, check_catalog_name
from nessie_cli.runs.environment.duckdb_script import duckdb_script
from nessie_cli.runs.environment.files import private_file, private_folder
from nessie_cli.runs.environment.programs import program_of
from nessie_cli.runs.environment.pyiceberg_variables import pyiceberg_variables, variable
from nessie_cli.runs.environment.reach import Reach
from nessie_cli.runs.environment.spark_folder import spark_installation, write_spark_folder
from nessie_cli.workspace import environment as names

HIDDEN = "***"
"""Stands for the value of a secret."""
DBT_TOKEN = "DBT_ENV_SECRET_NESSIE_RUN_TOKEN"  # noqa: S105 - the name of a variable
"""dbt hides the values of variables that begin with DBT_ENV_SECRET_."""
_TOKEN = "NESSIE_AUTH_TOKEN"  # noqa: S105 - the name of a variable
_ACCESS = ("NESSIE_AUTH_", "NESSIE_OAUTH2_")


class Variable(NamedTuple):
    """A variable as people see it."""

    name: str
    value: str | None
    """None if the run removes the variable; `HIDDEN` for a secret."""


class Environment(NamedTuple):
    """The changes to the environment of the programs of a run."""

    variables: Mapping[str, str | None]
    """Values by name; None removes an inherited variable."""
    secrets: frozenset[str]
    """The names of variables whose values must not be shown."""
    warnings: tuple[str, ...]
    """What the command may not reach, one sentence each."""

    def applied(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Returns the whole environment of a program."""
        merged = {**inherited, **self.variables}
        return {name: value for name, value in merged.items() if value is not None}


def environment_of(
    access: RunAccess,
    command: Sequence[str],
    inherited: Mapping[str, str],
    folder: Path,
    working_folder: Path,
) -> Environment:
    """Returns the environment in which a command finds the branch of its run.

    Writes the files that the variables name into `folder`, in place of those of an earlier call.
    The folder gets mode 0700. Raises `InvalidInput` if the command would silently work beside the
    branch, and `InvalidInput` or `NotAllowed` if a file of the user's configuration cannot be
    read; nothing is written then. Raises `StoreUnavailable` if writing fails.
    """
    check_catalog_name(access.catalog)
    program = program_of(command)
    installation = spark_installation(program, inherited)
    changes = {
        **_of_nessie(access, inherited),
        **pyiceberg_variables(access, inherited, working_folder),
        **_of_run(access, folder.absolute()),
    }
    variables = {
        name: value for name, value in changes.items() if value is not None or name in inherited
    }
    reach = Reach(access, program, inherited, installation, working_folder)
    reach.check(variables)
    warnings = tuple(reach.warnings())
    private_folder(folder)
    write_spark_folder(folder / "spark", access, installation)
    private_file(folder / "duckdb.sql", duckdb_script(access))
    token_variables = {_TOKEN, DBT_TOKEN, variable(access.catalog, "token")}
    secrets = token_variables | {variable(access.catalog, "credential")}
    return Environment(variables, frozenset(secrets & variables.keys()), warnings)


def described(environment: Environment) -> Sequence[Variable]:
    """Returns the variables in the order of their names, secrets hidden."""
    return [
        Variable(name, HIDDEN if name in environment.secrets and value else value)
        for name, value in sorted(environment.variables.items())
    ]


def _of_nessie(access: RunAccess, inherited: Mapping[str, str]) -> dict[str, str | None]:
    changes: dict[str, str | None] = {
        name: None for name in (names.STORE, names.PROFILE) if name in inherited
    }
    changes |= {names.ENDPOINT: access.api, names.REFERENCE: access.branch}
    if access.token is not None:
        # Of several credentials, another one could take precedence over the token.
        changes |= {name: None for name in inherited if name.startswith(_ACCESS)}
        changes[_TOKEN] = access.token
    return changes


def _of_run(access: RunAccess, folder: Path) -> dict[str, str | None]:
    changes: dict[str, str | None] = {
        "NESSIE_RUN": access.id,
        "NESSIE_RUN_BRANCH": access.branch,
        "NESSIE_RUN_BASE": access.base,
        "NESSIE_RUN_CATALOG": access.catalog,
        "NESSIE_RUN_ICEBERG_URI": access.branch_uri,
        "NESSIE_RUN_DUCKDB": str(folder / "duckdb.sql"),
        "SPARK_CONF_DIR": str(folder / "spark"),
    }
    # A program that a run starts may not continue with the warehouse or token of an outer run.
    changes["NESSIE_RUN_WAREHOUSE"] = access.warehouse
    changes[DBT_TOKEN] = access.token
    return changes
