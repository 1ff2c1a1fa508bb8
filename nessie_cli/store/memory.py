"""The store in memory: dictionaries behind one lock. It is the simplest implementation."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import count
from threading import Condition
from typing import TYPE_CHECKING

from nessie_cli.store.base import LEASE, Dump, Reached
from nessie_cli.store.decision import Decision, Needs
from nessie_cli.store.records import (
    Basis,
    Counts,
    DamagedId,
    Deleted,
    Expired,
    ListedObject,
    Move,
    Outcome,
    ReflogRow,
    Request,
    Settings,
    StoredObject,
    StoredReference,
    StoreSize,
    Write,
)

if TYPE_CHECKING:
    from nessie_cli.model.progress import Progress


class MemoryStore:
    """A `Store` in memory. `clock` returns seconds since 1970."""

    url = "memory:"
    remote = False

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = Condition()
        self._objects: dict[bytes, tuple[int, int, bytes]] = {}
        self._index: dict[bytes, list[tuple[int, bytes]]] = {}
        self._references: dict[str, StoredReference] = {}
        self._reflog: list[ReflogRow] = []
        self._requests: dict[str, Request] = {}
        self._settings = Settings()
        self._leases: defaultdict[str, list[_Ticket]] = defaultdict(list)
        self._numbers = count()
        self._changes = 0

    # -- objects --

    def get(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """See `View`."""
        with self._lock:
            return {id_: self._objects[id_][2] for id_ in ids if id_ in self._objects}

    def written_before(self, id_: bytes, kind: int, limit: int) -> dict[bytes, bytes]:  # noqa: ARG002
        """Returns nothing: `get` for each is faster here."""
        return {}

    def find_ids(self, kind: int, prefix: str, limit: int) -> list[bytes]:
        """See `View`. Reads all objects: this store is for small repositories and tests."""
        with self._lock:
            found = [id_ for id_, (kind_, _, _) in self._objects.items() if kind_ == kind]
        return sorted(id_ for id_ in found if id_.hex().startswith(prefix))[:limit]

    def find_indexed(self, entry: bytes, before: int | None, limit: int) -> list[tuple[int, bytes]]:
        """See `View`."""
        with self._lock:
            newest_first = self._index.get(entry, [])[::-1]
        return [found for found in newest_first if before is None or found[0] < before][:limit]

    def scan(self, kind: int | None = None) -> Iterator[StoredObject | DamagedId]:
        """See `Store`. No object can be damaged here."""
        with self._lock:
            found = list(self._objects.items())
        return (
            StoredObject(id_, kind_, data)
            for id_, (kind_, _, data) in found
            if kind in (None, kind_)
        )

    def verify_file(self) -> Iterator[str]:
        """Returns nothing: there are no files."""
        return iter(())

    def scan_index(self) -> Iterator[tuple[bytes, bytes]]:
        """See `Store`."""
        with self._lock:
            return iter([(entry, id_) for entry, found in self._index.items() for _, id_ in found])

    def count(self) -> int:
        """See `Store`."""
        with self._lock:
            return len(self._objects)

    def put(self, objects: Iterable[StoredObject]) -> None:
        """See `Store`."""
        given = list(objects)
        with self._lock:
            self._put(given)
            self._changes += 1

    # -- references, reflog, settings, requests --

    def reference(self, name: str) -> StoredReference | None:
        """See `View`."""
        with self._lock:
            return self._references.get(name)

    def references(
        self, kind: str | None = None, prefix: str = "", start: str = "", limit: int | None = None
    ) -> list[StoredReference]:
        """See `View`."""
        with self._lock:
            found = sorted(self._references.values(), key=lambda one: one.name)
        wanted = [one for one in found if one.name.startswith(prefix) and one.name >= start]
        return [one for one in wanted if kind in (None, one.kind)][:limit]

    def reflog(
        self, name: str | None = None, before: int | None = None, limit: int | None = None
    ) -> list[ReflogRow]:
        """See `View`."""
        with self._lock:
            newest_first = self._reflog[::-1]
        wanted = [row for row in newest_first if before is None or row.number < before]
        return [row for row in wanted if name in (None, row.move.name)][:limit]

    def newest_moves(self, names: Sequence[str]) -> list[ReflogRow]:
        """See `View`."""
        with self._lock:
            newest = {row.move.name: row for row in self._reflog}
        return [newest[name] for name in dict.fromkeys(names) if name in newest]

    def settings(self) -> Settings:
        """See `View`."""
        return self._settings

    def request(self, id_: str) -> Request | None:
        """See `View`."""
        with self._lock:
            return self._requests.get(id_)

    def basis(self, name: str, request_id: str) -> Basis:
        """See `View`."""
        with self._lock:
            return Basis(self._references.get(name), self._settings, self._requests.get(request_id))

    def bases(self, wanted: Sequence[tuple[str, str]]) -> list[Basis]:
        """See `View`."""
        return [self.basis(*one) for one in wanted]

    # -- writing --

    def commit(
        self,
        writes: Sequence[Write],
        *,
        lease: str = "",
        end_lease: bool = False,  # noqa: ARG002 - it ends a moment later
    ) -> list[Outcome]:
        """See `Store`."""
        needs = Needs(writes)
        with self._lock:
            self._lock.wait_for(lambda: not self._leased(needs.references, lease), LEASE)
            decision = Decision(
                {name: self._references.get(name) for name in needs.references},
                {id_: self._requests[id_] for id_ in needs.requests if id_ in self._requests},
                {id_ for id_ in needs.objects if id_ in self._objects},
                self._settings.version,
            )
            outcomes = [decision.decide(write) for write in writes]
            for write in decision.done:
                self._apply(write)
            self._changes += bool(decision.done)
            return outcomes

    def _apply(self, write: Write) -> None:
        self._put(write.objects)
        for move in write.moves:
            self._move(move)
        if write.settings:
            changed = {**self._settings.values, **write.settings}
            values = {name: value for name, value in changed.items() if value is not None}
            self._settings = Settings(values, self._settings.version + 1)
        if write.records_request:
            self._requests[write.request.id] = write.request

    def _put(self, objects: Iterable[StoredObject]) -> None:
        now = int(self._clock())
        for stored in objects:
            if stored.id not in self._objects:
                number = next(self._numbers)
                for entry in stored.index:
                    self._index.setdefault(entry, []).append((number, stored.id))
            kind, _, data = self._objects.get(stored.id, (stored.kind, now, stored.data))
            self._objects[stored.id] = (kind, now, data)

    def _move(self, move: Move) -> None:
        if move.after is None:
            self._references.pop(move.name, None)
        else:
            self._references[move.name] = StoredReference(move.name, move.kind, move.after)
        self._reflog.append(ReflogRow(self.last_move() + 1, move))

    @contextmanager
    def lease(self, name: str) -> Iterator[str]:
        """See `Store`."""
        mine = _Ticket()
        with self._lock:
            waiting = self._leases[name]
            waiting.append(mine)
            # If a turn came and passed while this thread got no processor, it continues without.
            while self._holder(name) is not mine and mine in waiting:
                self._lock.wait(waiting[0].until - time.monotonic())
        try:
            yield mine.token
        finally:
            with self._lock:
                if mine in waiting:
                    waiting.remove(mine)
                self._lock.notify_all()

    def _leased(self, names: Iterable[str], token: str) -> bool:
        """Returns whether another caller holds a lease of one of these references."""
        holders = [self._holder(name) for name in names] if self._leases else []
        return any(holder is not None and holder.token != token for holder in holders)

    def _holder(self, name: str) -> _Ticket | None:
        """Returns the current holder of a lease. Its time begins when the one before has ended."""
        waiting, now = self._leases[name], time.monotonic()
        while waiting:
            if not waiting[0].until:
                waiting[0].until = now + LEASE
            if waiting[0].until > now:
                return waiting[0]
            del waiting[0]
        return None

    # -- maintenance --

    def maintenance(self) -> AbstractContextManager[MemoryStore]:
        """See `Store`."""
        return nullcontext(self)

    def last_move(self) -> int:
        """See `Maintenance`."""
        return self._reflog[-1].number if self._reflog else 0

    def size(self) -> StoreSize:
        """See `Maintenance`. Counts only the bytes of objects."""
        return StoreSize(sum(one.size for one in self.objects()), 0)

    def objects(self) -> Iterator[ListedObject]:
        """See `Maintenance`."""
        with self._lock:
            objects = list(enumerate(self._objects.items()))
        return (
            ListedObject(id_, kind, number, written, len(data))
            for number, (id_, (kind, written, data)) in reversed(objects)
        )

    def delete(
        self, ids: Sequence[bytes], written_before: int, since: int, reached: Reached
    ) -> Deleted:
        """See `Maintenance`."""
        with self._lock:
            kept = reached([row for row in reversed(self._reflog) if row.number > since])
            found = [
                id_
                for id_ in ids
                if id_ in self._objects
                and self._objects[id_][1] < written_before
                and id_ not in kept
            ]
            size = sum(len(self._objects.pop(id_)[2]) for id_ in found)
            if found:
                gone = set(found)
                for entry, numbered in self._index.items():
                    self._index[entry] = [one for one in numbered if one[1] not in gone]
            self._changes += 1
            return Deleted(len(found), size)

    def expire(
        self, moves_before: int, requests_before: int, last_move: int, *, dry_run: bool = False
    ) -> Expired:
        """See `Maintenance`."""
        with self._lock:
            newest = {row.move.name: row for row in self._reflog}
            kept = {
                row.number
                for row in newest.values()
                if row.move.message and row.move.after is not None
            }
            old = {
                row.number
                for row in self._reflog[:-1]
                if row.move.time < moves_before and row.number <= last_move
            }
            moves = old - kept
            requests = [one.id for one in self._requests.values() if one.time < requests_before]
            if not dry_run:
                self._reflog = [row for row in self._reflog if row.number not in moves]
                for id_ in requests:
                    del self._requests[id_]
            return Expired(len(moves), len(requests))

    def compact(self, *, full: bool = False) -> None:
        """See `Maintenance`. Does nothing."""

    # -- the whole --

    def dump(self) -> AbstractContextManager[Dump]:
        """See `Store`. Copies every dictionary."""
        from nessie_cli.store.memory_dump import MemoryDump

        with self._lock:
            index: dict[bytes, list[bytes]] = {}
            for entry, indexed in self._index.items():
                for _, id_ in indexed:
                    index.setdefault(id_, []).append(entry)
            # A dictionary keeps the order of writing.
            objects = [
                StoredObject(id_, kind, data, tuple(index.get(id_, ())))
                for id_, (kind, _, data) in self._objects.items()
            ]
            moves = [row.move for row in self._reflog]
            found = MemoryDump(
                self._settings,
                list(self._references.values()),
                moves,
                list(self._requests.values()),
                objects,
            )
        return nullcontext(found)

    def load(self, dump: Dump, progress: Progress | None = None) -> None:
        """See `Store`."""
        from nessie_cli.store.dump import loaded_version, require_empty
        from nessie_cli.store.memory_dump import unpacked

        with self._lock:
            counts = Counts(
                len(self._objects), len(self._references), len(self._reflog), len(self._requests)
            )
            require_empty(self.url, counts, self._settings.version)
            given = unpacked(dump)
            self._settings = Settings(
                given.all_settings.values,
                loaded_version(given.all_settings.version, self._settings.version),
            )
            self._references = {one.name: one for one in given.all_references}
            self._reflog = [
                ReflogRow(number, move) for number, move in enumerate(given.all_moves, 1)
            ]
            self._requests = {one.id: one for one in given.all_requests}
            self._put(given.all_objects)
            self._changes += 1
        if progress is not None:
            progress(len(given.all_objects), len(given.all_objects))

    def change_counter(self) -> int:
        """See `Store`."""
        return self._changes

    def close(self) -> None:
        """Does nothing: others may still use the store."""


class _Ticket:
    """A place in the queue for a lease.

    Its time, until `until`, begins after the holder before it.
    """

    def __init__(self) -> None:
        self.token = os.urandom(8).hex()
        self.until = 0.0
