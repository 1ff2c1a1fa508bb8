"""An overlay: a store with uncommitted writes, on which later drafts of a group are based."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, cast

from nessie_cli.errors import NotInMemory
from nessie_cli.store.base import View
from nessie_cli.store.records import (
    Basis,
    Move,
    ReflogRow,
    RequestRecord,
    StoredObject,
    StoredReference,
    StoredSettings,
    Write,
)

_BEHIND_STORE, _LAYER = 1 << 62, 1 << 40
"""The offset of row numbers of an overlay to those of its base, which may be an overlay too."""


class _NotRead:
    """The base of an overlay of which nothing is read."""

    def __getattr__(self, name: str) -> NoReturn:
        raise NotInMemory(name)


NOT_READ = cast(View, _NotRead())
"""A view whose every use raises `NotInMemory`."""


class Overlay:
    """A `View` of a base with writes that are not committed. Only for one thread."""

    def __init__(self, base: View) -> None:
        self._base = base
        self.first_number: int = (
            base.first_number + _LAYER if isinstance(base, Overlay) else _BEHIND_STORE
        )
        self._objects: dict[bytes, StoredObject] = {}
        self._index: dict[bytes, list[tuple[int, bytes]]] = {}
        self._in_base: dict[bytes, bool] = {}
        self._references: dict[str, StoredReference | None] = {}
        self._base_settings: StoredSettings | None = None
        self._moves: list[Move] = []
        self._settings: dict[str, str | None] = {}
        self._settings_changes = 0
        self._requests: dict[str, RequestRecord | None] = {}

    def read(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Reads the state with which drafts on these references and request ids begin.

        This takes one round trip.
        """
        for (name, request_id), basis in zip(pairs, self._base.bases(pairs), strict=True):
            self._references[name] = basis.reference
            self._requests[request_id] = basis.request
            self._base_settings = basis.settings

    def add(self, write: Write) -> None:
        """Show a write as if it were committed."""
        for stored in write.objects:
            if stored.id in self._objects:
                continue
            self._objects[stored.id] = stored
            for entry in stored.index:
                self._index.setdefault(entry, []).append(
                    (self.first_number + len(self._objects), stored.id)
                )
        for move in write.moves:
            self._references[move.name] = (
                None if move.after is None else StoredReference(move.name, move.kind, move.after)
            )
        self._moves += write.moves
        self._settings |= write.settings
        self._settings_changes += bool(write.settings)
        if write.request.id:
            self._requests[write.request.id] = write.request

    def put_back(self, name: str, kind: str, before: bytes | None) -> None:
        """Show a reference where it was before a move."""
        self._references[name] = None if before is None else StoredReference(name, kind, before)

    # -- objects --

    def get(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """Returns the bytes of objects in the writes or in the base."""
        if not self._objects:
            return self._base.get(ids)
        own = {id_: self._objects[id_].data for id_ in ids if id_ in self._objects}
        rest = [id_ for id_ in ids if id_ not in own]
        return own | self._base.get(rest) if rest else own

    def get_some(self, ids: Sequence[bytes], most_bytes: int) -> dict[bytes, bytes]:
        """Returns all objects of the overlay, which are in memory, and some of the store below."""
        own = {id_: self._objects[id_].data for id_ in ids if id_ in self._objects}
        rest = [id_ for id_ in ids if id_ not in own]
        return own | self._base.get_some(rest, most_bytes) if rest else own

    def written_before(self, id_: bytes, kind: int, limit: int) -> dict[bytes, bytes]:
        """Reads ahead in the base only: the objects of the writes are in memory."""
        return {} if id_ in self._objects else self._base.written_before(id_, kind, limit)

    def find_ids(self, kind: int, prefix: str, limit: int) -> list[bytes]:
        """Returns ids in the writes and in the base, in order."""
        in_base = self._base.find_ids(kind, prefix, limit)
        own = [
            stored.id
            for stored in self._objects.values()
            if stored.kind == kind and stored.id.hex().startswith(prefix)
        ]
        return sorted({*in_base, *own})[:limit] if own else in_base

    def find_indexed(self, entry: bytes, before: int | None, limit: int) -> list[tuple[int, bytes]]:
        """Returns objects with an index entry, those of the writes first."""
        own = self._index.get(entry, [])
        new = self._new([id_ for _, id_ in own])
        rows = [
            (number, id_)
            for number, id_ in reversed(own)
            if id_ in new and (before is None or number < before)
        ][:limit]
        return (
            rows + self._base.find_indexed(entry, before, limit - len(rows))
            if len(rows) < limit
            else rows
        )

    def _new(self, ids: Sequence[bytes]) -> set[bytes]:
        """Returns the ids that are not in the base, which lists its own objects."""
        if unknown := [id_ for id_ in ids if id_ not in self._in_base]:
            there = self._base.get(unknown)
            self._in_base |= {id_: id_ in there for id_ in unknown}
        return {id_ for id_ in ids if not self._in_base[id_]}

    # -- references, reflog, settings, requests --

    def reference(self, name: str) -> StoredReference | None:
        """Returns a reference, or None."""
        return self._references[name] if name in self._references else self._base.reference(name)

    def references(
        self, kind: str | None = None, prefix: str = "", start: str = "", limit: int | None = None
    ) -> list[StoredReference]:
        """Returns references in the order of their names."""
        changed = self._references
        more = None if limit is None else limit + len(changed)
        unchanged = [
            reference
            for reference in self._base.references(kind, prefix, start, more)
            if reference.name not in changed
        ]
        own = [
            reference
            for reference in changed.values()
            if reference is not None
            and kind in (None, reference.kind)
            and reference.name.startswith(prefix)
            and reference.name >= start
        ]
        return sorted(unchanged + own, key=lambda reference: reference.name)[:limit]

    def reflog(
        self, name: str | None = None, before: int | None = None, limit: int | None = None
    ) -> list[ReflogRow]:
        """Returns moves, those of the writes first."""
        own = [
            ReflogRow(self.first_number + number, move)
            for number, move in enumerate(self._moves)
            if name in (None, move.name) and (before is None or self.first_number + number < before)
        ][::-1][:limit]
        rest = None if limit is None else limit - len(own)
        return own if rest == 0 else own + self._base.reflog(name, before, rest)

    def newest_moves(self, names: Sequence[str]) -> list[ReflogRow]:
        """Returns the newest move of each reference, unordered."""
        own = {
            move.name: ReflogRow(self.first_number + number, move)
            for number, move in enumerate(self._moves)
        }
        rest = [name for name in names if name not in own]
        return [own[name] for name in dict.fromkeys(names) if name in own] + (
            self._base.newest_moves(rest) if rest else []
        )

    def settings(self) -> StoredSettings:
        """Returns the settings of the base with the changes of the writes."""
        return self._with_changes(self._base_settings or self._base.settings())

    def _with_changes(self, base: StoredSettings) -> StoredSettings:
        if not self._settings_changes:
            return base
        values = {
            name: value
            for name, value in {**base.values, **self._settings}.items()
            if value is not None
        }
        return StoredSettings(values, base.version + self._settings_changes)

    def request(self, id_: str) -> RequestRecord | None:
        """Returns the request of an id, or None."""
        return self._requests[id_] if id_ in self._requests else self._base.request(id_)

    def basis(self, name: str, request_id: str) -> Basis:
        """Returns the state with which a draft begins, from memory if `read` has read it."""
        if (
            self._base_settings is not None
            and name in self._references
            and request_id in self._requests
        ):
            return Basis(self._references[name], self.settings(), self._requests[request_id])
        basis = self._base.basis(name, request_id)
        reference = self._references.get(name, basis.reference)
        return Basis(
            reference,
            self._with_changes(basis.settings),
            self._requests.get(request_id, basis.request),
        )

    def bases(self, pairs: Sequence[tuple[str, str]]) -> list[Basis]:
        """Returns `basis` for each name and request id."""
        return [self.basis(*pair) for pair in pairs]
