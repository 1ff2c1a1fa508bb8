"""Going back a hundred thousand commits must cost about as much as going back ten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from bench import corpus
from bench.report import Line, milliseconds, ratio_of_medians, seconds
from nessie_cli.model import ContentKey, IcebergTable, Put, ReferenceType
from nessie_cli.repository.local import LocalRepository
from nessie_cli.repository.opening import connect
from nessie_cli.store.sqlite.store import SQLiteStore

FAR, NEAR = 100_000, 10
STARTS = 40
"""Neighbouring commits to start at: the height decides how many jump pointers are followed."""

BLOCK = 2000
GOAL = 3.0


def measure(scratch: Path) -> Iterator[Line]:
    """Returns the medians over the starts.

    Measures a fresh repository, a long-lived one, and the walk alone with empty caches.
    """
    repository, store = _long_history(scratch / "history.sqlite")

    def opened(revision: str) -> Callable[[], object]:
        return lambda: _open_and_resolve(store.url, revision)

    def known(revision: str) -> Callable[[], object]:
        repository.resolve(revision)
        return lambda: repository.resolve(revision)

    def unknown(revision: str) -> Callable[[], object]:
        reader = corpus.forgetful(store)
        return lambda: reader.resolve(revision)

    with repository:
        for what, prepare in (
            ("opened for it", opened),
            ("read before", known),
            ("the walk alone, empty caches", unknown),
        ):
            pairs = [
                [seconds(prepare(f"start-{start}~{distance}")) for distance in (FAR, NEAR)]
                for start in range(STARTS)
            ]
            far, near = zip(*pairs, strict=True)
            made_of = f"{milliseconds(far)} / {milliseconds(near)}, medians of {STARTS} starts"
            yield Line(
                f"main~{FAR} : main~{NEAR}, {what}", ratio_of_medians(far, near), "x", GOAL, made_of
            )


def _open_and_resolve(url: str, revision: str) -> None:
    with connect(url) as repository:
        repository.resolve(revision)


def _long_history(path: Path) -> tuple[LocalRepository, SQLiteStore]:
    """Writes commits of one table, many per transaction, and branches at the newest ones."""
    corpus.load(path, 1)
    repository, store = corpus.open_repository(path)
    key = ContentKey(("events",))
    content = repository.commit(
        "main",
        [Put(key, IcebergTable(metadata_location="s3://lake/events/0"))],
        corpus.meta("create"),
    )
    content_id = content.added[key]
    total = FAR + STARTS
    for first in range(0, total, BLOCK):
        with corpus.without_waiting(store):
            for number in range(first, min(first + BLOCK, total)):
                table = IcebergTable(
                    id=content_id, metadata_location=f"s3://lake/events/{number + 1}"
                )
                result = repository.commit("main", [Put(key, table)], corpus.meta("load"))
                if number >= FAR:
                    repository.create_reference(
                        ReferenceType.BRANCH, f"start-{number - FAR}", result.reference.hash
                    )
    return repository, store
