"""Commits of a source in a temporary file, which are read in the order of writing."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Self

from nessie_cli.errors import InvalidInput
from nessie_cli.model import NO_ANCESTOR, LogEntry


class CommitSpool:
    """Commits by hash, in a file without a name, with about 300 bytes of memory for each.

    Sources list the newest commit first, but a commit is written after its parents.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `__exit__`
        self._offsets: dict[bytes, int] = {}
        self._parents: dict[bytes, tuple[bytes, ...]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._offsets)

    def __contains__(self, hash_: object) -> bool:
        return isinstance(hash_, str) and bytes.fromhex(hash_) in self._offsets

    def add(self, entry: LogEntry) -> None:
        """Adds a commit, or replaces the one with its hash."""
        id_ = bytes.fromhex(entry.hash)
        self._offsets[id_] = self._file.seek(0, 2)
        self._parents[id_] = tuple(
            bytes.fromhex(parent) for parent in entry.meta.parents if parent != NO_ANCESTOR
        )
        pickle.dump(entry, self._file, pickle.HIGHEST_PROTOCOL)

    def read(self, hash_: str) -> LogEntry:
        """Returns a commit."""
        self._file.seek(self._offsets[bytes.fromhex(hash_)])
        entry: LogEntry = pickle.load(self._file)  # noqa: S301 - only this process writes the file
        return entry

    def beginnings(self) -> list[str]:
        """Returns the hashes of the commits whose first parent is not here."""
        return [
            id_.hex()
            for id_, parents in self._parents.items()
            if not parents or parents[0] not in self._offsets
        ]

    def in_order(self, heads: Iterable[str]) -> Iterator[str]:
        """Yields the hashes of the heads and of all their ancestors here, each after its parents.

        Commits of one line of first parents are neighbours. Raises `InvalidInput` if a commit is
        its own ancestor.
        """
        done: set[bytes] = set()
        begun: set[bytes] = set()
        waiting = [bytes.fromhex(head) for head in heads if head != NO_ANCESTOR]
        waiting.reverse()
        while waiting:
            id_ = waiting[-1]
            if id_ in done or id_ not in self._offsets:
                waiting.pop()
            elif id_ in begun:
                waiting.pop()
                done.add(id_)
                yield id_.hex()
            else:
                begun.add(id_)
                parents = [
                    parent
                    for parent in self._parents[id_]
                    if parent in self._offsets and parent not in done
                ]
                if not begun.isdisjoint(parents):
                    raise InvalidInput(f"commit {id_.hex()} of the source is its own ancestor")
                # The first parent comes last, so its line is written just before this commit.
                waiting += parents[1:]
                waiting += parents[:1]
