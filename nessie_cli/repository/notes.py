"""Facts about immutable commits, found out once and kept for the next process: how far a branch is from another commit, whether it is merged.

A fact names commits by their hashes, so it is true for ever and in every store; what is kept may be lost at any time, and whatever is not as it
was written is as good as nothing. Facts order and choose what is listed; a false one can make a deletion ask once more, never once less.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Generic, Protocol, TypeVar
from zlib import crc32

from msgspec import MsgspecError, msgpack

from nessie_cli.kernel.forms import NO_COMMIT, Id

VERSION = 1
"""To be counted up where facts of another meaning or of a mended defect are written: those of other versions are ignored."""
FEW = 8_000
"""So many facts are kept, or twice as many as were asked for last: those of references that have gone are forgotten."""
MOST = 50_000
"""More are never kept."""

_CHECK = 4
_encode = msgpack.Encoder().encode

T = TypeVar("T")


class Notes(Protocol):
    """Where bytes are kept under a name. Reading and keeping never fail: what cannot be read is empty, what cannot be written is forgotten."""

    def read(self, name: str) -> bytes:
        """What was kept last under this name."""

    def keep(self, name: str, data: bytes) -> None:
        """Put this in its place."""


class NoNotes:
    """Keeps nothing."""

    def read(self, name: str) -> bytes:  # noqa: ARG002 - as the protocol has it
        """Nothing."""
        return b""

    def keep(self, name: str, data: bytes) -> None:
        """Forget it."""


class Facts(Generic[T]):
    """Facts of one kind, each about one commit and all about their relation to one other, `about`.

    `type_` is what msgspec reads a fact as. They are read when they are first asked for.
    """

    def __init__(self, notes: Notes, name: str, type_: type[T]) -> None:
        self._notes = notes
        self._name = name
        self._type = type_
        self._read: tuple[Id, Mapping[Id, T]] | None = None

    def known(self) -> tuple[Id, Mapping[Id, T]]:
        """What they are about, and the facts by commit."""
        if self._read is None:
            self._read = self._decoded(self._notes.read(self._name))
        return self._read

    def keep(self, about: Id, facts: Mapping[Id, T], asked: Collection[Id]) -> None:
        """Remember these facts; where they are too many only those that were asked for."""
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
                version, about, facts = msgpack.decode(data, type=tuple[int, bytes, dict[bytes, self._type]])  # type: ignore[name-defined]
                if version == VERSION:
                    return about, facts
        except MsgspecError:
            # Of another version.
            pass
        return NO_COMMIT, {}
