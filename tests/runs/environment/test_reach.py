"""Commands that do not reach the branch are refused, or warned about by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from nessie_cli.errors import InvalidInput
from tests.runs.environment.samples import ACCESS, made, shared


@pytest.mark.parametrize(
    ("command", "inherited", "reason"),
    [
        ("spark-submit --properties-file p.conf x.py", {}, "spark-submit --properties-file"),
        ("spark-submit --properties-file=p.conf x.py", {}, "spark-submit --properties-file"),
        ("env A=b sh -c 'spark-sql --properties-file p.conf'", {}, "spark-sql --properties-file"),
        ("spark-submit --remote sc://spark:15002 x.py", {}, "spark-submit --remote"),
        ("spark-pipelines --remote sc://spark run", {}, "spark-pipelines --remote"),
        ("pyspark", {"SPARK_REMOTE": "sc://spark:15002"}, "SPARK_REMOTE"),
        ("python load.py", {"SPARK_REMOTE": "sc://spark:15002"}, "SPARK_REMOTE"),
        ("env SPARK_REMOTE=sc://spark python load.py", {}, "SPARK_REMOTE"),
        (
            "python load.py",
            {"PYSPARK_SUBMIT_ARGS": "--properties-file p.conf pyspark-shell"},
            "PYSPARK_SUBMIT_ARGS: --properties-file",
        ),
        ("spark-submit --deploy-mode cluster x.py", {}, "spark-submit --deploy-mode cluster"),
        ("spark-submit --conf spark.submit.deployMode=cluster x.py", {}, "--deploy-mode cluster"),
        (
            "spark-submit --conf spark.sql.catalog.lake.uri=http://x x.py",
            {},
            "spark-submit --conf sets spark.sql.catalog.lake.uri",
        ),
        ("spark-sql -e 'SELECT 1' -c spark.sql.catalog.lake=x", {}, "spark.sql.catalog.lake,"),
        ("spark-shell --conf spark.sql.defaultCatalog=prod", {}, "spark.sql.defaultCatalog=prod"),
        ("trino --execute 'SELECT 1'", {}, "trino does not reach"),
        ("beeline -u jdbc:hive2://x", {}, "beeline does not reach"),
        ("env -i python load.py", {}, "`env -i` removes its variables"),
        ("env SPARK_CONF_DIR=/etc/spark spark-submit x.py", {}, "it changes SPARK_CONF_DIR itself"),
        ("sh -c 'NESSIE_REF=main nessie log'", {}, "it changes NESSIE_REF itself"),
        ("env -u NESSIE_REF nessie log", {}, "it changes NESSIE_REF itself"),
    ],
)
def test_what_would_go_past_the_run_is_refused(
    tmp_path: Path, command: str, inherited: dict[str, str], reason: str
) -> None:
    import shlex

    with pytest.raises(InvalidInput) as refusal:
        made(tmp_path, shlex.split(command), **inherited)
    assert reason in refusal.value.message
    assert refusal.value.hint
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("command", "inherited"),
    [
        ("spark-submit --properties-file p.conf --load-spark-defaults x.py", {}),
        ("spark-submit load.py --properties-file p.conf --remote sc://x", {}),
        ("spark-submit --remote local[2] x.py", {}),
        ("python load.py", {"SPARK_REMOTE": "local"}),
        ("env -u SPARK_REMOTE python load.py", {"SPARK_REMOTE": "sc://spark"}),
        ("spark-pipelines run --full-refresh-all", {"SPARK_REMOTE": "sc://spark"}),
        ("spark-submit --conf spark.sql.catalog.lake.s3.endpoint=http://s3 x.py", {}),
        ("spark-submit --conf spark.sql.catalog.lakehouse.uri=http://x x.py", {}),
        ("spark-submit --conf spark.sql.defaultCatalog=lake x.py", {}),
        ("sh -c 'duckdb -init \"$NESSIE_RUN_DUCKDB\" -f load.sql'", {}),
        ("nessie log", {}),
        ("dbt build", {}),
    ],
)
def test_what_reaches_the_branch_is_silent(
    tmp_path: Path, command: str, inherited: dict[str, str]
) -> None:
    import shlex

    assert made(tmp_path, shlex.split(command), **inherited).warnings == ()


def test_settings_of_a_properties_file_are_checked(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/p.conf").write_text("spark.sql.catalog.lake.ref main\n")
    command = ["spark-submit", "--properties-file", "p.conf", "--load-spark-defaults", "x.py"]

    with pytest.raises(InvalidInput, match=r"^p\.conf sets spark\.sql\.catalog\.lake\.ref, "):
        made(tmp_path, command)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("catalog: prod\n", "spark.sql.defaultCatalog=prod"),
        ("configuration:\n  spark.sql.catalog.lake.uri: http://x\n", "catalog.lake.uri"),
        ('configuration:\n  "spark.sql.catalog.lake": "x"\n', "catalog.lake,"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--spec", "../spark-pipeline.yml")])
def test_the_specification_of_a_pipeline_is_checked(
    tmp_path: Path, text: str, reason: str, options: tuple[str, ...]
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "spark-pipeline.yml").write_text(f"name: x\nstorage: file:///x\n{text}")

    with pytest.raises(InvalidInput, match=r"spark-pipeline\.yml sets ") as refusal:
        made(tmp_path, ["spark-pipelines", "run", *options])
    assert reason in refusal.value.message


def test_a_cluster_reaches_a_shared_server(tmp_path: Path) -> None:
    command = ["spark-submit", "--deploy-mode", "cluster", "x.py"]

    assert made(tmp_path, command, shared()).warnings == ()


@pytest.mark.parametrize(
    ("command", "inherited", "warning"),
    [
        (["make"], {"SPARK_REMOTE": "sc://spark"}, "SPARK_REMOTE does not reach"),
        (["duckdb", "x.db"], {}, "NESSIE_RUN_DUCKDB"),
        (["docker", "run", "x"], {}, "docker starts programs without the environment"),
        (["sudo", "python", "x.py"], {}, "sudo starts programs without the environment"),
        (["sqlmesh", "plan"], {}, "SQLMesh's own state"),
        (["spark-pipelines", "run"], {}, "checkpoints"),
    ],
)
def test_commands_that_are_warned_about(
    tmp_path: Path, command: list[str], inherited: dict[str, str], warning: str
) -> None:
    (text,) = made(tmp_path, command, **inherited).warnings
    assert warning in text


def test_names_with_an_underscore_are_warned_about(tmp_path: Path) -> None:
    environment = made(tmp_path, access=ACCESS._replace(catalog="my_lake"))

    (text,) = environment.warnings
    assert "load_catalog('my_lake')" in text
    assert environment.variables["PYICEBERG_DEFAULT_CATALOG"] == "my-lake"


def test_other_catalogs_of_the_same_server_are_warned_about(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/spark-defaults.conf").write_text(
        "spark.sql.catalog.prod.uri https://catalog.example.com:443/iceberg\n"
        "spark.sql.catalog.lake.uri https://catalog.example.com/iceberg\n"
        "spark.sql.catalog.far.uri https://far.example.com/iceberg\n"
    )
    inherited = {
        "SPARK_CONF_DIR": str(tmp_path / "conf"),
        "PYICEBERG_CATALOG__CRM__URI": "https://catalog.example.com/iceberg/main",
        "PYICEBERG_CATALOG__LAKE__URI": "https://catalog.example.com/iceberg/main",
    }
    warnings = made(tmp_path, ["python", "x.py"], shared(), **inherited).warnings

    assert [text.split(" is ")[0] for text in warnings] == ["the catalog crm", "the catalog prod"]


def test_another_default_catalog_of_spark_is_warned_about(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/spark-defaults.conf").write_text("spark.sql.defaultCatalog prod\n")
    (text,) = made(
        tmp_path, ["spark-submit", "x.py"], SPARK_CONF_DIR=str(tmp_path / "conf")
    ).warnings

    assert "default catalog prod" in text


@pytest.mark.parametrize(
    ("words", "defaults", "jar", "warns"),
    [
        ([], "", None, True),
        ([], "", "iceberg-spark-runtime-4.1_2.13-1.11.0.jar", False),
        (
            ["--packages", "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"],
            "",
            None,
            False,
        ),
        (["--conf", "spark.jars=/x/iceberg.jar"], "", None, False),
        ([], "spark.jars.packages org.apache.iceberg:x:1\n", None, False),
    ],
)
def test_a_spark_without_iceberg_is_warned_about(
    tmp_path: Path, words: list[str], defaults: str, jar: str | None, warns: bool
) -> None:
    home = tmp_path / "spark"
    for name in ("jars", "conf"):
        (home / name).mkdir(parents=True)
    (home / "conf/spark-defaults.conf").write_text(defaults)
    if jar:
        (home / "jars" / jar).touch()
    warnings = made(tmp_path, ["spark-submit", *words, "x.py"], SPARK_HOME=str(home)).warnings

    assert [("Iceberg runtime" in text) for text in warnings] == [True] * warns
