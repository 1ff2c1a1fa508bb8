"""Where the manifests of a table are read and encoded: in this process, or on an engine.

If one side rewrote all files of a table, its manifests are most of the work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct

from nessie_cli.iceberg.combination.states import Row

Read = Callable[[str], bytes]
"""Returns the bytes of a file. Raises `InvalidInput` or `StoreUnavailable`."""
MOST_REMEMBERED = 64 * 2**20
"""The most bytes of manifests that stay in memory. A manifest of 100 files has about 30 kB."""


class ManifestJob(Struct, frozen=True):
    """Work on one manifest. `listed` is its row in the manifest list."""

    listed: Row

    @property
    def path(self) -> str:
        """The path of the manifest, as written."""
        return str(self.listed["manifest_path"])

    @property
    def size(self) -> int:
        """The size of the manifest in bytes."""
        return int(self.listed.get("manifest_length") or 0)


J = TypeVar("J", bound=ManifestJob)
R = TypeVar("R")


class Engine(ABC):
    """Performs jobs. The results do not depend on the engine."""

    @abstractmethod
    def map(self, work: Callable[[Read, J], R], jobs: Sequence[J]) -> Iterator[R]:
        """Yields the results of `work` for each job, in order.

        `work`, the jobs and the results can be pickled. Raises the errors of `work`.
        """


class LocalEngine(Engine):
    """Performs jobs one after another in this process.

    Most manifests that a merge rewrites are read a second time, so it remembers their bytes.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._remembered: dict[str, bytes] = {}
        self._size = 0

    def map(self, work: Callable[[Read, J], R], jobs: Sequence[J]) -> Iterator[R]:
        """Yields the results. See `Engine.map`."""
        for job in jobs:
            yield work(self._bytes, job)

    def _bytes(self, path: str) -> bytes:
        data = self._remembered.get(path)
        if data is None:
            data = self._read(path)
            if self._size + len(data) <= MOST_REMEMBERED:
                self._size += len(data)
                self._remembered[path] = data
        return data
