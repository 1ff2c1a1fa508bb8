"""A catalog as a file and behind a server, and a runner for the scripts of
docs/guides/ci.md."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from nessie_cli import (
    CommitMeta,
    ContentKey,
    IcebergTable,
    Namespace,
    Put,
    Repository,
    connect,
    create,
)
from tests.command.in_process import do_not_combine_tables
from tests.command.outcome import Outcome
from tests.command.process import Forker, run
from tests.server.processes import started

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/guides/ci.md").read_text(encoding="utf-8")
ORDERS = ContentKey.parse("sales.orders")


def blocks(language: str) -> list[str]:
    """Returns the fenced blocks of the page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


CHECKED_IN, COMPOSE, GITHUB, GITLAB = (yaml.safe_load(block) for block in blocks("yaml"))


class Runner:
    """A machine that runs scripts: a folder, an environment, and the programs in `bin`, such as
    `nessie` and `load-orders`."""

    def __init__(self, folder: Path, catalog: Mapping[str, str], forker: Forker) -> None:
        self.folder = folder / "work"
        self.programs = folder / "bin"
        for made in (self.folder, self.programs, folder / "home"):
            made.mkdir()
        self.environment = {
            "PATH": f"{self.programs}{os.pathsep}{os.defpath}",
            "HOME": str(folder / "home"),
            "LC_ALL": "C.UTF-8",
            **catalog,
        }
        do_not_combine_tables(folder / "home" / ".config")
        forker.write_program(self.programs / "nessie")
        self.loads()

    def program(self, path: Path, script: str) -> None:
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def loads(self, meanwhile: str = "true") -> None:
        """Defines the pipeline's own job: it loads a table, while another client may commit."""
        self.program(
            self.folder / "load-orders",
            f"{meanwhile}\necho '{ROOT}/tests/manual/table-metadata.json'",
        )

    def run(self, script: str, **environment: str) -> Outcome:
        """Runs a script as runners do: with bash, which stops at the first failure."""
        done = run(
            script,
            cwd=self.folder,
            env={**self.environment, **environment},
            program=("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"),
        )
        assert "Traceback" not in done.err, done.err
        return done


class Catalog(NamedTuple):
    """The address of the catalog for a pipeline, and a repository to inspect it."""

    environment: dict[str, str]
    store: str

    def look(self) -> Repository:
        return connect(self.store)

    def names(self) -> list[str]:
        with self.look() as repository:
            return sorted(reference.name for reference in repository.references())

    def table(self, reference: str) -> Any:
        with self.look() as repository:
            return repository.content(reference, ORDERS)


@pytest.fixture(params=["a file", "a server"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    """A catalog whose main has the table sales.orders."""
    store = str(tmp_path / "catalog.sqlite")
    with create(store) as repository:
        namespace, table = (
            Namespace(elements=("sales",)),
            IcebergTable(metadata_location="s3://lake/0.json", snapshot_id=0),
        )
        repository.commit(
            "main",
            [Put(ContentKey(("sales",)), namespace), Put(ORDERS, table)],
            CommitMeta("tables"),
        )
    if request.param == "a file":
        yield Catalog({"NESSIE_STORE": store}, store)
        return
    with started("--store", store) as (_, url):
        yield Catalog({"NESSIE_ENDPOINT": f"{url}/api/v2"}, store)


@pytest.fixture
def runner(tmp_path: Path, catalog: Catalog, forker: Forker) -> Runner:
    """A machine that knows the catalog."""
    for program in ("jq", "curl"):
        if shutil.which(program, path=os.defpath) is None:
            pytest.skip(f"{program} is not installed")
    return Runner(tmp_path, catalog.environment, forker)


OTHER_CLIENT = (
    "NESSIE_AUTHOR=bob@example.org nessie content put sales.orders --ref main --snapshot-id 5 -m"
    " 'by hand' >/dev/null"
)
