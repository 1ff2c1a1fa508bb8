"""The store that is gone when the program ends: dictionaries behind one lock. It is also the plainest statement of what a store does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from threading import RLock
from typing import Any, Self

from nessie_cli.store.base import DamagedId, Done, Move, ReflogRow, Stale, StoredObject, StoredReference, Write


class MemoryStore:
    """A `Store` in memory. Readers of other threads wait while a thread is inside `exclusive`. `clock` gives seconds since 1970."""

    url = "memory:"

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = RLock()
        self._objects: dict[bytes, tuple[int, int, bytes]] = {}
        self._marked: dict[bytes, tuple[tuple[int, bytes], ...]] = {}
        self._references: dict[str, StoredReference] = {}
        self._reflog: dict[int, ReflogRow] = {}
        self._requests: dict[str, tuple[int, ...]] = {}
        self._settings: dict[str, str] = {}
        self._numbers = count()
        self._undo: list[tuple[MutableMapping[Any, Any], Any, Any]] = []
        self._newest_request = ""
        self._depth = 0
        self._version = 0

    def get(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """The raw bytes of those objects that exist."""
        with self._lock:
            return {id_: self._objects[id_][2] for id_ in ids if id_ in self._objects}

    def written_before(self, id_: bytes, kind: int, limit: int) -> dict[bytes, bytes]:  # noqa: ARG002 (the protocol's parameters)
        """Nothing: here it is faster to ask for each."""
        return {}

    def find_ids(self, kind: int, prefix: str, limit: int) -> list[bytes]:
        """Ids by hex prefix. Cost: all objects; this store is for small repositories and tests."""
        with self._lock:
            return sorted(id_ for id_, (kind_, _, _) in self._objects.items() if kind_ == kind and id_.hex().startswith(prefix))[:limit]

    def find_marked(self, mark: bytes, before: int | None, limit: int) -> list[tuple[int, bytes]]:
        """Objects with a mark, the last written first."""
        with self._lock:
            return [found for found in reversed(self._marked.get(mark, ())) if before is None or found[0] < before][:limit]

    def scan_marks(self) -> Iterator[tuple[bytes, bytes]]:
        """Every mark with its objects, as of now."""
        with self._lock:
            return iter([(mark, id_) for mark, found in self._marked.items() for _, id_ in found])

    def scan(self, kind: int | None = None) -> Iterator[StoredObject | DamagedId]:
        """Every object as of now; none can be damaged here."""
        with self._lock:
            found = list(self._objects.items())
        return (StoredObject(id_, kind_, data) for id_, (kind_, _, data) in found if kind in (None, kind_))

    def count(self) -> int:
        """How many objects there are."""
        with self._lock:
            return len(self._objects)

    def put(self, objects: Iterable[StoredObject]) -> None:
        """Store objects that no reference needs yet."""
        with self._transaction():
            self._put(objects)

    def delete(self, ids: Sequence[bytes], written_before: int) -> int:
        """Delete those objects last written before this second; returns how many went."""
        with self._transaction():
            old = {id_ for id_ in ids if id_ in self._objects and self._objects[id_][1] < written_before}
            for id_ in old:
                self._change(self._objects, id_, None)
            return len(old)

    def write(self, write: Write) -> Done | Stale:
        """Do all of it, or nothing."""
        try:
            with self._transaction():
                for move in write.moves:
                    self._move(move)
                self._put(write.objects)
                for name, value in write.settings.items():
                    self._change(self._settings, name, value)
        except _StaleMove as stale:
            return stale.answer
        return Done()

    def exclusive(self) -> AbstractContextManager[Self]:
        """Keep every other thread out; an exception that leaves the block undoes all that was written inside."""
        return self._transaction()

    def reference(self, name: str) -> StoredReference | None:
        """One reference, or None."""
        with self._lock:
            return self._references.get(name)

    def references(self, kind: str | None = None, prefix: str = "", start: str = "", limit: int | None = None) -> list[StoredReference]:
        """References in name order."""
        with self._lock:
            found = [r for name, r in self._references.items() if name.startswith(prefix) and name >= start and kind in (None, r.kind)]
        return sorted(found, key=lambda r: r.name)[:limit]

    def reflog(self, name: str | None = None, before: int | None = None, limit: int | None = None) -> list[ReflogRow]:
        """Moves, newest first."""
        with self._lock:
            newest_first = [row for _, row in reversed(self._reflog.items()) if before is None or row.number < before]
        return [row for row in newest_first if name in (None, row.move.name)][:limit]

    def find_request(self, request_id: str) -> list[ReflogRow]:
        """The moves that carried this request id, oldest first."""
        with self._lock:
            return [self._reflog[number] for number in self._requests.get(request_id, ())]

    def settings(self) -> dict[str, str]:
        """All settings by name."""
        with self._lock:
            return dict(self._settings)

    def standing(self, name: str) -> tuple[StoredReference | None, dict[str, str]]:
        """One reference and all settings."""
        with self._lock:
            return self._references.get(name), dict(self._settings)

    def version(self) -> int:
        """See `Watched`."""
        return self._version

    def close(self) -> None:
        """Nothing to let go of: whoever holds the store can go on."""

    def _put(self, objects: Iterable[StoredObject]) -> None:
        now = int(self._clock())
        for object_ in objects:
            if object_.id not in self._objects:
                number = next(self._numbers)
                for mark in object_.marks:
                    self._change(self._marked, mark, (*self._marked.get(mark, ()), (number, object_.id)))
            kind, _, data = self._objects.get(object_.id, (object_.kind, now, object_.data))
            self._change(self._objects, object_.id, (kind, now, data))

    def _move(self, move: Move) -> None:
        current = self._references.get(move.name)
        expected = None if move.before is None else StoredReference(move.name, move.kind, move.before)
        if current != expected:
            raise _StaleMove(Stale(move.name, current))
        self._change(self._references, move.name, None if move.after is None else StoredReference(move.name, move.kind, move.after))
        number = len(self._reflog) + 1
        self._change(self._reflog, number, ReflogRow(number, move))
        self._newest_request = move.request_id
        if move.request_id:
            self._change(self._requests, move.request_id, (*self._requests.get(move.request_id, ()), number))

    def _change(self, where: MutableMapping[Any, Any], name: Any, value: Any) -> None:
        """Set or (None) remove an entry, and remember what was there."""
        self._undo.append((where, name, where.get(name)))
        _set(where, name, value)

    def written(self) -> tuple[int, str]:
        """See `Held`."""
        return len(self._undo), self._newest_request

    @contextmanager
    def _transaction(self) -> Iterator[Self]:
        with self._lock:
            mark = len(self._undo)
            self._depth += 1
            try:
                yield self
            except BaseException:
                while len(self._undo) > mark:
                    _set(*self._undo.pop())
                raise
            finally:
                self._depth -= 1
                if not self._depth:
                    self._undo.clear()
                    self._version += 1


class _StaleMove(Exception):
    """Leaves a transaction so that all of it is undone."""

    def __init__(self, answer: Stale) -> None:
        super().__init__(answer.name)
        self.answer = answer


def _set(where: MutableMapping[Any, Any], name: Any, value: Any) -> None:
    if value is None:
        where.pop(name, None)
    else:
        where[name] = value
