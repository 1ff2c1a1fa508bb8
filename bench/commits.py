"""Commits of one key into a large catalog, relative to a loop that writes the same rows.

Our commits run on one file, the bare loop on a copy made before them. The loop inserts the same
rows with the same bytes in the same transactions, with the same tables, indexes, pragmas and
durability; it computes nothing.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from bench import corpus
from bench.report import MILLI, Line, seconds
from nessie_cli.repository.local import LocalRepository

KEYS = 100_000
COMMITS = 1500
BLOCK = 50
GOAL = 0.6
SEED = 20_260_101

_OBJECT = "INSERT INTO objects (id, kind, written, packed) VALUES (?, ?, ?, ?)"
_REFLOG = """INSERT INTO reflog (number, name, kind, before, after, time, who, operation, message,
request_id, previous, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_INDEX = "INSERT INTO object_index (entry, object) VALUES (?, ?)"
_MOVE = "UPDATE refs SET target = ?, newest = ?, check_sum = ? WHERE name = ?"

Row = tuple[Any, ...]


class Written(NamedTuple):
    """The rows of one commit."""

    objects: list[Row]
    entries: list[Row]
    move: Row


def measure(scratch: Path) -> Iterator[Line]:
    """Returns the rate of our commits as a share of the bare loop's rate."""
    path = scratch / "commits.sqlite"
    corpus.load(path, KEYS)
    picker = random.Random(SEED)
    for what, goal, forget in (
        (f"one-key commit into {KEYS:,} keys : bare apsw loop (rates)", GOAL, False),
        ("the same, every commit with empty caches of ours", None, True),
    ):
        ours, bare = _race(path, scratch / "bare.sqlite", picker, forget=forget)
        made_of = (
            f"{MILLI * ours / COMMITS:.3f} ms, bare {MILLI * bare / COMMITS:.3f} ms per commit,"
            f" mean of {COMMITS}, interleaved in blocks of {BLOCK}"
        )
        yield Line(what, bare / ours, "x", goal, made_of, at_least=True)


def _race(path: Path, copy: Path, picker: random.Random, *, forget: bool) -> tuple[float, float]:
    """Returns the seconds of all our commits, and of the bare loop that writes the same rows."""
    shutil.copyfile(path, copy)
    repository, store = corpus.open_repository(path)
    loop = apsw.Connection(str(copy))
    watcher = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    loop.execute(
        "PRAGMA synchronous = FULL; PRAGMA cache_size = -16000; PRAGMA journal_size_limit ="
        " 67108864"
    ).fetchall()
    ours = bare = 0.0
    with repository:
        for _ in range(COMMITS // BLOCK):
            mark = mark_of(watcher)
            for _ in range(BLOCK):
                number = picker.randrange(KEYS)
                put = corpus.update(repository, "main", number, picker.randrange(1, 99_999))
                writer = corpus.forgetful(store) if forget else repository
                ours += seconds(_committing(writer, put))
            for written in written_since(watcher, mark):
                bare += seconds(writing(loop, written))
    loop.close()
    watcher.close()
    return ours, bare


def _committing(repository: LocalRepository, put: Any) -> Callable[[], object]:
    return lambda: repository.commit("main", [put], corpus.meta("nightly load of one table"))


def writing(loop: apsw.Connection, written: Written) -> Callable[[], object]:
    cursor = loop.cursor()
    move = written.move

    def write() -> None:
        cursor.execute("BEGIN IMMEDIATE")
        cursor.execute(_MOVE, (move[4], move[11], 0, move[1]))
        cursor.execute(_REFLOG, move)
        cursor.executemany(_OBJECT, written.objects)
        cursor.executemany(_INDEX, written.entries)
        cursor.execute("COMMIT")

    return write


def mark_of(watcher: apsw.Connection) -> tuple[int, int]:
    rows: list[tuple[int, int]] = watcher.execute(
        "SELECT (SELECT max(number) FROM objects), (SELECT max(number) FROM reflog)"
    ).fetchall()  # type: ignore[assignment]
    return rows[0]


def written_since(watcher: apsw.Connection, mark: tuple[int, int]) -> Iterator[Written]:
    """Returns the rows of each commit since the mark; the objects of a commit end with kind 3.

    Row numbers are the same in the copy, because the same rows were inserted in the same order.
    """
    moves = watcher.execute(
        "SELECT * FROM reflog WHERE number > ? ORDER BY number", (mark[1],)
    ).fetchall()
    index = watcher.execute(
        "SELECT entry, object FROM object_index WHERE object > ?", (mark[0],)
    ).fetchall()
    rows = iter(
        watcher.execute(
            "SELECT number, id, kind, written, packed FROM objects WHERE number > ? ORDER BY"
            " number",
            (mark[0],),
        ).fetchall()
    )
    for move in moves:
        objects: list[Row] = []
        while not objects or objects[-1][1] != 3:
            number, *row = next(rows)
            objects.append(tuple(row))
        yield Written(objects, [entry for entry in index if entry[1] == number], move)
    assert next(rows, None) is None
