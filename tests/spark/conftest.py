"""Catalogs, and one Spark session for all tests of a process.

`make test-spark` runs the files of this folder in two processes, each with one Java: they often
wait for it, for servers and for other programs.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nessie_cli import create
from tests.repository.servers import Servers
from tests.repository.vocabulary import NS, Catalog, delete, namespace, put, view
from tests.spark.iceberg import settings
from tests.spark.sessions import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

if not find_spec("pyspark"):
    collect_ignore_glob = ["test_*.py"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # py4j's connections are closed by Python's garbage collector, with a warning for each.
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(
                pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")
            )
            item.add_marker(
                pytest.mark.filterwarnings(
                    "ignore:Exception ignored in."
                    " <socket.socket:pytest.PytestUnraisableExceptionWarning"
                )
            )


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from nessie_cli.spark import register

    # A task that fails is repeated once.
    with session(tmp_path_factory.mktemp("spark"), "local[2, 2]", **settings()) as running:
        register(running)
        yield running


@pytest.fixture(autouse=True)
def active_session(request: pytest.FixtureRequest) -> None:
    """A write is looked up in the active session, which another test may have replaced."""
    if "spark" in request.fixturenames:
        spark = request.getfixturevalue("spark")
        spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    running = Servers()
    yield running
    running.close()


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filled") / "catalog.sqlite"
    with create(f"sqlite:///{path}", who="ann") as repository:
        fill(Catalog(repository))
    return path


@pytest.fixture
def store(tmp_path: Path, filled: Path) -> str:
    """The URL of a catalog with branches that share history, a tag, all changes, a conflict."""
    assert [path.name for path in filled.parent.iterdir()] == [filled.name], (
        "closed, so all of it is in one file"
    )
    shutil.copy(filled, tmp_path / "catalog.sqlite")
    return f"sqlite:///{tmp_path}/catalog.sqlite"


def fill(catalog: Catalog) -> None:
    catalog.commit("main", put("db", namespace("db", owner="ann")), put("db.names", view(1)))
    catalog.write("main", {f"db.t{number}": number for number in range(20)})
    for number in range(30):
        catalog.write("main", {f"db.t{number % 7}": 100 + number})
    catalog.branch("dev")
    catalog.tag("v1", "main~3")
    catalog.write("dev", {"db.t1": 1000, "raw": NS, "raw.clicks": 1})
    catalog.rename("dev", "db.t2", "db.renamed")
    catalog.branch("late", "dev~1")
    catalog.write("late", {"raw.late": 5})
    catalog.write("main", {"db.t1": 2000})
    catalog.commit("main", delete("db.t19"))
