"""A flipped bit in a store file that breaks or changes a read is reported by fsck.

`NESSIE_TEST_FLIPS=2000` flips that many bits over the whole file, and a quarter of that number in
the small tables and indexes.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nessie_cli.errors import NessieError
from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import connect, create
from tests.repository.vocabulary import Catalog, key, put, table, write_history
from tests.store.raw import raw

pytestmark = pytest.mark.slow

FLIPS = int(os.environ.get("NESSIE_TEST_FLIPS", "160"))
SMALL = (
    "refs",
    "refs_by_kind",
    "reflog",
    "reflog_by_name",
    "requests",
    "settings",
    "object_index",
    "sqlite_autoindex_objects_1",
)
SECONDS = 30
"""Seconds; reading and verifying this store takes a few hundredths of one."""

READS: dict[str, Callable[[Repository], object]] = {
    "references": lambda r: list(r.references(metadata=True)),
    "one reference": lambda r: [r.reference(name).hash for name in ("main", "dev", "v1")],
    "reflog": lambda r: list(r.reflog()),
    "settings": lambda r: sorted(r.config().settings.items()),
    "log": lambda r: list(r.log("main", operations=True)),
    "log of a key": lambda r: list(r.log_of_key("main", key("t077"))),
    "contents": lambda r: list(r.entries("main", content=True)),
    "old contents": lambda r: list(r.entries("v1", content=True)),
    "one content": lambda r: r.content("main", key("t077")),
    "request": lambda r: [r.find_request(f"request {n}") for n in range(3)],
    "short hash": lambda r: r.resolve(r.reference("main").hash[:12]).hash,
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flips") / "sound.sqlite"
    with create(str(path), who="ann") as repository:
        catalog = Catalog(repository)
        write_history(catalog)
        for n in range(12):
            catalog.commit(
                "main",
                put("t077", table(1000 + n, catalog.id("main", "t077"))),
                request_id=f"request {n}",
            )
            catalog.branch(f"topic/{n}")
        repository.put_setting("protect.v1", "no-delete")
        assert list(repository.check()) == []
    return path


def answers(path: Path) -> dict[str, object]:
    """Returns the result or the error of each read."""
    found: dict[str, object] = {}
    try:
        repository = connect(str(path))
    except NessieError as error:
        return dict.fromkeys(READS, error)
    with repository:
        for name, read in READS.items():
            try:
                found[name] = read(repository)
            except NessieError as error:
                found[name] = error
    return found


def problems(path: Path) -> list[str]:
    """Returns the output of `nessie fsck`, or its error."""
    try:
        with connect(str(path)) as repository:
            return [problem.message for problem in repository.check()]
    except NessieError as error:
        return [error.message]


def bits(path: Path, chance: random.Random) -> Iterator[int]:
    """Returns positions of bits: the first page's header, some in the whole file, some in each
    small table and index."""
    size = path.stat().st_size
    yield from range(0, 800, 800 // min(FLIPS, 800) or 1)
    for _ in range(FLIPS):
        yield chance.randrange(8 * size)
    with raw(path) as connection:
        pages = connection.execute("SELECT name, pageno, pgsize FROM dbstat").fetchall()
    aimed = [(number, length) for name, number, length in pages if name in SMALL]
    for _ in range(FLIPS // 4):
        number, length = chance.choice(aimed)
        yield 8 * length * (number - 1) + chance.randrange(8 * length)


@pytest.fixture
def no_hang() -> Iterator[None]:
    def interrupt(*_: object) -> None:
        raise TimeoutError(f"still busy after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def test_a_flipped_bit_that_breaks_or_changes_a_read_is_reported(
    sound: Path, tmp_path: Path, no_hang: None
) -> None:
    truth, whole = answers(sound), sound.read_bytes()
    assert not [found for found in truth.values() if isinstance(found, NessieError)]
    seed = random.Random().randrange(2**32)
    print("seed", seed)
    tried = failed = changed = 0
    for bit in bits(sound, random.Random(seed)):
        path = tmp_path / f"{tried}.sqlite"
        path.write_bytes(
            whole[: bit // 8] + bytes([whole[bit // 8] ^ 1 << bit % 8]) + whole[bit // 8 + 1 :]
        )
        signal.alarm(SECONDS)
        found, reported = answers(path), problems(path)
        signal.alarm(0)
        errors = [name for name in READS if isinstance(found[name], NessieError)]
        wrong = [name for name in READS if found[name] != truth[name]]
        assert reported or not wrong, (bit, wrong)
        tried += 1
        failed += bool(errors)
        changed += bool(set(wrong) - set(errors))
        for leftover in tmp_path.iterdir():
            leftover.unlink()
    print(f"{tried} bits changed: in {failed} cases a read failed, in {changed} an answer changed")
    assert failed
