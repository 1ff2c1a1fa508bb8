"""The command line on a real terminal."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from nessie_cli import (
    CommitMeta,
    ContentKey,
    Delete,
    IcebergTable,
    IcebergView,
    Namespace,
    Put,
    create,
)
from nessie_cli.model import ReferenceType
from tests.command.process import Forker, Nessie, fresh
from tests.command.terminal import Running, Shown

NASTY = (
    "\x1b[31mred\x1b[0m \x07bell \x9b2Jgone \r\n\tback \u202eesrever \x1b]0;title\x07 \x00nul"
    " \u200bzero"
)
WIDE = ("日本語", "テーブル・売上")
FAMILY = "👩\u200d👩\u200d👧 family"
COMBINED = "e\u0301\u0302te\u0301"


class Texts(NamedTuple):
    """Texts in the catalog: one that is used everywhere, a long name, and one whose width
    programs disagree about."""

    everywhere: str
    long: str
    odd: str


NASTY_TEXTS = Texts(NASTY, "a-name-that-goes-on-and-on-" * 8, FAMILY)
ORDINARY_TEXTS = Texts("nightly", "orders_last_quarter", "returns")


def fill(path: Path, texts: Texts) -> None:
    """Creates commits on two branches in conflict, with wide and combining characters and these
    texts in keys, messages, authors and contents."""
    keys = [
        ("db",),
        ("db", "orders"),
        ("db", WIDE[0]),
        ("db", *WIDE),
        ("db", texts.odd),
        ("db", COMBINED),
        ("db", texts.long),
        ("db", "to go"),
    ]
    with create(str(path), who=f"who {WIDE[0]}") as repository:

        def content(elements: tuple[str, ...], version: int):
            if elements in (keys[0], keys[2]):
                return Namespace(
                    elements=elements,
                    properties={"owner": f"{texts.everywhere} {WIDE[1]} {version}"},
                )
            location = f"s3://lake/warehouse/{'/'.join(elements)}/metadata/{texts.everywhere}/{version:05}-{version * 7919:032x}.metadata.json"
            if elements[-1] == COMBINED:
                return IcebergView(
                    metadata_location=location,
                    version_id=version,
                    schema_id=1,
                    sql_text=f"select '{texts.everywhere}'",
                    dialect="spark",
                )
            return IcebergTable(metadata_location=location, snapshot_id=version, schema_id=version)

        def commit(branch: str, version: int, changed: list[tuple[str, ...]], message: str) -> None:
            puts = []
            for elements in changed:
                key = ContentKey(elements)
                found = repository.contents(branch, [key]).get(key)
                new = content(elements, version)
                puts.append(Put(key, new.with_id(found.id), found) if found else Put(key, new))
            author = f"Ada {texts.everywhere} {WIDE[0]} <ada@example.org>"
            when = datetime(2026, 1, version, tzinfo=UTC)
            meta = CommitMeta(
                message,
                (author, "B"),
                (author,),
                author_time=when,
                properties={"run": (f"{texts.everywhere}{WIDE[1]}",)},
            )
            repository.commit(branch, puts, meta)

        commit(
            "main",
            1,
            keys,
            f"{texts.everywhere} {WIDE[1] * 12}\n\nbody {texts.everywhere}\n{FAMILY * 30}",
        )
        commit("main", 2, keys[1:2], COMBINED * 60)
        head = repository.reference("main").hash
        for name in (f"feature/{texts.long[::2]}", "dev"):
            repository.create_reference(ReferenceType.BRANCH, name, head)
        repository.create_reference(ReferenceType.TAG, "v1.0", head)
        commit("dev", 3, keys[1:], f"{texts.long} {'and so on ' * 30}")
        repository.commit("dev", [Delete(ContentKey(keys[-1]))], CommitMeta("less"))
        for number in range(4, 25):
            commit("main", number, keys[1:3], f"load {number} {WIDE[0]}")
        commit("main", 25, keys[-1:], "both have it")


def make(folder: Path, texts: Texts) -> Path:
    """Creates a workspace on such a catalog; its staged operations conflict with main."""
    nessie = fresh(folder, None)
    (nessie.folder / ".nessie").mkdir()
    fill(nessie.folder / ".nessie" / "store.sqlite", texts)
    nessie.ok("init")
    location = f"s3://mine/{WIDE[1] * 9}"
    nessie.ok(
        "content",
        "put",
        "db.orders",
        "--type",
        "iceberg-table",
        "--metadata-location",
        location,
        "--expected-hash",
        "dev",
    )
    return nessie.folder


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Texts], Path]:
    """The folders that `nasty` and `ordinary` copy; tests must not change them."""
    return functools.cache(lambda texts: make(tmp_path_factory.mktemp("made"), texts))


def _copy(made: Path, folder: Path, forker: Forker | None) -> Nessie:
    nessie = fresh(folder, forker)
    shutil.copytree(made, nessie.folder, dirs_exist_ok=True)
    return nessie


@pytest.fixture
def nasty(tmp_path: Path, made: Callable[[Texts], Path], forker: Forker) -> Nessie:
    """A workspace with hostile texts."""
    return _copy(made(NASTY_TEXTS), tmp_path, forker)


@pytest.fixture
def ordinary(tmp_path: Path, made: Callable[[Texts], Path], forker: Forker) -> Nessie:
    """A workspace with texts of ordinary length."""
    return _copy(made(ORDINARY_TEXTS), tmp_path, forker)


Starter = Callable[..., Running]


@pytest.fixture
def start(forker: Forker) -> Iterator[Starter]:
    """Starts `nessie ARGS...` on a terminal of this size."""
    running: list[Running] = []

    def started(
        nessie: Nessie, *args: str, width: int = 80, height: int = 24, **environment: str
    ) -> Running:
        found = Running(
            forker,
            args,
            nessie.folder,
            {**nessie.environment, **environment},
            width=width,
            height=height,
        )
        running.append(found)
        return found

    yield started
    for one in running:
        one.kill()


@pytest.fixture
def show(start: Starter) -> Callable[..., Shown]:
    """Runs `nessie ARGS...` on a terminal to its end."""
    return lambda nessie, *args, **more: start(nessie, *args, **more).end()
