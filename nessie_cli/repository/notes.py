"""On-disk cache of facts about commits: how far a branch is from another commit, whether it is merged, its commit time.

A fact names commits by hash, so it is true forever and in every store. The cache may be deleted at any time; damaged
entries are ignored. A wrong fact could only make a deletion ask for one more confirmation, never for one less.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Generic, Protocol, TypeVar
from zlib import crc32

from msgspec import MsgspecError, msgpack

from nessie_cli.kernel.forms import NO_COMMIT, Id

VERSION = 1
"""To be incremented if facts get another meaning; those of other versions are ignored."""
FEW = 8_000
"""So many facts are kept, or twice as many as were asked for last. Those of deleted references are dropped so."""
MOST = 50_000
"""More are never kept."""

_CHECK = 4
_encode = msgpack.Encoder().encode

T = TypeVar("T")


class Notes(Protocol):
    """Files of the cache by name. Nothing raises: an unreadable file is empty, a failed write is ignored."""

    def read(self, name: str) -> bytes:
        """The bytes that were written last under this name."""

    def keep(self, name: str, data: bytes) -> None:
        """Replace the bytes under this name."""


class NoNotes:
    """No cache."""

    def read(self, name: str) -> bytes:  # noqa: ARG002 - as the protocol has it
        """Nothing."""
        return b""

    def keep(self, name: str, data: bytes) -> None:
        """Does nothing."""


class Facts(Generic[T]):
    """Cached facts of one kind, by commit, all relative to one other commit, `about`.

    msgspec decodes each as `type_`, when the first one is asked for.
    """

    def __init__(self, notes: Notes, name: str, type_: type[T]) -> None:
        self._notes = notes
        self._name = name
        self._type = type_
        self._read: tuple[Id, Mapping[Id, T]] | None = None

    def known(self) -> tuple[Id, Mapping[Id, T]]:
        """The commit that they are relative to, and the facts by commit."""
        if self._read is None:
            self._read = self._decoded(self._notes.read(self._name))
        return self._read

    def keep(self, about: Id, facts: Mapping[Id, T], asked: Collection[Id]) -> None:
        """Write these facts; if there are too many, only those that were asked for."""
        if len(facts) > max(FEW, 2 * len(asked)):
            facts = {id_: facts[id_] for id_ in asked}
        self._read = about, facts
        if len(facts) <= MOST:
            data = _encode((VERSION, about, facts))
            self._notes.keep(self._name, crc32(data).to_bytes(_CHECK, "big") + data)

    def _decoded(self, kept: bytes) -> tuple[Id, Mapping[Id, T]]:
        data = kept[_CHECK:]
        try:
            if data and crc32(data) == int.from_bytes(kept[:_CHECK], "big"):
                shape = tuple[int, bytes, dict[bytes, self._type]]  # type: ignore[name-defined]
                version, about, facts = msgpack.decode(data, type=shape)
                if version == VERSION:
                    return about, facts
        except MsgspecError:
            # Of another version.
            pass
        return NO_COMMIT, {}
