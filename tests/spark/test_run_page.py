"""The commands of docs/guides/run-with-spark.md, in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from nessie_cli import connect
from tests.runs.test_pages import commands, shell, text_of, write_files
from tests.spark.iceberg import COORDINATES, MISSING, RUNTIME
from tests.spark.sessions import SETTINGS, environment

PAGE = "run-with-spark.md"


@pytest.mark.skipif(not RUNTIME.path.exists(), reason=MISSING)
def test_the_commands_of_the_page(tmp_path: Path) -> None:
    write_files(PAGE, tmp_path)
    user = tmp_path / "conf"
    user.mkdir()
    # In place of the download of spark.jars.packages.
    settings = {**SETTINGS, "spark.master": "local[1]", "spark.jars": str(RUNTIME.path)}
    (user / "spark-defaults.conf").write_text(
        "\n".join(f"{key} {value}" for key, value in settings.items())
    )
    script = "\n".join(commands(PAGE))
    assert "-- spark-submit load.py" in script
    with environment(tmp_path):
        done = shell(script, tmp_path, SPARK_CONF_DIR=str(user))
    assert done.returncode == 0, (done.stdout, done.stderr[-6000:])
    with connect(f"sqlite:///{tmp_path}/.nessie/store.sqlite") as repository:
        assert repository.reference("loaded-1").hash == repository.reference("main").hash
        assert len(list(repository.log("main"))) == 1


def test_the_page_has_the_tested_version() -> None:
    assert f"spark.jars.packages  {COORDINATES}\n" in text_of(PAGE)
