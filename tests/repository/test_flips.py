"""Damage of a store file that breaks or changes a read is reported by fsck.

Bits are flipped, pages are zeroed, exchanged, old or cut off, with and without SQLite's log file.

`NESSIE_TEST_FLIPS=2000` flips that many bits over the whole file, and a quarter of that number in
the small tables and indexes. `NESSIE_TEST_PAGES=400` damages that many pages.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from pathlib import Path

import pytest
from msgspec import Struct

from nessie_cli.errors import NessieError
from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import connect, create
from tests.repository.vocabulary import Catalog, key, put, table, write_history
from tests.store.raw import raw

pytestmark = pytest.mark.slow

FLIPS = int(os.environ.get("NESSIE_TEST_FLIPS", "100"))
PAGES = int(os.environ.get("NESSIE_TEST_PAGES", "28"))
PAGE = 4096
FRAME = PAGE + 24
"""A page in the log, with its header."""
LOG_HEADER = 32
YEARS_LATER = (time.time_ns() // 1000) + 1000 * 86_400 * 10**6
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


class Files(Struct, frozen=True):
    """A store file, and SQLite's log file beside it (empty: none)."""

    main: bytes
    log: bytes = b""

    def write(self, path: Path) -> None:
        for leftover in path.parent.iterdir():
            leftover.unlink()
        path.write_bytes(self.main)
        if self.log:
            path.with_name(f"{path.name}-wal").write_bytes(self.log)


class Base(Struct, frozen=True):
    """The files of an intact store, now and earlier, and every state that its log can show."""

    files: Files
    earlier: Files
    states: list[dict[str, object]]


def files_of(path: Path) -> Files:
    log = path.with_name(f"{path.name}-wal")
    return Files(path.read_bytes(), log.read_bytes() if log.exists() else b"")


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Base]:
    """One store with a log file, and the same store after it was closed."""
    folder = tmp_path_factory.mktemp("flips")
    path = folder / "sound.sqlite"
    with create(str(path), who="ann") as repository:
        catalog = Catalog(repository)
        write_history(catalog)
        add(catalog, range(8))
        repository.put_setting("protect.v1", "no-rewind")
    earlier = files_of(path)
    with connect(str(path), who="ann") as repository:
        add(Catalog(repository), range(8, 12))
        repository.put_setting("protect.v1", "no-delete")
        assert list(repository.check()) == []
        logged = files_of(path)
        assert logged.main == earlier.main
    closed = files_of(path)
    assert len(logged.log) > 10 * FRAME
    assert not closed.log
    (copies := folder / "copies").mkdir()
    states = []
    for end in range(LOG_HEADER, len(logged.log) + 1, FRAME):
        Files(logged.main, logged.log[:end]).write(copies / "store.sqlite")
        if (state := answers(copies / "store.sqlite")) not in states:
            states.append(state)
    closed.write(copies / "store.sqlite")
    assert answers(copies / "store.sqlite") == states[-1]
    return {
        "closed": Base(closed, earlier, states[-1:]),
        "with a log": Base(logged, earlier, states),
    }


def add(catalog: Catalog, numbers: Iterable[int]) -> None:
    for n in numbers:
        catalog.commit(
            "main",
            put("t077", table(1000 + n, catalog.id("main", "t077"))),
            request_id=f"request {n}",
        )
        catalog.branch(f"topic/{n}")


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


def lacks_requests_only(found: dict[str, object], wrong: list[str]) -> bool:
    """Whether nothing but rows of `requests` is missing, which nobody can see (security.md)."""
    return wrong == ["request"] and found["request"] == [None] * 3


Damage = Iterator[tuple[str, Files]]


def flips(base: Base, folder: Path, chance: random.Random) -> Damage:
    """Flips bits of the file's header, of the whole file, of the small tables, and of the log."""
    files, size = base.files, len(base.files.main)
    places = [*range(0, 800, 800 // min(FLIPS, 800) or 1)]
    places += [chance.randrange(8 * size) for _ in range(FLIPS)]
    path = folder / "pages.sqlite"
    files.write(path)
    with raw(path) as connection:
        pages = connection.execute("SELECT name, pageno, pgsize FROM dbstat").fetchall()
    aimed = [
        (number, length)
        for name, number, length in pages
        if name in SMALL and number * PAGE <= size
    ]
    for _ in range(FLIPS // 4):
        number, length = chance.choice(aimed)
        places.append(8 * length * (number - 1) + chance.randrange(8 * length))
    for bit in places:
        yield f"bit {bit}", Files(flipped(files.main, bit), files.log)
    for _ in range(FLIPS if files.log else 0):
        bit = chance.randrange(8 * len(files.log))
        yield f"bit {bit} of the log", Files(files.main, flipped(files.log, bit))


def flipped(data: bytes, bit: int) -> bytes:
    return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


def pages(base: Base, _: Path, chance: random.Random) -> Damage:
    """Damages pages of the file, and frames of the log."""
    files, old = base.files, base.earlier.main
    count, frames = len(files.main) // PAGE, len(files.log) // FRAME
    changed = [n for n in range(len(old) // PAGE) if page(old, n) != page(files.main, n)]
    for _ in range(PAGES):
        one, other = chance.sample(range(count), 2)
        yield f"page {one} is zero", Files(with_page(files.main, one, bytes(PAGE)), files.log)
        copied = with_page(files.main, one, page(files.main, other))
        yield f"page {one} is a copy of {other}", Files(copied, files.log)
        exchanged = with_page(copied, other, page(files.main, one))
        yield f"pages {one} and {other} are exchanged", Files(exchanged, files.log)
        end = chance.choice((one * PAGE, chance.randrange(len(files.main))))
        yield f"only {end} bytes are left", Files(files.main[:end], files.log)
        if changed:
            one = chance.choice(changed)
            stale = with_page(files.main, one, page(old, one))
            yield f"page {one} is old", Files(stale, files.log)
        if frames:
            end = chance.choice(
                (LOG_HEADER + chance.randrange(frames) * FRAME, chance.randrange(len(files.log)))
            )
            yield f"{end} bytes of the log are left", Files(files.main, files.log[:end])
            log = with_page(files.log, chance.randrange(len(files.log) // PAGE), bytes(PAGE))
            yield "a page of the log is zero", Files(files.main, log)


def page(data: bytes, number: int) -> bytes:
    return data[number * PAGE : (number + 1) * PAGE]


def with_page(data: bytes, number: int, content: bytes) -> bytes:
    return data[: number * PAGE] + content + data[(number + 1) * PAGE :]


@pytest.fixture
def no_hang() -> Iterator[None]:
    def interrupt(*_: object) -> None:
        raise TimeoutError(f"still busy after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def test_exchanged_pages_of_small_tables_are_reported(
    bases: dict[str, Base], tmp_path: Path
) -> None:
    """Each pair, also with tables that are empty."""
    base, path = bases["closed"], tmp_path / "store.sqlite"
    base.files.write(path)
    with raw(path) as connection:
        roots = connection.execute(
            "SELECT rootpage - 1 FROM sqlite_schema WHERE tbl_name NOT IN ('objects', 'object_index')"
        ).fetchall()
    for one, other in combinations([root for (root,) in roots], 2):
        data = with_page(base.files.main, one, page(base.files.main, other))
        exchanged = Files(with_page(data, other, page(base.files.main, one)))
        exchanged.write(path)
        found = answers(path)
        exchanged.write(path)
        assert found in base.states or problems(path), (one, other)


@pytest.mark.parametrize("damages", [flips, pages], ids=lambda one: one.__name__)
@pytest.mark.parametrize("name", ["closed", "with a log"])
def test_damage_that_breaks_or_changes_a_read_is_reported(
    bases: dict[str, Base],
    tmp_path: Path,
    no_hang: None,
    name: str,
    damages: Callable[[Base, Path, random.Random], Damage],
) -> None:
    """A log that ends early shows an earlier state, which is as intact as the newest one."""
    base = bases[name]
    path = tmp_path / "store.sqlite"
    seed = random.Random().randrange(2**32)
    print("seed", seed)
    tried = failed = changed = 0
    for damage, files in damages(base, tmp_path, random.Random(seed)):
        signal.alarm(SECONDS)
        files.write(path)
        found = answers(path)
        files.write(path)
        reported = problems(path)
        signal.alarm(0)
        tried += 1
        if found in base.states:
            continue
        truth = base.states[-1]
        wrong = [read for read in READS if found[read] != truth[read]]
        errors = [read for read in wrong if isinstance(found[read], NessieError)]
        assert reported or lacks_requests_only(found, wrong), (damage, wrong)
        failed += bool(errors)
        changed += wrong != errors
    print(f"{tried} damages: in {failed} cases a read failed, in {changed} an answer changed")
    assert failed


@pytest.mark.parametrize("name", ["closed", "with a log"])
def test_maintenance_of_a_damaged_store_changes_no_answer(
    bases: dict[str, Base], tmp_path: Path, no_hang: None, name: str
) -> None:
    """It fails, or deletes nothing that a read needs. All entries of the reflog have expired."""
    base = bases[name]
    path = tmp_path / "store.sqlite"
    seed = random.Random().randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    damages = [*flips(base, tmp_path, chance), *pages(base, tmp_path, chance)]
    refused = 0
    for damage, files in chance.sample(damages, PAGES):
        signal.alarm(SECONDS)
        files.write(path)
        before = answers(path)
        try:
            with connect(str(path), clock=lambda: YEARS_LATER) as repository:
                repository.maintain()
        except NessieError:
            refused += 1
        after = answers(path)
        signal.alarm(0)
        for read in READS.keys() - {"reflog", "request"}:
            if not isinstance(before[read], NessieError):
                assert after[read] == before[read], (damage, read)
    print(f"{refused} of {PAGES} refused")
    assert refused


@pytest.mark.parametrize("commits", [1, 12])
def test_an_old_log_over_a_newer_file_is_reported(
    bases: dict[str, Base], tmp_path: Path, no_hang: None, commits: int
) -> None:
    """Unless it has all pages that were changed later: then it shows an earlier state."""
    base, path = bases["with a log"], tmp_path / "store.sqlite"
    bases["closed"].files.write(path)
    with connect(str(path), who="ann") as repository:
        add(Catalog(repository), range(100, 100 + commits))
    newer = path.read_bytes()
    mixtures = 0
    for end in range(LOG_HEADER, len(base.files.log) + 1, FRAME):
        signal.alarm(SECONDS)
        mixed = Files(newer, base.files.log[:end])
        mixed.write(path)
        if answers(path) in base.states or end == LOG_HEADER:
            continue
        mixed.write(path)
        reported = problems(path)
        if not reported:
            # The log has no complete transaction.
            assert path.read_bytes() == newer
            continue
        mixtures += 1
        mixed.write(path)
        with pytest.raises(NessieError), connect(str(path)) as repository:
            repository.maintain(dry_run=True)
        signal.alarm(0)
    assert mixtures
