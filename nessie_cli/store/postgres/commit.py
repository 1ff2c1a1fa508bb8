"""Commits writes in one transaction of two round trips, and resolves lost answers.

The first trip locks what the writes need and reads its state, on which Python decides. The second
one sends all changes and COMMIT. Transactions run at READ COMMITTED: each statement sees what was
committed before it began, so one that follows a lock reads the newest state.

A connection that breaks during the second trip leaves its outcome open: the server may have
committed, or may still do so. So the first statement of the trip inserts a random `attempt`. To
resolve a lost answer, the client inserts the same row. This waits for the transaction, if it is
under way. Afterwards either the row was there (the commit is done), or the commit can only fail.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import LiteralString

import psycopg
from psycopg import pq

from nessie_cli.errors import OutcomeUnknown, StoreUnavailable
from nessie_cli.store.chain import chain_of_setting
from nessie_cli.store.postgres.errors import RETRIED, failure, is_about_text, unstorable
from nessie_cli.store.postgres.lease import END, HeldLease
from nessie_cli.store.postgres.location import Location
from nessie_cli.store.postgres.pool import Pool, PostgresConnection, Statement
from nessie_cli.store.postgres.rows import (
    ADD_ANCHORS,
    ANCHOR_COLUMNS,
    PUT,
    Blobs,
    Numbers,
    Texts,
    Types,
    columns,
    packed,
    put_values,
)
from nessie_cli.store.records import DONE, Needs, Outcome, PackedObject, Write, WriteDecision
from nessie_cli.store.rows import (
    REFERENCE,
    REQUEST,
    DamagedRow,
    log_rows,
    reference_of,
    reference_row,
    request_of,
    request_row,
    with_check,
)

_LEASES_HEEDED = 64  # references of one call: more would fill the server's table of locks
_BUCKETS = 64  # locks that all names of new references share, for the same reason
_PAUSE = 0.1  # seconds between two attempts to reach a server that is away
# Of the time that is left: how long the second trip waits. The rest is for finding out its outcome.
_CHANGES_SHARE = 2 / 3

_LOCK_SHARED = "SELECT pg_advisory_xact_lock_shared(key) FROM unnest(%s) AS key"
_LOCK = "SELECT pg_advisory_xact_lock(key) FROM unnest(%s) AS key"
# Without a name it still locks the table: then no object is deleted until the end of the
# transaction.
_REFERENCES: LiteralString = f"{REFERENCE} WHERE name = ANY (%s) ORDER BY name FOR UPDATE"
_STATE = """SELECT (SELECT coalesce(max(version), 0) FROM settings),
    ARRAY(SELECT nextval('reflog_numbers') FROM generate_series(1, %s))"""
_REQUESTS: LiteralString = f"{REQUEST} WHERE id = ANY (%s)"
_EXIST = "SELECT id FROM objects WHERE id = ANY (%s)"
_CHAINS = """SELECT name, coalesce(
        (SELECT digest FROM reflog WHERE reflog.name = n.name ORDER BY number DESC LIMIT 1),
        (SELECT digest FROM anchors WHERE anchors.name = n.name), '')
    FROM unnest(%s) AS n (name)"""

_END: Sequence[Statement] = [(f"SELECT {END}", ())]
_ATTEMPT = "INSERT INTO attempts (time, id) VALUES (%s, %s)"
_EXCLUDE: LiteralString = f"{_ATTEMPT} ON CONFLICT DO NOTHING"
_RECORD = """INSERT INTO requests (id, caller, digest, result, time, check_sum)
    SELECT * FROM unnest(%s, %s, %s, %s, %s, %s)"""
_CREATE = """INSERT INTO refs (name, kind, target, newest, check_sum)
    SELECT * FROM unnest(%s, %s, %s, %s, %s)"""
_MOVE = """UPDATE refs AS r SET kind = n.kind, target = n.target, newest = n.newest,
        check_sum = n.check_sum
    FROM unnest(%s, %s, %s, %s, %s) AS n (name, kind, target, newest, check_sum)
    WHERE r.name = n.name"""
_DELETE = "DELETE FROM refs WHERE name = ANY (%s)"
_LOG = """INSERT INTO reflog (number, name, kind, before, after, time, who, operation, message,
        request_id, previous, digest)
    SELECT * FROM unnest(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"""
_SET = """INSERT INTO settings AS s (name, value, version, newest, check_sum)
    SELECT * FROM unnest(%s, %s, %s, %s, %s) ON CONFLICT (name) DO UPDATE
    SET value = excluded.value, version = excluded.version, newest = excluded.newest,
        check_sum = excluded.check_sum"""

_REQUEST_TYPES = (Texts, Texts, Blobs, Blobs, Numbers, Numbers)
_REFERENCE_TYPES = (Texts, Texts, Blobs, Blobs, Numbers)
_LOG_TYPES: Types = (Numbers, Texts, Texts, Blobs, Blobs, Numbers, *[Texts] * 4, Blobs, Blobs)
_SETTING_TYPES = (Texts, Texts, Numbers, Blobs, Numbers)


class Committer:
    """Commits writes to one store."""

    def __init__(self, pool: Pool, clock: Callable[[], float]) -> None:
        self._pool = pool
        self._clock = clock
        self._url = pool.location.url

    def commit(
        self,
        writes: Sequence[Write],
        lease: HeldLease | None = None,
        end_lease: bool = False,
    ) -> list[Outcome]:
        """Decides writes in order. `lease` is that of the caller.

        All waits together take at most the patience of the pool.
        """
        # Packed before anything is locked.
        objects = [packed(write.objects) for write in writes]
        deadline = time.monotonic() + self._pool.patience
        while True:
            try:
                with self._lent(lease, deadline) as connection:
                    last = _END if lease is not None and end_lease else ()
                    respected = None if lease is None else lease.name
                    return self._commit(
                        connection, deadline, writes, objects, last, respected=respected
                    )
            except _AnswerLost as lost:
                if self._is_done(lost, writes[0].request.id, deadline):
                    return lost.outcomes
                if lease is None or time.monotonic() > deadline:
                    raise failure(self._url, lost.cause) from lost.cause
                lease = None
            except RETRIED as error:
                if time.monotonic() > deadline:
                    raise failure(self._url, error) from error
                time.sleep(random.uniform(0.001, 0.01))  # noqa: S311 - no secret
            except (psycopg.Error, UnicodeEncodeError, DamagedRow) as error:
                if is_about_text(error):
                    raise unstorable(self._url) from error
                if lease is None or not lease.connection.closed or time.monotonic() > deadline:
                    raise failure(self._url, error) from error
                # The lease has ended, and its connection with it. Go on without one.
                lease = None

    @contextmanager
    def _lent(self, lease: HeldLease | None, until: float) -> Iterator[PostgresConnection]:
        if lease is not None:
            lease.connection.longest_wait = self._pool.limit(until)
            yield lease.connection
        else:
            with self._pool.connection(writing=True, until=until) as connection:
                yield connection

    def _commit(
        self,
        connection: PostgresConnection,
        deadline: float,
        writes: Sequence[Write],
        objects: Sequence[Sequence[PackedObject]],
        last: Sequence[Statement],
        *,
        respected: str | None,
    ) -> list[Outcome]:
        """Decides writes. `last` ends the lease. `respected` is its name, None to respect all."""
        with _rolled_back_after_errors(connection):
            state = _LockedState(connection, self._pool.location, writes, respected)
            outcomes = [state.decision.decide(write) for write in writes]
            if not state.decision.done:
                connection.send([("ROLLBACK", ()), *last])
                return outcomes
            done = [
                stored
                for each, outcome in zip(objects, outcomes, strict=True)
                if outcome is DONE
                for stored in each
            ]
            now = self._clock()
            attempt = (int(now * 1e6), os.urandom(16))
            statements = [(_ATTEMPT, attempt), *state.changes()]
            if done:
                statements.append((PUT, put_values(int(now), done)))
            connection.longest_wait = _CHANGES_SHARE * self._pool.limit(deadline)
            try:
                # The shared lock on the lease lasts until COMMIT, so its next holder still waits.
                connection.send([*statements, *last, ("COMMIT", ())])
            except psycopg.Error as error:
                if _is_intact(connection):
                    # The server has refused it, so COMMIT was not executed.
                    raise
                raise _AnswerLost(error, attempt, outcomes) from error
            return outcomes

    # -- lost answers --

    def _is_done(self, lost: _AnswerLost, request_id: str, deadline: float) -> bool:
        """Returns whether a commit whose answer was lost is done; otherwise it never will be."""
        while True:
            try:
                return not self._exclude(lost.attempt, deadline)
            except StoreUnavailable as error:
                if self._pool.closed or time.monotonic() > deadline:
                    raise OutcomeUnknown(
                        f"store {self._url}: the connection was lost during a commit, and its"
                        f" outcome is unknown; look for request {request_id}",
                        request_id,
                    ) from error
                time.sleep(_PAUSE)

    def _exclude(self, attempt: tuple[int, bytes], until: float) -> bool:
        connection = self._pool.connect(until)
        connection.longest_wait = self._pool.limit(until)
        try:
            return connection.execute(_EXCLUDE, attempt).rowcount == 1
        except psycopg.Error as error:
            raise failure(self._url, error) from error
        finally:
            connection.close()


class _AnswerLost(Exception):
    """The changes were sent, and whether they were committed is not known."""

    def __init__(
        self, cause: psycopg.Error, attempt: tuple[int, bytes], outcomes: list[Outcome]
    ) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.attempt = attempt
        self.outcomes = outcomes


class _LockedState:
    """The state on which writes are decided, read under locks in a new transaction.

    The order of locks is the same for all: leases, settings, names of new references, references,
    and then those of the changes; each in its own sorted order.
    """

    def __init__(
        self,
        connection: PostgresConnection,
        location: Location,
        writes: Sequence[Write],
        respected: str | None,
    ) -> None:
        needs = Needs(writes)
        moves = [move for write in writes for move in write.moves]
        # A reference that does not exist has no row to lock.
        created = Texts(sorted({move.name for move in moves if move.before is None}))
        changed = [chain_of_setting(name) for write in writes for name in write.settings]
        leases = sorted(needs.references) if respected is None else [respected]
        shared, exclusive = _locks(location, writes, leases, created)
        statements: dict[str, Statement] = {
            "begin": ("BEGIN", ()),
            "shared": (_LOCK_SHARED, (shared,)),
            "exclusive": (_LOCK, (exclusive,)),
            "references": (_REFERENCES, (Texts(sorted(needs.references)),)),
            "state": (_STATE, (len(moves),)),
            "requests": (_REQUESTS, (Texts(needs.requests),)),
            "objects": (_EXIST, (Blobs(needs.objects),)),
            "chains": (_CHAINS, (Texts({*created, *changed}),)),
        }
        sent = {
            name: statement
            for name, statement in statements.items()
            if name in ("begin", "references", "state") or statement[1][0]
        }
        rows = dict(zip(sent, connection.send(list(sent.values())), strict=True))
        [[version, self._numbers]] = rows["state"]
        references = {row[0]: reference_of(row) for row in rows["references"]}
        self._before = {name: references.get(name) for name in needs.references}
        self._newest: dict[str, bytes] = dict(rows.get("chains", ()))
        self._newest |= {row[0]: row[3] for row in rows["references"]}
        self.decision = WriteDecision(
            dict(self._before),
            {row[0]: request_of(row) for row in rows.get("requests", ())},
            {id_ for (id_,) in rows.get("objects", ())},
            version,
        )

    def changes(self) -> Iterator[Statement]:
        """Yields the statements that apply everything that was decided, but objects."""
        if requests := sorted(self.decision.requests, key=lambda request: request.id):
            yield _RECORD, columns(_REQUEST_TYPES, list(map(request_row, requests)))
        if moves := self.decision.moves:
            yield _LOG, columns(_LOG_TYPES, log_rows(self._numbers, moves, self._newest))
            yield from self._moved({move.name for move in moves})
        if settings := self.decision.settings:
            entries = {name: self._newest.get(chain_of_setting(name), b"") for name in settings}
            rows = [
                with_check("settings", name, value, version, entries[name])
                for name, (value, version) in settings.items()
            ]
            yield _SET, columns(_SETTING_TYPES, rows)
            # An anchor shows that a setting without entries exists.
            chains = [chain_of_setting(name) for name, entry in entries.items() if not entry]
            if chains:
                anchors = [with_check("anchors", name, b"") for name in chains]
                yield ADD_ANCHORS, columns(ANCHOR_COLUMNS, anchors)

    def _moved(self, names: set[str]) -> Iterator[Statement]:
        after = {name: self.decision.references[name] for name in sorted(names)}
        rows = {
            name: reference_row(reference, self._newest[name])
            for name, reference in after.items()
            if reference is not None
        }
        if moved := [row for name, row in rows.items() if self._before[name] is not None]:
            yield _MOVE, columns(_REFERENCE_TYPES, moved)
        if created := [row for name, row in rows.items() if self._before[name] is None]:
            yield _CREATE, columns(_REFERENCE_TYPES, created)
        if deleted := [name for name in after if after[name] is None and self._before[name]]:
            yield _DELETE, (Texts(deleted),)


def _locks(
    location: Location,
    writes: Sequence[Write],
    leases: Sequence[str],
    created: Sequence[str | None],
) -> tuple[Numbers, Numbers]:
    """Returns the keys of the shared and of the exclusive locks of writes."""
    shared = Numbers(location.lock_key(f"lease {name}") for name in leases[:_LEASES_HEEDED])
    buckets = sorted({location.lock_key(f"new {name}") % _BUCKETS for name in created})
    exclusive = Numbers(location.lock_key(f"new {bucket}") for bucket in buckets)
    if any(write.settings for write in writes):
        exclusive.insert(0, location.lock_key("settings"))
    elif any(write.settings_version is not None for write in writes):
        shared.append(location.lock_key("settings"))
    return shared, exclusive


@contextmanager
def _rolled_back_after_errors(connection: PostgresConnection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if _is_intact(connection):
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK", prepare=False)
        raise


def _is_intact(connection: PostgresConnection) -> bool:
    """Returns whether the server is ready for more, and has told so."""
    state = connection.pgconn
    return (
        state.status == pq.ConnStatus.OK and state.transaction_status != pq.TransactionStatus.ACTIVE
    )
