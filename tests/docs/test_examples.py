"""Examples are run: those in docstrings of the package, in README.md and in docs/."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import nessie_cli
from nessie_cli.repository.base import Repository
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.repository.store_repository import StoreRepository

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"iceberg-rest.md", "spark-sql.md", "spark-data-source.md"}
"""Run by `tests/spark`, in the one Spark session that there is, and by `tests/engines`."""
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if page.name not in ELSEWHERE and ">>> " in page.read_text(encoding="utf-8")
]


def _modules_with_examples() -> Iterator[str]:
    package = Path(nessie_cli.__file__).parent
    for module in pkgutil.walk_packages([str(package)], "nessie_cli."):
        source = package.joinpath(*module.name.split(".")[1:])
        file = source / "__init__.py" if module.ispkg else source.with_suffix(".py")
        if ">>> " in file.read_text(encoding="utf-8"):
            yield module.name


MODULES = ["nessie_cli", *_modules_with_examples()]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_give_what_they_say(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried
    assert not failed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_in_pages_give_what_they_say(page: Path) -> None:
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert tried
    assert not failed


def test_the_page_about_the_python_api_shows_every_verb() -> None:
    page = (ROOT / "docs/reference/python-api.md").read_text(encoding="utf-8")
    classes = (ReadableRepository, Repository, StoreRepository)
    verbs = [name for each in classes for name in vars(each) if not name.startswith("_")]
    assert len(verbs) > 20
    assert [
        verb for verb in verbs if not re.search(rf"^(>>>|\.\.\.).*\.{verb}\b", page, re.MULTILINE)
    ] == []
