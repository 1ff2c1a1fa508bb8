import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from nessie_cli import connect
from nessie_cli.iceberg.warehouses.warehouse import Warehouse, Warehouses
from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import create
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from tests.browser.chromium import Visitor, chromium
from tests.server.serving import serving


# Playwright leaves an event loop running in its thread, which other modules must not meet.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The Chromium of the tests of a module."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the example lake, in which the branches main and nightly conflict."""
    pytest.importorskip("pyiceberg", reason="the tables are written by PyIceberg")
    from nessie_cli.iceberg.example_lake import fill

    folder = tmp_path_factory.mktemp("lake")
    create(str(folder / "store.sqlite")).close()
    fill(str(folder / "store.sqlite"), folder / "warehouse", conflict=True)
    return folder


@pytest.fixture
def repository(lake: Path, tmp_path: Path) -> Iterator[Repository]:
    """A copy of the lake's store; its files are shared, and never change."""
    shutil.copy(lake / "store.sqlite", tmp_path)
    with connect(str(tmp_path / "store.sqlite")) as opened:
        yield opened


@pytest.fixture
def server(lake: Path, repository: Repository) -> Iterator[str]:
    """The URL of a server of the lake."""
    place = f"file://{lake / 'warehouse'}"
    warehouse = Warehouse(name="lake", location=place, allowed=(place,))
    parts = Parts(warehouses=Warehouses([warehouse]))
    with serving(app=application(repository, parts)) as url:
        yield url


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Visitor]]:
    """Opens windows on a server. The test fails if a console has an error in the end."""
    with ExitStack() as windows:
        visitors = []

        def opened(url: str, **options: Any) -> Visitor:
            visitor = Visitor(browser, url, **options)
            windows.callback(visitor.close)
            visitors.append(visitor)
            return visitor

        yield opened
        assert not [fault for visitor in visitors for fault in visitor.faults]


@pytest.fixture(params=[True, False], ids=["scripts", "no scripts"])
def visitor(request: pytest.FixtureRequest, visit: Callable[..., Visitor], server: str) -> Visitor:
    """A window on the lake, with and without scripts."""
    return visit(server, java_script_enabled=request.param)
