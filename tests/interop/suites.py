"""Iceberg's Nessie tests and Nessie's REST tests, as released, against `nessie serve`.

`make test-original` runs them. The jars contain the tests; `java/` has the two classes that direct
them to the server. The original server has the same figures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import pytest

from tests.interop.machine import Machine, machine
from tests.server.processes import started

__all__ = ["machine"]

LAUNCHER = "org.junit.platform.console.ConsoleLauncher"


class Suite(NamedTuple):
    """Released tests, and the number of each outcome. None fails."""

    title: str
    chosen: str
    """The option of JUnit's launcher that selects them."""
    passed: int
    aborted: int
    """Tests that abort by an assumption about the abilities of a catalog."""
    disabled: int
    """Tests that their authors disabled, completely or for one version of the API."""


ICEBERG = Suite("Iceberg's Nessie tests", "--select-package=org.apache.iceberg.nessie", 456, 22, 2)
REST = Suite("Nessie's REST tests", "--select-class=TestRest", 188, 0, 143)


@pytest.fixture
def server() -> Iterator[str]:
    with started("--store", "memory:") as (_, url):
        yield url


@pytest.mark.parametrize("suite", [ICEBERG, REST], ids=["iceberg", "rest"])
def test_released(
    suite: Suite,
    machine: Machine,
    server: str,
    tmp_path: Path,
    record_property: Callable[[str, str], None],
) -> None:
    launch = [LAUNCHER, "execute", suite.chosen, f"--reports-dir={tmp_path}"]
    arguments = machine.run(
        f"-Dnessie.uri={server}/", *launch, "--details=none", "--disable-banner"
    )
    reports = [ET.parse(path) for path in tmp_path.glob("TEST-*.xml")]
    cases = [case for report in reports for case in report.iter("testcase")]
    failures = [found for case in cases for found in failed(case)]
    skipped = [text for case in cases for text in map(reason, case.iterfind("skipped"))]
    aborted = sum("AssumptionViolatedException" in text for text in skipped)
    ended = len(cases) - len(skipped) - len(failures), aborted, len(skipped) - aborted
    figures = "{} passed, {} aborted, {} disabled, {} failed".format(*ended, len(failures))
    record_property(f"{suite.title} against `nessie serve`", figures)
    if failures:
        pytest.fail("\n".join([*failures, f"{suite.title}: {figures}"]), pytrace=False)
    assert ended == (suite.passed, suite.aborted, suite.disabled), arguments


def failed(case: ET.Element) -> Iterator[str]:
    """Yields the name of a test that failed, with its version of the API and the reason."""
    for fault in [*case.iterfind("failure"), *case.iterfind("error")]:
        version = re.search(r"nessie-api:(\w+)", case.findtext("system-out") or "")
        name = f"{case.get('classname')}.{case.get('name')} [{version[1] if version else '?'}]"
        yield "\n".join([name, *filter(is_relevant, reason(fault).splitlines()[:100])])


def is_relevant(line: str) -> bool:
    """Returns whether a line of a Java stack trace is about the failure itself."""
    frame = re.match(r"\s+(at|\.\.\.) ", line)
    return not frame or ("Test" in line and not re.search("junit|assertj", line))


def reason(element: ET.Element) -> str:
    return element.text or element.get("message") or ""
