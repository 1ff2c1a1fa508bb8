"""Maintenance of a store: expires rows, deletes unreachable objects, and compacts.

An object stays if a reference, an entry of the reflog or a young object needs it. The rest is
deleted if it was last written before the grace period: commits first, then nodes from the roots
down, then values. So a commit in the store always has everything that it needs, even if maintenance
is interrupted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import timedelta

from nessie_cli.errors import DamagedObject, InvalidInput
from nessie_cli.kernel.forms import UNDECODABLE, Id, Kind, decode_node
from nessie_cli.kernel.reachable import Reachable, damaged
from nessie_cli.model.batches import batched
from nessie_cli.model.progress import Progress
from nessie_cli.model.results import MaintenanceReport, Reclaimed
from nessie_cli.repository.expiry import expiry, moves_before
from nessie_cli.repository.reading import BATCH, moves
from nessie_cli.repository.verification import verify_rows
from nessie_cli.store.base import Store, StoreMaintenance
from nessie_cli.store.records import ListedObject, ReflogRow

GRACE = timedelta(days=1)
"""The default grace period: a large load stores objects long before its commit."""
SHORTEST_GRACE = timedelta(hours=2)
"""The shortest grace period, because the age of an object may be off by an hour."""

_BATCH = 1000
"""Objects per transaction of a deletion. Writers wait for one."""


def maintain(
    store: Store,
    now: int,
    grace: timedelta | None = None,
    *,
    dry_run: bool = False,
    full: bool = False,
    progress: Progress | None = None,
) -> MaintenanceReport:
    """Maintains a store beside its readers and writers. See `Repository.maintain`.

    `now` is in microseconds since 1970.
    """
    grace = GRACE if grace is None else grace
    if grace < SHORTEST_GRACE:
        raise InvalidInput("the grace period is too short; the shortest is 2h")
    limits = expiry(store.settings().values)
    with store.maintenance() as maintenance:
        before = maintenance.size()
        # These come first, because they raise if something is missing or damaged.
        verify_rows(store)
        sweep = _Sweep(store, maintenance, (now - _micros(grace)) // 10**6, progress)
        sweep.mark(moves_before(limits, now))
        garbage = sweep.garbage()
        expired = maintenance.expire(
            moves_before(limits, now),
            now - _micros(limits.requests),
            sweep.last_move,
            dry_run=dry_run,
        )
        reclaimed = {
            kind.name.lower(): Reclaimed(len(objects), sum(listed.size for listed in objects))
            for kind, objects in garbage.items()
        }
        if not dry_run:
            sweep.delete(garbage)
            maintenance.compact(full=full)
        after = maintenance.size()
    return MaintenanceReport(
        expired.moves,
        expired.requests,
        reclaimed,
        sweep.kept,
        before.total,
        after.total,
        after.free,
        dry_run,
    )


class _Sweep:
    """Marks reachable objects and deletes the rest."""

    def __init__(
        self,
        store: Store,
        maintenance: StoreMaintenance,
        written_before: int,
        progress: Progress | None,
    ) -> None:
        self._store = store
        self._maintenance = maintenance
        self._written_before = written_before
        self.last_move = maintenance.last_move()
        self._since = self.last_move
        total = store.count()
        self._reachable = Reachable(
            store.get,
            None if progress is None else lambda reached: progress(min(reached, total), total),
        )
        self.kept = 0

    def mark(self, since: int) -> None:
        """Marks and verifies what references, moves from a time on and young objects need."""
        self._reachable.add(
            Kind.COMMIT, [reference.target for reference in self._store.references()]
        )
        for rows in batched((row for row in moves(self._store) if row.move.time >= since), BATCH):
            self._reach(rows)
        self._reach_existing(_never_expired(self._store))
        # The newest object always stays; see `StoreMaintenance.delete`.
        newest: ListedObject | None = None
        young: defaultdict[Kind, list[Id]] = defaultdict(list)
        for listed in self._maintenance.objects():
            newest = listed if newest is None or listed.number > newest.number else newest
            if listed.written >= self._written_before:
                young[_kind_of(listed)].append(listed.id)
        if newest is not None:
            young[_kind_of(newest)].append(newest.id)
        for kind, ids in young.items():
            self._reachable.add(kind, ids)

    def _reach(self, rows: Iterable[ReflogRow]) -> None:
        ends = [end for row in rows for end in (row.move.before, row.move.after)]
        self._reachable.add(Kind.COMMIT, [end for end in ends if end is not None])

    def _reach_existing(self, rows: Iterable[ReflogRow]) -> None:
        """Marks the commits of entries, unless they were deleted while a shorter expiry was set."""
        for batch in batched(rows, BATCH):
            ids = [end for row in batch for end in (row.move.before, row.move.after) if end]
            self._reachable.add(Kind.COMMIT, self._store.get(ids))

    def garbage(self) -> dict[Kind, list[ListedObject]]:
        """Returns the objects to delete, by kind, in the order of deletion."""
        garbage: dict[Kind, list[ListedObject]] = {
            kind: [] for kind in (Kind.COMMIT, Kind.NODE, Kind.VALUE)
        }
        self.kept = 0
        for listed in self._maintenance.objects():
            if listed.written < self._written_before and listed.id not in self._reachable:
                garbage[_kind_of(listed)].append(listed)
            else:
                self.kept += 1
        levels = {
            id_: level
            for batch in batched(garbage[Kind.NODE], BATCH)
            for id_, level in self._levels(batch)
        }
        garbage[Kind.NODE].sort(key=lambda listed: -levels.get(listed.id, 0))
        return garbage

    def _levels(self, nodes: Iterable[ListedObject]) -> Iterator[tuple[Id, int]]:
        for id_, data in self._store.get([listed.id for listed in nodes]).items():
            try:
                yield id_, decode_node(data).level
            except UNDECODABLE:
                raise damaged(Kind.NODE, id_, "damaged: it cannot be decoded") from None

    def delete(self, garbage: dict[Kind, list[ListedObject]]) -> None:
        """Deletes garbage, except objects that became reachable or were written again meanwhile."""
        for objects in garbage.values():
            for batch in batched(objects, _BATCH):
                # Marks most of the newly reachable objects here, so that writers wait for little.
                self._reach(moves(self._store, since=self._since))
                self._maintenance.delete(
                    [listed.id for listed in batch],
                    self._written_before,
                    self._since,
                    self._reached,
                )

    def _reached(self, rows: Sequence[ReflogRow]) -> Container[Id]:
        self._reach(rows)
        if rows:
            self._since = rows[0].number
        return self._reachable


def _never_expired(store: Store) -> Iterator[ReflogRow]:
    """Yields the entries that `StoreMaintenance.expire` keeps at any age.

    If their commits were deleted, they would be missing as soon as a longer expiry is set.
    """
    names: set[str] = set()
    for row in moves(store):
        move = row.move
        if not names or (move.name not in names and move.message and move.after is not None):
            yield row
        names.add(move.name)


def _kind_of(listed: ListedObject) -> Kind:
    try:
        return Kind(listed.kind)
    except ValueError:
        id_ = listed.id.hex()
        raise DamagedObject(
            f"object {id_[:16]} is of the unknown kind {listed.kind}", id_
        ) from None


def _micros(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)
