"""The variables and files of a run."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.runs.environment import HIDDEN, Variable, described
from tests.runs.environment.samples import ACCESS, BRANCH_URI, made


def test_the_variables_of_a_run(tmp_path: Path) -> None:
    environment = made(tmp_path)

    assert environment.variables == {
        "NESSIE_ENDPOINT": ACCESS.api,
        "NESSIE_REF": ACCESS.branch,
        "NESSIE_AUTH_TOKEN": "t0ken",
        "NESSIE_RUN": ACCESS.id,
        "NESSIE_RUN_BRANCH": ACCESS.branch,
        "NESSIE_RUN_BASE": ACCESS.base,
        "NESSIE_RUN_CATALOG": "lake",
        "NESSIE_RUN_DUCKDB": f"{tmp_path}/run/duckdb.sql",
        "NESSIE_RUN_ICEBERG_URI": BRANCH_URI,
        "NESSIE_RUN_WAREHOUSE": "lake",
        "DBT_ENV_SECRET_NESSIE_RUN_TOKEN": "t0ken",
        "PYICEBERG_CATALOG__LAKE__TYPE": "rest",
        "PYICEBERG_CATALOG__LAKE__URI": BRANCH_URI,
        "PYICEBERG_CATALOG__LAKE__TOKEN": "t0ken",
        "PYICEBERG_CATALOG__LAKE__WAREHOUSE": "lake",
        "PYICEBERG_DEFAULT_CATALOG": "lake",
        "SPARK_CONF_DIR": f"{tmp_path}/run/spark",
    }
    assert environment.warnings == ()


def test_secrets_are_hidden(tmp_path: Path) -> None:
    environment = made(tmp_path, NESSIE_STORE="sqlite:///x")
    rows = described(environment)

    assert [row.name for row in rows] == sorted(environment.variables)
    assert Variable("NESSIE_AUTH_TOKEN", HIDDEN) in rows
    assert Variable("NESSIE_STORE", None) in rows
    assert "t0ken" not in repr(rows)


def test_inherited_variables_of_another_store_are_removed(tmp_path: Path) -> None:
    inherited = {
        "NESSIE_STORE": "sqlite:///x",
        "NESSIE_PROFILE": "prod",
        "NESSIE_ENDPOINT": "https://catalog.example.com",
        "NESSIE_AUTH_TYPE": "oauth2",
        "NESSIE_OAUTH2_CLIENT_ID": "ada",
        "NESSIE_AUTHOR": "ada",
        "HOME": str(tmp_path),
    }
    whole = made(tmp_path, **inherited).applied(inherited)

    nessie = {name for name in whole if name.startswith("NESSIE_")}
    assert {name for name in nessie if not name.startswith("NESSIE_RUN")} == {
        "NESSIE_AUTHOR",
        "NESSIE_AUTH_TOKEN",
        "NESSIE_ENDPOINT",
        "NESSIE_REF",
    }
    assert whole["NESSIE_ENDPOINT"] == ACCESS.api
    assert whole["HOME"] == str(tmp_path)


def test_without_a_token_the_user_s_credentials_remain(tmp_path: Path) -> None:
    environment = made(
        tmp_path,
        access=ACCESS._replace(token=None, warehouse=None),
        NESSIE_AUTH_TOKEN="own",
        DBT_ENV_SECRET_NESSIE_RUN_TOKEN="of another run",
    )

    assert "NESSIE_AUTH_TOKEN" not in environment.variables
    assert environment.variables["DBT_ENV_SECRET_NESSIE_RUN_TOKEN"] is None
    assert "PYICEBERG_CATALOG__LAKE__TOKEN" not in environment.variables
    assert "NESSIE_RUN_WAREHOUSE" not in environment.variables
    assert "AUTHORIZATION_TYPE 'none'" in (tmp_path / "run/duckdb.sql").read_text()


def test_inherited_settings_of_the_same_pyiceberg_catalog_are_removed(tmp_path: Path) -> None:
    inherited = {
        "PYICEBERG_CATALOG__LAKE__CREDENTIAL": "ada:secret",
        "pyiceberg_catalog__lake__uri": "https://catalog.example.com/iceberg",
        "PYICEBERG_CATALOG__LAKE__S3__ENDPOINT": "http://s3",
        "PYICEBERG_CATALOG__LAKE__PY_IO_IMPL": "x",
        "PYICEBERG_CATALOG__OTHER__URI": "https://other.example.com",
        "PYICEBERG_MAX_WORKERS": "2",
        "Pyiceberg_Default_Catalog": "other",
    }
    variables = made(tmp_path, **inherited).variables

    assert {name for name in inherited if variables.get(name, "") is None} == {
        "PYICEBERG_CATALOG__LAKE__CREDENTIAL",
        "pyiceberg_catalog__lake__uri",
        "Pyiceberg_Default_Catalog",
    }


def test_the_files_are_private_and_replaced(tmp_path: Path) -> None:
    made(tmp_path)
    old = tmp_path / "run/spark/old"
    old.touch()
    (tmp_path / "run/log").touch()
    made(tmp_path)

    modes = {
        str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / "run", *(tmp_path / "run").rglob("*"))
    }
    del modes["run/log"]
    assert modes == {
        "run": 0o700,
        "run/duckdb.sql": 0o600,
        "run/spark": 0o700,
        "run/spark/spark-defaults.conf": 0o600,
    }


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "run").touch()

    with pytest.raises(StoreUnavailable, match=r"run cannot be created: "):
        made(tmp_path)


@pytest.mark.parametrize("name", ["", "a.b", "1x", "my lake", "x'y", "spark_catalog", "temp"])
def test_names_that_no_catalog_can_have_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"^run\.catalog: .*Hint: "):
        made(tmp_path, access=ACCESS._replace(catalog=name))
    assert not (tmp_path / "run").exists()
