"""The threat model names the tests that show each promise."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "threat-model.md"
PROMISES = [
    line
    for line in PAGE.read_text().partition("## What the server promises")[2].splitlines()
    if line.startswith("| ") and not line.startswith("| caller |")
]


def test_the_page_has_promises():
    assert len(PROMISES) >= 9


@pytest.mark.parametrize("promise", PROMISES)
def test_each_promise_names_modules_that_have_tests(promise):
    paths = re.findall(r"`(tests/[^`]*)`", promise)
    assert paths
    for path in paths:
        assert re.search(r"^def test_", (ROOT / path).read_text(), re.MULTILINE), path
