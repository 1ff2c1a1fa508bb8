"""On-disk cache of facts about commits: distance, whether merged, commit time.

A fact names commits by hash, so it is true forever and in every store. The cache may be deleted at
any time; damaged entries are ignored. A wrong fact can only make a deletion ask for one more
confirmation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Generic, Protocol, TypeVar
from zlib import crc32

from msgspec import MsgspecError, msgpack

from nessie_cli.kernel.forms import NO_COMMIT, Id

VERSION = 1
"""The version of the cached facts. Facts of other versions are ignored."""
FEW = 8_000
"""The number of facts up to which all are kept."""
MOST = 50_000
"""The maximum number of facts."""

_CHECK = 4
_encode = msgpack.Encoder().encode

T = TypeVar("T")


class FactCache(Protocol):
    """The files of the cache by name.

    An unreadable file is empty, and a failed write is ignored.
    """

    def read(self, name: str) -> bytes:
        """Returns the bytes that were last written under a name."""

    def write(self, name: str, data: bytes) -> None:
        """Replace the bytes under a name."""


class NoFactCache:
    """No cache."""

    def read(self, name: str) -> bytes:  # noqa: ARG002 - as the protocol has it
        """Returns no bytes."""
        return b""

    def write(self, name: str, data: bytes) -> None:
        """Does nothing."""


class Facts(Generic[T]):
    """Cached facts of one kind, by commit, all relative to one other commit, `about`.

    msgspec decodes each as `type_` on first access.
    """

    def __init__(self, fact_cache: FactCache, name: str, type_: type[T]) -> None:
        self._cache = fact_cache
        self._name = name
        self._type = type_
        self._read: tuple[Id, Mapping[Id, T]] | None = None

    def known(self) -> tuple[Id, Mapping[Id, T]]:
        """Returns the commit that the facts are relative to, and the facts by commit."""
        if self._read is None:
            self._read = self._decoded(self._cache.read(self._name))
        return self._read

    def write(self, about: Id, facts: Mapping[Id, T], asked: Collection[Id]) -> None:
        """Writes facts; if there are too many, only the requested ones."""
        if len(facts) > max(FEW, 2 * len(asked)):
            facts = {id_: facts[id_] for id_ in asked}
        self._read = about, facts
        if len(facts) <= MOST:
            data = _encode((VERSION, about, facts))
            self._cache.write(self._name, crc32(data).to_bytes(_CHECK, "big") + data)

    def _decoded(self, kept: bytes) -> tuple[Id, Mapping[Id, T]]:
        data = kept[_CHECK:]
        try:
            if data and crc32(data) == int.from_bytes(kept[:_CHECK], "big"):
                shape = tuple[int, bytes, dict[bytes, self._type]]  # type: ignore[name-defined]
                version, about, facts = msgpack.decode(data, type=shape)
                if version == VERSION:
                    return about, facts
        except MsgspecError:
            # Written by another version.
            pass
        return NO_COMMIT, {}
