"""A script for DuckDB, which reads no variables, that attaches the branch of a run."""

from __future__ import annotations

from nessie_cli.runs.environment.access import RunAccess

_EXTENSIONS = ("avro", "httpfs", "iceberg")


def duckdb_script(access: RunAccess) -> str:
    """Returns the script. It downloads extensions that DuckDB does not have yet.

    https://duckdb.org/docs/stable/core_extensions/iceberg/iceberg_rest_catalogs
    """
    extensions = [f"INSTALL {name};\nLOAD {name};" for name in _EXTENSIONS]
    return "\n".join([*extensions, attach_statements(access)])


def attach_statements(access: RunAccess) -> str:
    """Returns the statements that attach the branch, or a commit, as the catalog of this name."""
    lines = []
    if access.token is None:
        authorization = "AUTHORIZATION_TYPE 'none'"
    else:
        token = _literal(access.token)
        lines.append(f"CREATE OR REPLACE SECRET nessie_run (TYPE iceberg, TOKEN {token});")
        authorization = "SECRET nessie_run"
    lines.append(
        f'ATTACH {_literal(access.warehouse or "")} AS "{access.catalog}" (\n'
        f"  TYPE iceberg,\n"
        f"  ENDPOINT {_literal(access.branch_uri)},\n"
        f"  {authorization},\n"
        f"  SUPPORT_NESTED_NAMESPACES true\n"
        f");"
    )
    return "\n".join([*lines, ""])


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
