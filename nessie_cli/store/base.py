"""The interface of a store: immutable objects, and references with compare-and-swap.

A store stores bytes and does not know trees, commits or keys. Objects never change, so a reader
that has read one reference has a consistent state of everything below it and needs no transaction.
A write is a value, `Write`: it names everything that it changes and requires, and `Store.commit`
decides it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from nessie_cli.store.records import (
    Basis,
    Counts,
    DamagedId,
    Deleted,
    Expired,
    ListedObject,
    Move,
    Outcome,
    PackedObject,
    ReflogRow,
    RequestRecord,
    StoredObject,
    StoredReference,
    StoredRun,
    StoredSession,
    StoredSettings,
    StoreSize,
    Write,
)

if TYPE_CHECKING:
    from nessie_cli.model.progress import Progress


MOVES_TOGETHER = 16 << 20
"""The size of the texts of moves after which no more are read together: each may have 8 MB."""


class View(Protocol):
    """The reading half of a store. All methods are safe to call from several threads.

    Errors: `StoreUnavailable`; `DamagedObject` for bytes that fail their checksum.
    """

    def get(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """Returns the raw bytes of those objects that exist, in one round trip."""

    def get_some(self, ids: Sequence[bytes], most_bytes: int) -> dict[bytes, bytes]:
        """Returns those of the first objects that exist, at least one, in one round trip.

        Ends after the first object with which they have `most_bytes`.
        """

    def written_before(self, id_: bytes, kind: int, limit: int) -> dict[bytes, bytes]:
        """Returns an object and up to `limit` of its kind that were written before it, in one trip.

        This is a read-ahead for walks over history. Returns fewer, or none, if this would cost more
        than `get` for each. Leaves damaged objects out.
        """

    def find_ids(self, kind: int, prefix: str, limit: int) -> list[bytes]:
        """Returns up to `limit` ids of a kind whose hex form begins with `prefix`, in order."""

    def find_indexed(self, entry: bytes, before: int | None, limit: int) -> list[tuple[int, bytes]]:
        """Returns up to `limit` objects with an index entry as (number, id), highest number first.

        Returns only numbers below `before`. The number of an ancestor is lower than those of its
        descendants; the order means nothing else. An object may have been deleted meanwhile.
        """

    def reference(self, name: str) -> StoredReference | None:
        """Returns one reference, or None."""

    def references(
        self, kind: str | None = None, prefix: str = "", start: str = "", limit: int | None = None
    ) -> list[StoredReference]:
        """Returns references in the order of their names (by code point), as one consistent state.

        They are limited to one kind, to names that begin with `prefix`, and to names from `start`
        on (inclusive).
        """

    def reflog(
        self, name: str | None = None, before: int | None = None, limit: int | None = None
    ) -> list[ReflogRow]:
        """Returns moves of one reference or of all, newest first, with numbers below `before`.

        Ends early after long texts (`MOVES_TOGETHER`): only an empty list means no more moves.
        """

    def newest_moves(self, names: Sequence[str]) -> list[ReflogRow]:
        """Returns the newest move of each of these references, in one round trip, unordered."""

    def settings(self) -> StoredSettings:
        """Returns all settings, including internal facts of the repository."""

    def request(self, id_: str) -> RequestRecord | None:
        """Returns the request that was committed under this id, or None."""

    def basis(self, name: str, request_id: str) -> Basis:
        """Returns the state with which a draft begins, in one round trip.

        An empty request id finds none.
        """

    def bases(self, pairs: Sequence[tuple[str, str]]) -> list[Basis]:
        """Returns `basis` for each of several names and request ids, in one round trip."""


class Store(View, Protocol):
    """A backend. All methods are safe to call from several threads and processes.

    `commit` raises `StoreUnavailable` if nothing was written, and `OutcomeUnknown` if the store
    cannot tell; the request ids answer that later. A store that cannot keep text with a NUL refuses
    it (`InvalidInput`).
    """

    remote: bool
    """Whether a call takes a round trip to a database server."""

    @property
    def url(self) -> str:
        """The URL that opens this store again, without secrets."""

    def commit(
        self, writes: Sequence[Write], *, lease: str = "", end_lease: bool = False
    ) -> list[Outcome]:
        """Decides writes in order and returns the outcome of each.

        Each is atomic; those that are `Done` are durable. A write sees those before it. Several
        usually share one transaction and wait for the disk once. Two writes of one call may have
        the same request id: the second is `Repeated`. `lease` is the token of the caller's lease.
        With `end_lease`, this is the last commit under it, and a store may return the lease with
        it.
        """

    def lease(self, name: str) -> AbstractContextManager[str]:
        """Waits for the lease of a reference, in order of arrival, and yields its token.

        Meanwhile, commits of other callers that move this reference wait, except those under the
        lease of another reference. A lease lasts at most `LEASE` seconds, and waiting for it is
        bounded as well. It gives a writer that lost several races a fair chance; correctness never
        depends on it. Draft and commit inside; never run hooks or other long work.
        """

    def put(self, objects: Iterable[StoredObject]) -> None:
        """Stores objects that no reference needs yet, or marks existing ones as young."""

    def maintenance(self) -> AbstractContextManager[StoreMaintenance]:
        """Opens the maintenance of this store: expiry, deletion of objects, compaction."""

    def scan(self, kind: int | None = None) -> Iterator[StoredObject | DamagedId]:
        """Yields every object (of a kind), for verification and maintenance."""

    def verify_file(self) -> Iterator[str]:
        """Yields the problems of the store's files, one line each. Reads all of them."""

    def scan_index(self) -> Iterator[tuple[bytes, bytes]]:
        """Yields every index entry with the id of its object, unordered, for verification."""

    def count(self) -> int:
        """Returns the number of objects. Costs a millisecond for some ten thousand."""

    def dump(self) -> AbstractContextManager[Dump]:
        """Opens one consistent state of everything in this store, beside readers and writers."""

    def load(self, dump: Dump, progress: Progress | None = None) -> None:
        """Stores everything in a dump, in one transaction, with equal ids and values.

        Other writers wait. Raises `StoreNotEmpty` unless this store is as `nessie init` leaves it;
        that content is replaced. After an error, or if the process is killed, the store is
        unchanged. The version of the settings becomes higher than it has ever been.
        """

    def change_counter(self) -> Hashable | None:
        """Returns a value that changes with every write, or None if it is unavailable.

        Takes microseconds and never waits, unless the store is `remote`: then it takes a round
        trip, and raises `StoreUnavailable`. Only one thread may call it at a time.
        """

    def heads(self, names: Sequence[str]) -> list[StoredReference | None] | None:
        """Returns the reference of each name, or None for one that does not exist.

        Returns None if they are unavailable. Waits no longer than `change_counter`, and only one
        thread may call either at a time.
        """

    @property
    def sessions(self) -> SessionTable:
        """The logins of browsers at all servers of this store."""

    @property
    def runs(self) -> RunTable:
        """The records of pipelines' runs."""

    def close(self) -> None:
        """Closes files and connections. Calling it twice is harmless.

        Running calls of other threads end first or raise `StoreUnavailable`.
        """


class SessionTable(Protocol):
    """The logins of browsers at servers. All methods are safe to call from several threads.

    They are no part of the repository: a dump has none, and `load` leaves those of this store. The
    first `put` creates the table in a store that was made without it. Raises `StoreUnavailable`.
    """

    def put(self, session: StoredSession) -> None:
        """Stores a session, durably."""

    def get(self, id_: bytes) -> StoredSession | None:
        """Returns a session, also one that has ended, or None. Costs one small read."""

    def all(self) -> list[StoredSession]:
        """Returns all sessions, also those that have ended, in any order."""

    def extend(self, id_: bytes, ends: int) -> None:
        """Moves the end of a session. Does nothing if it was deleted meanwhile."""

    def delete(self, id_: bytes) -> None:
        """Deletes a session, durably. Does nothing if there is none."""

    def expire(self, now: int) -> int:
        """Deletes the sessions that have ended by this second, and returns their number."""


class RunTable(Protocol):
    """The records of pipelines' runs. All methods are safe to call from several threads.

    A dump has them, and after `load`, no run has a process any more (`store.dump.loaded_runs`). The
    first `put` creates the table in a store that was made without it. Raises `StoreUnavailable`.
    """

    def put(self, run: StoredRun) -> bool:
        """Stores the next version of a record, durably.

        Returns False, and stores nothing, unless the stored version is the one before that of
        `run`; the first version is 1.
        """

    def get(self, id_: str) -> StoredRun | None:
        """Returns a record, or None. Costs one small read."""

    def all(self, *states: str) -> list[StoredRun]:
        """Returns the records (in one of these states), in the order of their ids."""

    def each(self, *states: str) -> Iterator[StoredRun]:
        """Yields what `all` returns, with a few records in memory: they can be large and many.

        Those that others change meanwhile are yielded as they were or as they are.
        """

    def delete(self, id_: str) -> None:
        """Deletes a record, durably. Does nothing if there is none."""


LEASE = 2.0
"""The duration of a lease in seconds."""


class Dump(Protocol):
    """One consistent state of everything in a store. Only for one thread.

    Each iterator must be read to its end before the next. Memory is bounded. Raises
    `StoreUnavailable`, and `DamagedObject` that names what fails its checksum.
    """

    @property
    def counts(self) -> Counts:
        """Returns the number of rows of each iterator."""

    def settings(self) -> StoredSettings:
        """Returns all settings."""

    def references(self) -> Iterator[StoredReference]:
        """Returns all references."""

    def moves(self) -> Iterator[Move]:
        """Returns the reflog, oldest first."""

    def requests(self) -> Iterator[RequestRecord]:
        """Returns the committed requests."""

    def runs(self) -> Iterator[StoredRun]:
        """Returns the records of pipelines' runs."""

    def objects(self) -> Iterator[PackedObject]:
        """Yields all objects in the order of their numbers: ancestors precede descendants."""


Reached = Callable[[Sequence[ReflogRow]], Container[bytes]]
"""Maps the moves since the mark, newest first, to the ids that must stay."""


class StoreMaintenance(Protocol):
    """Maintenance of one store, safe beside readers and writers of any process.

    Raises `StoreUnavailable`, and `DamagedObject` if the store itself is damaged.
    """

    def size(self) -> StoreSize:
        """Returns the size of the store on disk."""

    def objects(self) -> Iterator[ListedObject]:
        """Yields every object, the highest number of its kind first, in bounded memory.

        Objects that are written meanwhile may be missing.
        """

    def last_move(self) -> int:
        """Returns the highest number in the reflog. Later commits have higher ones."""

    def delete(
        self, ids: Sequence[bytes], written_before: int, since: int, reached: Reached
    ) -> Deleted:
        """Deletes those objects last written before this second, except those that are `reached`.

        This is one transaction during which no reference moves, so writers wait. `reached` gets the
        moves numbered above `since`. The object with the highest number stays, so that no number is
        used twice.
        """

    def expire(
        self, moves_before: int, requests_before: int, last_move: int, *, dry_run: bool = False
    ) -> Expired:
        """Deletes moves and request ids older than a time in microseconds, or only counts them.

        Moves numbered above `last_move` stay at any age, because a deletion still needs them. The
        newest row of the reflog stays, so that no number is used twice. The newest move of an
        existing reference stays if it has a message, which is the reference's.
        """

    def compact(self, *, full: bool = False) -> None:
        """Makes the space of deleted rows usable.

        `full` returns it to the file system while writers wait.
        """
