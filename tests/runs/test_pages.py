"""The pages about runs: their programs and commands, on embedded stores."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from documents import console
from nessie_cli import connect
from tests.runs.environment.samples import ACCESS, made

GUIDES = Path(__file__).parents[2] / "docs/guides"
PAGES = sorted(GUIDES.glob("run-*.md"))
PATIENCE = 240
ORDERS = """
import os
import pyarrow as pa
from pyiceberg.catalog import load_catalog

rows = pa.table({"id": [1, 2], "cents": [1000, int(os.environ.get("CENTS", "2550"))]})
catalog = load_catalog()
catalog.create_namespace_if_not_exists("shop")
catalog.create_table_if_not_exists("shop.orders", rows.schema).overwrite(rows)
"""
NEGATIVE = "SELECT * FROM lake.shop.orders WHERE cents < 0"


def text_of(page: str) -> str:
    return (GUIDES / page).read_text(encoding="utf-8")


def write_files(page: str, folder: Path) -> None:
    """Writes the files that a page shows."""
    for block in console.blocks(text_of(page)):
        if block.word == "file":
            path = folder / block.value
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")


def commands(page: str) -> Iterator[str]:
    """Yields the commands of a page that a test runs."""
    for block in console.blocks(text_of(page)):
        if block.value.startswith("tested elsewhere"):
            yield from (line[2:] for line in block.text.splitlines() if line.startswith("$ "))


def shell(script: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs a script whose `nessie` and `python` are those of the tests."""
    programs = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", **more}
    return subprocess.run(
        ["bash", "-euc", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A workspace with a program and a check."""
    folder = tmp_path / "lake"
    (folder / "checks").mkdir(parents=True)
    (folder / "load.py").write_text(ORDERS)
    (folder / "checks/orders.sql").write_text(NEGATIVE)
    done = shell("nessie init", folder)
    assert done.returncode == 0, done.stderr
    return folder


def log_of(folder: Path, ref: str = "main") -> list[str]:
    with connect(f"sqlite:///{folder}/.nessie/store.sqlite") as repository:
        return [entry.meta.message for entry in repository.log(ref)]


def tags_of(folder: Path) -> list[str]:
    with connect(f"sqlite:///{folder}/.nessie/store.sqlite") as repository:
        return [ref.name for ref in repository.references() if not ref.name.startswith("main")]


def test_the_functions_for_orchestrators(lake: Path) -> None:
    write_files("run-with-airflow-and-dagster.md", lake)
    store = {
        "NESSIE_STORE": f"sqlite:///{lake}/.nessie/store.sqlite",
        "LAKE_WAREHOUSE": str(lake / "warehouse"),
    }
    begun = shell("python -c 'import loads; loads.load_orders(\"nightly\")'", lake, **store)
    assert begun.returncode == 0, begun.stderr
    assert log_of(lake) == []
    for _ in range(2):
        done = shell("python -c 'import loads; loads.publish(\"nightly\")'", lake, **store)
        assert done.returncode == 0, done.stderr
        assert len(log_of(lake)) == 1


def test_the_commands_for_schedulers(lake: Path) -> None:
    script = list(commands("run-with-airflow-and-dagster.md"))
    assert [line.count("nessie run") for line in script] == [1] * 4
    # A repeated task joins the same run.
    again = ["FIRST=$RUN", script[0], '[ "$FIRST" = "$RUN" ]']
    done = shell(
        "\n".join([script[0], *again, *script[1:], script[-1]]), lake, KEY="scheduled__2026-11-30"
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert len(log_of(lake)) == 1


def steps(job: str) -> Mapping[str, str]:
    """Returns the scripts of a job of the workflow by the name of the step."""
    (block,) = re.findall(
        r"^```yaml\n(.*?)^```$", text_of("run-in-github-actions.md"), re.DOTALL | re.MULTILINE
    )
    return {
        step["name"]: step["run"]
        for step in yaml.safe_load(block)["jobs"][job]["steps"]
        if "run" in step
    }


def test_a_pull_request_shows_rows_and_publishes_nothing(lake: Path) -> None:
    done = shell(steps("try")["load"], lake)
    assert done.returncode == 0, (done.stdout, done.stderr)
    rows = (lake / "rows.md").read_text()
    assert "shop.orders" in rows
    assert "2550" in rows
    assert log_of(lake) == []


def test_a_failed_check_fails_the_job(lake: Path) -> None:
    done = shell(steps("try")["load"], lake, CENTS="-1")
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert "2 | -1" in done.stderr
    assert log_of(lake) == []


def test_the_nightly_job_publishes(lake: Path) -> None:
    done = shell(steps("publish")["load"], lake, TAG="nightly-1")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert len(log_of(lake)) == 1
    assert tags_of(lake) == ["nightly-1"]


def test_the_pages_name_variables_that_a_run_sets(tmp_path: Path) -> None:
    names = {
        name
        for page in PAGES
        for name in re.findall(r"(?:DBT_ENV_SECRET_)?NESSIE_RUN[A-Z_]*", page.read_text("utf-8"))
    }
    assert len(names) > 6
    assert names <= made(tmp_path, access=ACCESS).variables.keys()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_of_the_pages_can_be_parsed(page: Path, tmp_path: Path) -> None:
    write_files(page.name, tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    for path in files:
        if path.suffix == ".py":
            compile(path.read_text(), str(path), "exec")
        elif path.suffix in {".yml", ".yaml"}:
            assert yaml.safe_load(path.read_text())
