"""Iceberg's REST Compatibility Kit, as released, against `nessie serve` and the reference
server.

`make test-iceberg` runs it. `kit.txt` has the outcome of each of its tests with the reference
server. Ours has the same outcomes, and also passes those of `MORE`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import pytest

from nessie_cli import ReferenceType, create
from tests.interop.machine import Machine, machine
from tests.interop.reference import reference
from tests.interop.suites import LAUNCHER, failed, reason
from tests.server.processes import started
from tests.store.postgres_server import new_url

__all__ = ["machine"]

PACKAGE = "org.apache.iceberg.rest"
CLASSES = ("RESTCompatibilityKitCatalogTests", "RESTCompatibilityKitViewCatalogTests")
OUTCOMES = Path(__file__).parent / "kit.txt"
BRANCH = "feature/rck"
OURS = {"requires-namespace-create": "true", "supports-names-with-dot": "true"}
"""Assumptions of the kit that hold for our server, and not for the reference server."""
MORE = (
    f"{CLASSES[0]}.tableCreationWithoutNamespace()",
    f"{CLASSES[0]}.testNamespaceWithDot()",
    f"{CLASSES[0]}.testTableNameWithDot()",
)
"""The tests that depend on these assumptions."""


@contextmanager
def served(store: str, folder: Path) -> Iterator[str]:
    """Yields the URL of `nessie serve` with a warehouse and a second branch."""
    with create(store) as repository:
        main = repository.reference("main")
        repository.create_reference(ReferenceType.BRANCH, BRANCH, main.hash)
    # Some tests choose locations below /tmp.
    places = ["--warehouse", f"kit=file:{folder}/warehouse", "--allow-location", "file:/tmp"]
    with started("--store", store, *places) as (_, url):
        yield url


class Outcomes(NamedTuple):
    """The outcome of each test of the kit by its name, and the reasons of failures."""

    ended: dict[str, str]
    failures: list[str]


def outcomes(machine: Machine, uri: str, folder: Path, **more: str) -> Outcomes:
    """Runs the kit. `more` are settings of it."""
    given = {"uri": uri, "warehouse": "kit", **more}
    # Gradle strips the prefix of some settings and keeps that of others.
    settings = [
        f"-D{prefix}{name}={value}" for name, value in given.items() for prefix in ("", "rck.")
    ]
    chosen = [f"--select-class={PACKAGE}.{name}" for name in CLASSES]
    launch = [LAUNCHER, "execute", "--include-engine=junit-jupiter", *chosen]
    # An engine of Nessie's tests would select all tests for itself.
    arguments = machine.without("org.projectnessie.nessie").run(
        *settings, "-Drck.local=false", *launch, f"--reports-dir={folder}", "--details=none"
    )
    reports = list(folder.glob("TEST-*.xml"))
    assert reports, arguments
    cases = [case for path in reports for case in ET.parse(path).iter("testcase")]
    found = {
        f"{str(case.get('classname')).rpartition('.')[2]}.{case.get('name')}": case
        for case in cases
    }
    failures = [text for case in cases for text in failed(case)]
    return Outcomes({name: outcome(case) for name, case in found.items()}, failures)


def outcome(case: ET.Element) -> str:
    if any(True for _ in failed(case)):
        return "failed"
    skipped = case.find("skipped")
    if skipped is None:
        return "passed"
    return "aborted" if "AssumptionViolatedException" in reason(skipped) else "disabled"


def expected() -> dict[str, str]:
    """Returns the outcomes in `kit.txt`."""
    lines = OUTCOMES.read_text(encoding="utf-8").splitlines()
    return {name: ended for ended, _, name in (line.partition(" ") for line in lines)}


def report(found: Outcomes, title: str, record: Callable[[str, str], None]) -> None:
    counts = Counter(found.ended.values()).most_common()
    figures = ", ".join(f"{count} {ended}" for ended, count in counts)
    record(title, figures)
    if found.failures:
        pytest.fail("\n".join([*found.failures, f"{title}: {figures}"]), pytrace=False)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """The kind of a store, and the URL of a server over one."""
    folder = tmp_path_factory.mktemp("kit")
    if request.param == "sqlite":
        with served(f"sqlite:///{folder}/catalog.sqlite", folder) as url:
            yield request.param, url
    else:
        with new_url() as store, served(store, folder) as url:
            yield request.param, url


@pytest.mark.parametrize("branch", ["main", BRANCH])
def test_the_kit_with_our_server(
    branch: str,
    server: tuple[str, str],
    machine: Machine,
    tmp_path: Path,
    record_property: Callable[[str, str], None],
) -> None:
    store, url = server
    uri = f"{url}/iceberg/{branch.replace('/', '%2F')}"
    found = outcomes(machine, uri, tmp_path, **OURS)
    report(found, f"the compatibility kit on {branch}, {store}", record_property)
    assert found.ended == expected() | dict.fromkeys(MORE, "passed")


def test_the_kit_with_the_reference_server(
    machine: Machine, tmp_path: Path, record_property: Callable[[str, str], None]
) -> None:
    with reference(machine, tmp_path / "warehouse") as uri:
        found = outcomes(machine, uri, tmp_path)
    report(found, "the compatibility kit, reference server", record_property)
    assert found.ended == expected()
