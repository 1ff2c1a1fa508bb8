"""The private copy of Spark's configuration folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from nessie_cli.runs.environment.properties import read_properties
from nessie_cli.runs.environment.spark_folder import ICEBERG_EXTENSIONS
from tests.runs.environment.samples import BRANCH_URI, made

OWN = {
    "spark.sql.extensions": ICEBERG_EXTENSIONS,
    "spark.sql.defaultCatalog": "lake",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "rest",
    "spark.sql.catalog.lake.uri": BRANCH_URI,
    "spark.sql.catalog.lake.cache-enabled": "false",
    "spark.sql.catalog.lake.warehouse": "lake",
    "spark.sql.catalog.lake.token": "t0ken",
    "spark.sql.catalog.lake.token-refresh-enabled": "false",
    "spark.sql.catalog.lake.rest.auth.type": "oauth2",
    "spark.sql.catalog.lake.oauth2-server-uri": f"{BRANCH_URI}/v1/oauth/tokens",
}


def settings(tmp_path: Path) -> dict[str, str]:
    """Returns what Spark reads in a run."""
    text = (tmp_path / "run/spark/spark-defaults.conf").read_text()
    return {entry.key: entry.value for entry in read_properties(text)}


def user_folder(path: Path, defaults: str) -> Path:
    """Makes a configuration folder of the user."""
    path.mkdir(parents=True)
    (path / "spark-defaults.conf").write_text(defaults)
    return path


def test_without_a_folder_of_the_user_there_are_the_settings_of_the_run(tmp_path: Path) -> None:
    made(tmp_path, SPARK_CONF_DIR=str(tmp_path / "missing"))

    assert settings(tmp_path) == OWN


def test_settings_are_merged(tmp_path: Path) -> None:
    user = user_folder(
        tmp_path / "conf",
        "spark.driver.memory 4g\n"
        "spark.sql.extensions com.example.Own , com.example.Other\n"
        "spark.sql.defaultCatalog prod\n"
        "spark.sql.catalog.lake org.apache.iceberg.spark.SparkCatalog\n"
        "spark.sql.catalog.lake.catalog-impl org.apache.iceberg.nessie.NessieCatalog\n"
        "spark.sql.catalog.lake.ref main\n"
        "spark.sql.catalog.lake.s3.endpoint http://s3\n"
        "spark.sql.catalog.lake.io-impl org.apache.iceberg.aws.s3.S3FileIO\n"
        "spark.sql.catalog.lakehouse.uri https://other.example.com\n"
        "spark.jars.packages a:b:c,\\\n  d:e:f",
    )
    made(tmp_path, SPARK_CONF_DIR=str(user))

    assert settings(tmp_path) == {
        **OWN,
        "spark.driver.memory": "4g",
        "spark.sql.extensions": f"com.example.Own,com.example.Other,{ICEBERG_EXTENSIONS}",
        "spark.sql.catalog.lake.s3.endpoint": "http://s3",
        "spark.sql.catalog.lake.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "spark.sql.catalog.lakehouse.uri": "https://other.example.com",
        "spark.jars.packages": "a:b:c,d:e:f",
    }
    assert (user / "spark-defaults.conf").read_text().startswith("spark.driver.memory")


def test_a_last_line_that_continues_does_not_take_in_the_settings_of_the_run(
    tmp_path: Path,
) -> None:
    user = user_folder(tmp_path / "conf", "spark.driver.memory 4g\\")
    made(tmp_path, SPARK_CONF_DIR=str(user))

    assert settings(tmp_path) == {**OWN, "spark.driver.memory": "4g"}


def test_the_extension_is_there_once(tmp_path: Path) -> None:
    user = user_folder(tmp_path / "conf", f"spark.sql.extensions {ICEBERG_EXTENSIONS}")
    made(tmp_path, SPARK_CONF_DIR=str(user))

    assert settings(tmp_path) == OWN


def test_every_other_file_is_linked(tmp_path: Path) -> None:
    user = user_folder(tmp_path / "conf", "")
    (user / "log4j2.properties").write_text("rootLogger.level = warn\n")
    (user / "hive").mkdir()
    made(tmp_path, SPARK_CONF_DIR=str(user))
    private = tmp_path / "run/spark"

    assert {path.name: path.is_symlink() for path in private.iterdir()} == {
        "spark-defaults.conf": False,
        "log4j2.properties": True,
        "hive": True,
    }
    assert (private / "log4j2.properties").read_text() == "rootLogger.level = warn\n"
    # A second run inside of this one copies the copy, and deletes none of the user's files.
    made(tmp_path, SPARK_CONF_DIR=str(user))
    assert (user / "log4j2.properties").exists()


@pytest.mark.parametrize("home", ["spark", "venv"])
def test_the_folder_of_the_installation_is_found(tmp_path: Path, home: str) -> None:
    root = tmp_path / home
    inside = root if home == "spark" else root / "lib/python3.11/site-packages/pyspark"
    user_folder(inside / "conf", "spark.driver.memory 4g\n")
    (inside / "jars").mkdir()
    (root / "bin").mkdir()
    submit = root / "bin/spark-submit"
    submit.write_text("#!/bin/sh\n")
    submit.chmod(0o755)

    made(tmp_path, ["spark-submit", "x"], PATH=str(root / "bin"))
    assert settings(tmp_path)["spark.driver.memory"] == "4g"
    made(tmp_path, [str(submit), "x"])
    assert settings(tmp_path)["spark.driver.memory"] == "4g"
    made(tmp_path, SPARK_HOME=str(inside))
    assert settings(tmp_path)["spark.driver.memory"] == "4g"
    made(tmp_path)
    assert settings(tmp_path) == OWN


def test_a_script_of_the_user_cannot_replace_the_folder(tmp_path: Path) -> None:
    import subprocess

    user = user_folder(tmp_path / "a user's conf", "")
    (user / "spark-env.sh").write_text('SPARK_CONF_DIR=/etc/spark/conf\nOWN="set"\n')
    made(tmp_path, SPARK_CONF_DIR=str(user))
    script = tmp_path / "run/spark/spark-env.sh"

    out = subprocess.run(
        ["bash", "-c", f"set -a; . {script}; env"],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert f"SPARK_CONF_DIR={tmp_path}/run/spark" in out
    assert "OWN=set" in out
