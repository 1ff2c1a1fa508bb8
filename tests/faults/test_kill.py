"""Writers killed at random moments: acknowledged commits exist once, and nothing is
half-written."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Self

from nessie_cli import Repository, connect, create

KILLS = 210
AT_ONCE = 2
LONGEST = 0.04  # seconds between a writer's first acknowledgement and its end

# Python starts once, not once per kill: the killer has imported everything, has no open files, and
# forks each victim. It reads lines of (number of the victim, seconds until its death after its
# first output) and answers each with a line of the victim's output.
KILLER = """
import os, signal, sys, time
from itertools import count
from nessie_cli import CommitMeta, ContentKey, IcebergTable, Put, connect, create
import nessie_cli.store.sqlite.store, zstandard

def write(writer, say):
    # The message says which writer it was and how many commits it had made before.
    repository = connect(sys.argv[2])
    for number in count():
        keys = [ContentKey((f"table {writer} {number} {n}",)) for n in range(1 + number % 3)]
        puts = [Put(key, IcebergTable(metadata_location="s3://lake/" + "m" * 40)) for key in keys]
        say(repository.commit("main", puts, CommitMeta(f"{writer} {number}")).reference.hash)

def make(folder, say):
    # Every other victim has made a store before its time begins, however slow the machine is.
    for name in count():
        if name == int(folder) % 2:
            say("ready")
        create(f"{sys.argv[2]}/{folder}/{name}.sqlite").close()

def victim(number):
    output, into = os.pipe()
    child = os.fork()
    if not child:
        {"write": write, "make": make}[sys.argv[1]](number, lambda word: os.write(into, word.encode() + b" "))
    os.close(into)
    return child, open(output)

for line in sys.stdin:
    number, after = line.split()
    child, output = victim(number)
    said = output.read(1)
    time.sleep(float(after))
    os.kill(child, signal.SIGKILL)
    print(said + output.read(), flush=True)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
"""


class Killer:
    """Kills processes that run `act` at `place`."""

    def __init__(self, act: str, place: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", KILLER, act, place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def kill(self, number: int, after: float) -> list[str]:
        """Starts a process and kills it; returns its output."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{number} {after}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().split()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        self._process.communicate()
        assert failed or self._process.returncode == 0


def test_killed_writers_lose_no_acknowledged_commit(
    tmp_path: Path,
) -> None:
    url = str(tmp_path / "store.sqlite")
    create(url).close()
    seed = Random().randrange(2**32)
    print("seed", seed)
    random = Random(seed)
    times = [random.uniform(0, LONGEST) for _ in range(KILLS)]

    def some(writers: range) -> dict[int, list[str]]:
        with Killer("write", url) as killer, connect(url) as repository:
            return {writer: one(writer, killer, repository) for writer in writers}

    def one(writer: int, killer: Killer, repository: Repository) -> list[str]:
        said = killer.kill(writer, times[writer])
        # The store works at once: no lock is left, and the newest commits can be read.
        assert said[-1] in (entry.hash for entry in repository.log("main"))
        newest = repository.commit_at("main")
        assert repository.contents(
            newest.hash, [operation.key for operation in newest.operations or ()]
        )
        return said

    with ThreadPoolExecutor(AT_ONCE) as pool:
        parts = list(pool.map(some, [range(n, KILLS, AT_ONCE) for n in range(AT_ONCE)]))
    acknowledged = {writer: said for part in parts for writer, said in part.items()}
    assert len(acknowledged) == KILLS
    check_history(url, acknowledged)


def check_history(url: str, acknowledged: Mapping[int, Sequence[str]]) -> None:
    """Checks that a store has each acknowledged commit of each writer once, in order.

    A killed writer may have made one more commit, whose acknowledgement it could not print.
    """
    with connect(url) as repository:
        log = list(repository.log("main", operations=True))
        problems = list(repository.check())
        reflog = list(repository.reflog("main"))
        keys = sum(1 for _ in repository.entries("main"))
    assert problems == []
    assert len(reflog) == len(log) + 1
    assert keys == sum(len(entry.operations or ()) for entry in log)
    hashes = Counter(entry.hash for entry in log)
    assert all(
        hashes[hash_] == 1 for hashes_of_one in acknowledged.values() for hash_ in hashes_of_one
    )
    made: dict[str, list[tuple[int, str]]] = {}
    for entry in reversed(log):
        writer, number = entry.meta.message.split()
        made.setdefault(writer, []).append((int(number), entry.hash))
    assert {int(writer) for writer in made} >= acknowledged.keys()
    for writer, hashes_of_one in acknowledged.items():
        commits = made[str(writer)]
        assert [number for number, _ in commits] == list(range(len(commits)))
        assert [hash_ for _, hash_ in commits][: len(hashes_of_one)] == hashes_of_one
        assert len(commits) - len(hashes_of_one) in (0, 1)


def test_a_killed_creator_leaves_no_store_or_a_working_one(tmp_path: Path) -> None:
    seed = Random().randrange(2**32)
    print("seed", seed)
    random = Random(seed)
    with Killer("make", str(tmp_path)) as killer:
        for n in range(40):
            folder = tmp_path / str(n)
            folder.mkdir()
            assert killer.kill(n, random.uniform(0, 0.05)) == ["ready"]
            made = list(folder.glob("*.sqlite"))
            assert len(made) >= n % 2
            for path in made:
                with create(str(path)) as repository:
                    assert (
                        repository.reference("main").name
                        == repository.config().default_branch
                        == "main"
                    )
                    assert list(repository.check()) == []
