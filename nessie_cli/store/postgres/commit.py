"""Commits writes by one call of the function `commit_1`, and resolves lost answers.

A connection that breaks during a commit leaves its outcome open: the server may have committed, or
may still do so. Looking for the request ids is not enough. So each call has an `attempt`, a random
number, and a lost one is resolved by inserting a tombstone under every request id that excludes
this attempt. The insertion waits for a transaction that holds the id. Afterwards either the row of
the attempt is there (it is done), or the attempt finds the tombstone and fails.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, LiteralString

import psycopg
from psycopg import pq

from nessie_cli.errors import OutcomeUnknown, StoreUnavailable
from nessie_cli.store.postgres.errors import RETRIED, failure, is_about_text, unstorable
from nessie_cli.store.postgres.lease import END
from nessie_cli.store.postgres.parameters import Blobs, Numbers, Texts
from nessie_cli.store.postgres.pool import Connection, Pool
from nessie_cli.store.postgres.rows import pack_objects
from nessie_cli.store.records import (
    Done,
    Outcome,
    Repeated,
    Request,
    Requirement,
    Stale,
    StoredReference,
    Write,
)

REFRESH_AFTER = 3600
"""Seconds after which an object that is written again is marked as young.

A grace period is longer.
"""

_LEASES_HEEDED = 64  # references of one call: more would fill the server's table of locks
_PAUSE = 0.1  # seconds between two attempts to reach a server that is away

Parameters = dict[str, Any]


class Committer:
    """Commits writes to one store."""

    def __init__(self, pool: Pool, clock: Callable[[], float]) -> None:
        self._pool = pool
        self._clock = clock
        self._url = pool.location.url

    def commit(
        self, writes: Sequence[Write], leased: Connection | None = None, end_lease: bool = False
    ) -> list[Outcome]:
        """See `Store.commit`. `leased` is the connection that holds the caller's lease."""
        parameters = self._encoded(writes)
        deadline = time.monotonic() + self._pool.patience
        while True:
            try:
                return _outcomes(self._send(parameters, leased, end_lease))
            except _AnswerLost as lost:
                outcomes = self._resolved(writes, parameters["p_attempt"], lost.cause)
                if outcomes is not None:
                    return outcomes
                if leased is None:
                    raise failure(self._url, lost.cause) from lost.cause
                # The lease has ended, and its connection with it. Go on without one.
                leased = None
                parameters["p_attempt"] = os.urandom(16)
            except RETRIED as error:
                if time.monotonic() > deadline:
                    raise failure(self._url, error) from error
                time.sleep(random.uniform(0.001, 0.01))  # noqa: S311 - no secret
            except (psycopg.Error, UnicodeEncodeError) as error:
                if is_about_text(error):
                    raise unstorable(self._url) from error
                raise failure(self._url, error) from error

    def _encoded(self, writes: Sequence[Write]) -> Parameters:
        now = int(self._clock())
        try:
            return encode(writes) | {
                "p_attempt": os.urandom(16),
                "p_now": now,
                "p_old": now - REFRESH_AFTER,
            }
        except UnicodeEncodeError as error:
            raise unstorable(self._url) from error

    def _send(
        self, parameters: Parameters, leased: Connection | None, end_lease: bool
    ) -> list[tuple[Any, ...]]:
        if leased is not None:
            return _call(leased, _LAST_COMMIT if end_lease else _COMMIT, parameters)
        with self._pool.connection(writing=True) as connection:
            return _call(connection, _COMMIT, parameters)

    # -- lost answers --

    def _resolved(
        self, writes: Sequence[Write], attempt: bytes, cause: psycopg.Error
    ) -> list[Outcome] | None:
        """Returns the outcomes of a call whose answer was lost, or None if nothing was written."""
        first_id = writes[0].request.id
        unknown = OutcomeUnknown(
            f"store {self._url}: the connection was lost during a commit and its outcome could not"
            f" be found out; look for request {first_id}",
            first_id,
        )
        ids = {write.request.id for write in writes}
        if "" in ids:
            raise unknown from cause
        try:
            recorded = self._exclude(sorted(ids), attempt)
        except StoreUnavailable as error:
            raise unknown from error
        if attempt not in (by for by, _ in recorded.values()):
            return None
        # The transaction was committed, so each write of it either is recorded or was refused.
        outcomes: list[Outcome | None] = []
        used: set[str] = set()
        for write in writes:
            by, request = recorded.get(write.request.id, (None, None))
            if request is None:
                outcomes.append(None)
            elif by == attempt and request == write.request and request.id not in used:
                used.add(request.id)
                outcomes.append(Done())
            else:
                outcomes.append(Repeated(request))
        return self._decided_again(writes, outcomes, unknown)

    def _decided_again(
        self, writes: Sequence[Write], outcomes: list[Outcome | None], unknown: OutcomeUnknown
    ) -> list[Outcome]:
        """Fills in the outcomes of writes that were refused for a reason that was lost."""
        refused = [write for write, outcome in zip(writes, outcomes, strict=True) if not outcome]
        try:
            again = iter(self.commit(refused) if refused else [])
        except StoreUnavailable as error:
            # Not "nothing was written": the others are done.
            raise unknown from error
        return [outcome or next(again) for outcome in outcomes]

    def _exclude(
        self, ids: Sequence[str], attempt: bytes
    ) -> dict[str, tuple[bytes | None, Request]]:
        """Inserts tombstones; returns the requests that are recorded, each with its attempt."""
        deadline = time.monotonic() + self._pool.patience
        while True:
            try:
                connection = self._pool.connect()
                try:
                    return _insert_tombstones(connection, ids, attempt, int(self._clock() * 1e6))
                except psycopg.Error as error:
                    raise failure(self._url, error) from error
                finally:
                    connection.close()
            except StoreUnavailable:
                if self._pool.closed or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE)


class _AnswerLost(Exception):
    """The call was sent, and whether it was committed is not known."""

    def __init__(self, cause: psycopg.Error) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _call(
    connection: Connection, commit: LiteralString, parameters: Parameters
) -> list[tuple[Any, ...]]:
    try:
        return connection.execute(commit, parameters, binary=True).fetchall()
    except psycopg.Error as error:
        state = connection.pgconn
        intact = state.status == pq.ConnStatus.OK
        idle = state.transaction_status == pq.TransactionStatus.IDLE
        if intact and idle and (error.sqlstate is not None or is_about_text(error)):
            # The server has refused it and is ready for more: the transaction was rolled back.
            raise
        raise _AnswerLost(error) from error


def _insert_tombstones(
    connection: Connection, ids: Sequence[str], attempt: bytes, now: int
) -> dict[str, tuple[bytes | None, Request]]:
    with connection.transaction():
        for id_ in ids:
            connection.execute(_TOMBSTONE, (id_, now, attempt, attempt))
        rows = connection.execute(_RECORDED, (Texts(ids),), binary=True).fetchall()
    return {row[0]: (row[5], Request(*row[:5])) for row in rows}


def encode(writes: Sequence[Write]) -> Parameters:
    """Returns the parameters of `commit_1` that say what the writes are."""
    return {
        **_encode_requests(writes),
        **_encode_moves(writes),
        **_encode_objects(writes),
        **_encode_settings(writes),
    }


def _encode_requests(writes: Sequence[Write]) -> Parameters:
    requests = [write.request for write in writes]
    last: dict[str, int] = {}
    previous = Numbers()
    for number, request in enumerate(requests, 1):
        previous.append(last.get(request.id))
        last[request.id] = number
    return {
        "p_request_ids": Texts(one.id for one in requests),
        "p_callers": Texts(one.caller for one in requests),
        "p_digests": Blobs(one.digest for one in requests),
        "p_results": Blobs(one.result for one in requests),
        "p_times": Numbers(one.time for one in requests),
        "p_previous": previous,
    }


def _encode_moves(writes: Sequence[Write]) -> Parameters:
    rows = [(number, move) for number, write in enumerate(writes, 1) for move in write.moves]
    names = sorted({move.name for _, move in rows})
    position = {name: number for number, name in enumerate(names, 1)}
    moves = [move for _, move in rows]
    return {
        "p_leased": Texts(names[:_LEASES_HEEDED]),
        "p_names": Texts(names),
        "p_move_writes": Numbers(number for number, _ in rows),
        "p_move_names": Numbers(position[move.name] for move in moves),
        "p_move_kinds": Texts(move.kind for move in moves),
        "p_befores": Blobs(move.before for move in moves),
        "p_afters": Blobs(move.after for move in moves),
        "p_move_times": Numbers(move.time for move in moves),
        "p_whos": Texts(move.who for move in moves),
        "p_operations": Texts(move.operation for move in moves),
        "p_messages": Texts(move.message for move in moves),
        "p_move_requests": Texts(move.request_id for move in moves),
    }


def _encode_objects(writes: Sequence[Write]) -> Parameters:
    objects = pack_objects(stored for write in writes for stored in write.objects)
    position = {id_: number for number, id_ in enumerate(objects.ids, 1)}
    users = [(n, position[one.id]) for n, write in enumerate(writes, 1) for one in write.objects]
    required = [(n, id_) for n, write in enumerate(writes, 1) for id_ in write.required]
    return {
        "p_required_writes": Numbers(number for number, _ in required),
        "p_required": Blobs(id_ for _, id_ in required),
        "p_user_writes": Numbers(number for number, _ in users),
        "p_user_objects": Numbers(object_ for _, object_ in users),
        "p_ids": objects.ids,
        "p_ordinals": objects.ordinals,
        "p_kinds": objects.kinds,
        "p_data": objects.data,
        "p_entry_ids": objects.entry_ids,
        "p_entries": objects.entries,
    }


def _encode_settings(writes: Sequence[Write]) -> Parameters:
    versions = Numbers(write.settings_version for write in writes)
    rows = [(n, *item) for n, write in enumerate(writes, 1) for item in write.settings.items()]
    required = any(version is not None for version in versions)
    return {
        "p_settings_lock": 2 if rows else 1 if required else 0,
        "p_settings_versions": versions,
        "p_setting_writes": Numbers(number for number, _, _ in rows),
        "p_setting_names": Texts(name for _, name, _ in rows),
        "p_setting_values": Texts(value for _, _, value in rows),
    }


def _outcomes(rows: Iterable[tuple[Any, ...]]) -> list[Outcome]:
    return [_outcome(*row) for row in rows]


def _outcome(
    word: str, name: str | None, kind: str | None, target: bytes | None, *request: Any
) -> Outcome:
    if word == "done":
        return Done()
    if word == "repeated":
        return Repeated(Request(*request))
    if name is None:
        return Stale(Requirement(word))
    current = None if target is None else StoredReference(name, str(kind), target)
    return Stale(Requirement(word), name, current)


_NAMES = (*encode([]), "p_attempt", "p_now", "p_old")
_CALL = f"commit_1({', '.join(f'{name} => %({name})s' for name in _NAMES)})"
_COMMIT = f"SELECT * FROM {_CALL}"  # noqa: S608
# The rows of a function are complete before the first is returned, and it has locked the lease in
# shared mode. So the next holder waits for the end of this transaction, although the exclusive lock
# is given back here.
_LAST_COMMIT = f"SELECT o.*, {END} FROM {_CALL} AS o"  # noqa: S608

# An id that is committed stays as it is; a tombstone of earlier attempts excludes this one, too.
_TOMBSTONE = """INSERT INTO requests AS r (id, time, excluded) VALUES (%s, %s, ARRAY[%s::bytea])
    ON CONFLICT (id) DO UPDATE SET excluded = r.excluded || %s::bytea WHERE r.result IS NULL"""
_RECORDED = """SELECT id, caller, digest, result, time, attempt FROM requests
    WHERE id = ANY (%s) AND result IS NOT NULL"""
