"""An overlay: a store with uncommitted writes, on which later drafts of a group are based."""

from __future__ import annotations

from collections.abc import Sequence

from nessie_cli.store.base import View
from nessie_cli.store.records import (
    Basis,
    Move,
    ReflogRow,
    Request,
    Settings,
    StoredObject,
    StoredReference,
    Write,
)

_BEHIND_STORE, _LAYER = 1 << 62, 1 << 40
"""The offset of row numbers of an overlay to those of its base, which may be an overlay too."""


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
        self._base_settings: Settings | None = None
        self._moves: list[Move] = []
        self._settings: dict[str, str | None] = {}
        self._settings_changes = 0
        self._requests: dict[str, Request | None] = {}

    def read(self, wanted: Sequence[tuple[str, str]]) -> None:
        """Reads the state with which drafts on these references and request ids begin.

        This takes one round trip.
        """
        for (name, request_id), basis in zip(wanted, self._base.bases(wanted), strict=True):
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
        """See `View`."""
        if not self._objects:
            return self._base.get(ids)
        found = {id_: self._objects[id_].data for id_ in ids if id_ in self._objects}
        rest = [id_ for id_ in ids if id_ not in found]
        return found | self._base.get(rest) if rest else found

    def get_some(self, ids: Sequence[bytes], most_bytes: int) -> dict[bytes, bytes]:
        """See `View`. Objects of the overlay are in memory already, so they do not count."""
        own = {id_: self._objects[id_].data for id_ in ids if id_ in self._objects}
        rest = [id_ for id_ in ids if id_ not in own]
        return own | self._base.get_some(rest, most_bytes) if rest else own

    def written_before(self, id_: bytes, kind: int, limit: int) -> dict[bytes, bytes]:
        """See `View`."""
        return {} if id_ in self._objects else self._base.written_before(id_, kind, limit)

    def find_ids(self, kind: int, prefix: str, limit: int) -> list[bytes]:
        """See `View`."""
        found = self._base.find_ids(kind, prefix, limit)
        own = [
            one.id
            for one in self._objects.values()
            if one.kind == kind and one.id.hex().startswith(prefix)
        ]
        return sorted({*found, *own})[:limit] if own else found

    def find_indexed(self, entry: bytes, before: int | None, limit: int) -> list[tuple[int, bytes]]:
        """See `View`."""
        own = self._index.get(entry, [])
        new = self._new([id_ for _, id_ in own])
        found = [
            one for one in reversed(own) if one[1] in new and (before is None or one[0] < before)
        ][:limit]
        return (
            found + self._base.find_indexed(entry, before, limit - len(found))
            if len(found) < limit
            else found
        )

    def _new(self, ids: Sequence[bytes]) -> set[bytes]:
        """Returns the ids that are not in the base, which lists its own objects."""
        if unknown := [id_ for id_ in ids if id_ not in self._in_base]:
            there = self._base.get(unknown)
            self._in_base |= {id_: id_ in there for id_ in unknown}
        return {id_ for id_ in ids if not self._in_base[id_]}

    # -- references, reflog, settings, requests --

    def reference(self, name: str) -> StoredReference | None:
        """See `View`."""
        return self._references[name] if name in self._references else self._base.reference(name)

    def references(
        self, kind: str | None = None, prefix: str = "", start: str = "", limit: int | None = None
    ) -> list[StoredReference]:
        """See `View`."""
        changed = self._references
        more = None if limit is None else limit + len(changed)
        found = [
            one
            for one in self._base.references(kind, prefix, start, more)
            if one.name not in changed
        ]
        own = [
            one
            for one in changed.values()
            if one is not None
            and kind in (None, one.kind)
            and one.name.startswith(prefix)
            and one.name >= start
        ]
        return sorted(found + own, key=lambda one: one.name)[:limit]

    def reflog(
        self, name: str | None = None, before: int | None = None, limit: int | None = None
    ) -> list[ReflogRow]:
        """See `View`."""
        own = [
            ReflogRow(self.first_number + number, move)
            for number, move in enumerate(self._moves)
            if name in (None, move.name) and (before is None or self.first_number + number < before)
        ][::-1][:limit]
        rest = None if limit is None else limit - len(own)
        return own if rest == 0 else own + self._base.reflog(name, before, rest)

    def newest_moves(self, names: Sequence[str]) -> list[ReflogRow]:
        """See `View`."""
        own = {
            move.name: ReflogRow(self.first_number + number, move)
            for number, move in enumerate(self._moves)
        }
        rest = [name for name in names if name not in own]
        return [own[name] for name in dict.fromkeys(names) if name in own] + (
            self._base.newest_moves(rest) if rest else []
        )

    def settings(self) -> Settings:
        """See `View`."""
        return self._with_changes(self._base_settings or self._base.settings())

    def _with_changes(self, found: Settings) -> Settings:
        if not self._settings_changes:
            return found
        values = {
            name: value
            for name, value in {**found.values, **self._settings}.items()
            if value is not None
        }
        return Settings(values, found.version + self._settings_changes)

    def request(self, id_: str) -> Request | None:
        """See `View`."""
        return self._requests[id_] if id_ in self._requests else self._base.request(id_)

    def basis(self, name: str, request_id: str) -> Basis:
        """See `View`."""
        if (
            self._base_settings is not None
            and name in self._references
            and request_id in self._requests
        ):
            return Basis(self._references[name], self.settings(), self._requests[request_id])
        found = self._base.basis(name, request_id)
        reference = self._references.get(name, found.reference)
        return Basis(
            reference,
            self._with_changes(found.settings),
            self._requests.get(request_id, found.request),
        )

    def bases(self, wanted: Sequence[tuple[str, str]]) -> list[Basis]:
        """See `View`."""
        return [self.basis(*one) for one in wanted]
