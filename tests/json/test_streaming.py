"""Listings print records as they are read: memory stays constant, and readable records are
printed before an error."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from nessie_cli import CommitMeta, Delete, Put, create
from nessie_cli.model import UDF, ContentKey, ReferenceType
from nessie_cli.store.opening import open_store
from nessie_cli.store.records import Move
from tests.command.process import Nessie
from tests.store.raw import raw
from tests.store.samples import a_write, write

pytestmark = pytest.mark.slow

MANY = 60_000
REFERENCES = 40_000
GROWTH = 24 << 20
"""Additional memory of a long listing over a short one: caches with limits.

Keeping the records would take twice as much.
"""


class Measured(NamedTuple):
    code: int
    lines: int
    peak: int
    """In bytes."""


MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stderr=subprocess.DEVNULL).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
"""
"""A small process in between, because a process's peak includes the memory of its parent.
"""


def run(nessie: Nessie, *args: str) -> Measured:
    """Runs the command in its own process, and counts its lines as they arrive."""
    command = [sys.executable, "-S", "-c", MEASURE, *nessie.command(*args)]
    process = subprocess.Popen(
        command,
        cwd=nessie.folder,
        env=nessie.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process, process.stdout as out:
        lines = sum(chunk.count(b"\n") for chunk in iter(lambda: out.read(1 << 16), b""))
        code, kilobytes = map(int, process.stderr.read().split())
    return Measured(code, lines, kilobytes << 10)


def _keys(number: int) -> Iterator[ContentKey]:
    return (ContentKey((f"t{n:06}",)) for n in range(number))


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Nessie:
    """A repository with many keys on `main`, none on `empty`, and many branches."""
    folder = tmp_path_factory.mktemp("wide")
    (folder / ".nessie").mkdir()
    (folder / ".nessie/HEAD").write_text("main\n")
    url = str(folder / ".nessie/store.sqlite")
    with create(url) as repository:
        repository.create_reference(
            ReferenceType.BRANCH, "empty", repository.reference("main").hash
        )
        repository.commit(
            "main", (Put(key, UDF(sql_text="select 1")) for key in _keys(MANY)), CommitMeta("many")
        )
        target = bytes.fromhex(repository.reference("main").hash)
    store = open_store(url)
    moves = [
        Move(
            f"b{n:06}",
            ReferenceType.BRANCH,
            None,
            target,
            0,
            "Ann",
            "create",
            "a message " * 20,
            f"{n:016x}",
        )
        for n in range(REFERENCES)
    ]
    write(store, a_write(moves=moves))
    store.close()
    return Nessie(folder, folder, None)


@pytest.mark.parametrize(
    ("listing", "few"),
    [
        (("content", "list"), ("content", "list", "t000001")),
        (("diff", "empty", "main"), ("diff", "empty", "main", "--", "t000001")),
        (("reflog", "--all"), ("reflog", "--all", "-n", "1")),
    ],
    ids=["content list", "diff", "reflog"],
)
def test_memory_does_not_grow_with_a_listing(wide, listing, few):
    whole, part = run(wide, *listing, "--jsonl"), run(wide, *few, "--jsonl")

    assert (whole.code, part.code) == (0, 0)
    assert whole.lines >= REFERENCES > part.lines
    assert whole.peak - part.peak < GROWTH


def test_a_batch_of_long_operations_is_in_memory_twice(tmp_path):
    """As text and as JSON, and the JSON of an operation is freed once it is decoded."""
    (tmp_path / ".nessie").mkdir()
    (tmp_path / ".nessie/HEAD").write_text("main\n")
    create(str(tmp_path / ".nessie/store.sqlite")).close()
    nessie = Nessie(tmp_path, tmp_path, None)
    contents = [{"type": "UDF", "sqlText": f"{number:02000}"} for number in range(30_000)]
    operations = [
        {"type": "PUT", "key": {"elements": [f"t{number:06}"]}, "content": content}
        for number, content in enumerate(contents)
    ]
    (tmp_path / "batch.json").write_text(json.dumps(operations))
    other = operations[0] | {"key": {"elements": ["other"]}}
    (tmp_path / "one.json").write_text(json.dumps([other]))

    one, whole = (
        run(nessie, "commit", "--batch", name, "-m", "m") for name in ("one.json", "batch.json")
    )

    assert (one.code, whole.code) == (0, 0)
    size = (tmp_path / "batch.json").stat().st_size
    assert whole.peak - one.peak < 2.8 * size


def test_the_first_line_is_printed_before_the_last_is_read(wide):
    process = subprocess.Popen(
        wide.command("content", "list", "--jsonl"),
        cwd=wide.folder,
        env=wide.environment,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None

    first = json.loads(process.stdout.readline())
    peak = next(
        line
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines()
        if line.startswith("VmHWM")
    )
    still_running = process.poll() is None
    process.stdout.close()

    assert first["name"] == {"elements": ["t000000"]}
    assert still_running
    assert int(peak.split()[1]) < 100_000
    assert process.wait() == 141


# -- damaged records come after readable ones ----------------------------------------------------
COMMITS = 40
KEYS = 4_000


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Nessie:
    """A store whose first commit and last content are damaged; `old` is a branch at the first
    commit."""
    folder = tmp_path_factory.mktemp("broken")
    (folder / ".nessie").mkdir()
    (folder / ".nessie/HEAD").write_text("main\n")
    path = folder / ".nessie/store.sqlite"
    with create(str(path)) as repository:
        key = ContentKey(("k",))
        repository.commit("main", [Put(key, UDF(sql_text="0"))], CommitMeta("0"))
        first = repository.reference("main").hash
        repository.create_reference(ReferenceType.BRANCH, "old", first)
        for number in range(1, COMMITS):
            before = repository.content("main", key)
            repository.commit(
                "main",
                [Put(key, UDF(id=before.id, sql_text=str(number)), before)],
                CommitMeta(str(number)),
            )
        repository.commit("main", [Delete(key)], CommitMeta("gone"))
        repository.create_reference(ReferenceType.BRANCH, "wide", repository.reference("main").hash)
        repository.commit(
            "wide",
            (Put(key, UDF(sql_text=f"select {n}")) for n, key in enumerate(_keys(KEYS))),
            CommitMeta("many"),
        )
        last = next(
            entry
            for entry in repository.entries("wide")
            if entry.key.elements == (f"t{KEYS - 1:06}",)
        ).value_hash
    with raw(path) as connection:
        for broken in (first, last):
            connection.execute(
                "UPDATE objects SET packed = zeroblob(length(packed)) WHERE substr(id, -32) = ?",
                (bytes.fromhex(broken),),
            )
            assert connection.changes() == 1
    return Nessie(folder, folder, None)


LISTINGS = {
    "log": (("log",), COMMITS),
    "log of a range": (("log", "old~1..main"), 0),
    "content list": (("content", "list", "--at", "wide"), KEYS // 2),
    "diff": (("diff", "main", "wide"), 0),
    "content history": (("content", "history", "k", "main~1"), COMMITS - 2),
    "branch": (("branch", "-v"), 1),
}
"""Listings that end at a damaged object, and the least number of records before it."""


@pytest.mark.parametrize("name", LISTINGS)
def test_readable_records_are_printed_before_the_error(broken, name):
    args, least = LISTINGS[name]

    outcome = broken(*args, "--jsonl")
    *records, last = map(json.loads, outcome.out.splitlines())

    assert outcome.code == 7
    assert last["error"]["errorCode"] == "DAMAGED_OBJECT"
    assert outcome.err.splitlines()[0] == f"nessie: {last['error']['message']}"
    assert len(records) >= least
    assert all("error" not in record for record in records)


@pytest.mark.parametrize("name", LISTINGS)
def test_a_document_with_an_error_is_complete(broken, name):
    args, _ = LISTINGS[name]

    outcome = broken(*args, "--json")

    assert outcome.code == 7
    assert outcome.error["errorCode"] == "DAMAGED_OBJECT"
