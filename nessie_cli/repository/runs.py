"""The records of runs, as values in a table of the store, and the tokens of runs.

A token is `nessie-run_ID_SECRET`. Its record has the SHA-256 of the secret, so a token ends with
its run, and a minute after the last sign of life. It stands for the caller who began the run.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from msgspec import MsgspecError, Struct, json
from msgspec.structs import replace

from nessie_cli.errors import DamagedObject, NotFound
from nessie_cli.model.runs import PipelineRun, RunState
from nessie_cli.store.base import RunTable
from nessie_cli.store.records import StoredRun

TOKEN_LIFE = 60
"""Seconds without a sign of life of a run after which its token is refused."""
_TOKEN = re.compile(r"nessie-run_([a-z0-9][a-z0-9._-]{0,99})_([A-Za-z0-9_-]{43})")
_encode, _decode = json.Encoder().encode, json.Decoder(PipelineRun).decode


class RunRecord(Struct, frozen=True):
    """A run, and the version of its record, which grows with each change."""

    run: PipelineRun
    version: int = 0


class RunRecords(Protocol):
    """The records of the runs of a repository. Raises `StoreUnavailable` and `NotAllowed`."""

    def get(self, id_: str) -> RunRecord | None:
        """Returns the record of a run, or None."""

    def all(self, *states: RunState) -> list[RunRecord]:
        """Returns the records of all runs (in one of these states), the oldest first."""

    def put(self, record: RunRecord) -> RunRecord | None:
        """Stores a record, and returns it with its new version.

        Returns None, and stores nothing, if another process has changed it since it was read. A
        record of version 0 is new.
        """

    def delete(self, id_: str) -> None:
        """Deletes a record."""


class StoredRuns:
    """The `RunRecords` of a store."""

    def __init__(self, table: RunTable) -> None:
        self._table = table

    def get(self, id_: str) -> RunRecord | None:
        """Returns the record of a run, or None."""
        stored = self._table.get(id_)
        return None if stored is None else read_record(stored)

    def all(self, *states: RunState) -> list[RunRecord]:
        """Returns the records of all runs (in one of these states), the oldest first."""
        records = map(read_record, self._table.all(*states))
        return sorted(records, key=lambda record: (record.run.began, record.run.id))

    def each(self, *states: RunState) -> Iterator[RunRecord]:
        """Yields the records of all runs (in one of these states), with a few in memory."""
        return map(read_record, self._table.each(*states))

    def put(self, record: RunRecord) -> RunRecord | None:
        """Stores a record, and returns it with its new version, or None."""
        run, version = replace(record.run, seen=int(time.time())), record.version + 1
        stored = StoredRun(run.id, run.state, _encode(run), version)
        return RunRecord(run, version) if self._table.put(stored) else None

    def delete(self, id_: str) -> None:
        """Deletes a record."""
        self._table.delete(id_)


def new_token(id_: str) -> tuple[str, str]:
    """Returns a new token of a run, and the hash for its record."""
    secret = secrets.token_urlsafe(32)
    return f"nessie-run_{id_}_{secret}", _hash(secret)


def is_run_token(token: str) -> bool:
    """Returns whether a token has the form of those that `new_token` makes."""
    return _TOKEN.fullmatch(token) is not None


class RunToken(NamedTuple):
    """The run of a token, and the credential of the caller that the token depends on, or ""."""

    run: PipelineRun
    credential: str


def find_token(records: RunRecords, token: str) -> RunToken | None:
    """Returns the run of a token, or None if it has ended or its process was killed.

    Reads its record.
    """
    match = _TOKEN.fullmatch(token)
    record = records.get(match[1]) if match else None
    if match is None or record is None or record.run.state is not RunState.RUNNING:
        return None
    if time.time() - record.run.seen > TOKEN_LIFE:
        return None
    given, run = _hash(match[2]), record.run
    valid = [token for token in run.tokens if hmac.compare_digest(given, token)]
    return RunToken(run, run.credentials.get(valid[0], "")) if valid else None


def run_not_found(id_: str) -> NotFound:
    """Returns the error for an unknown run."""
    return NotFound(f"there is no run {id_}", hint="nessie run --list")


def read_record(stored: StoredRun) -> RunRecord:
    """Returns a stored record. Raises `DamagedObject`."""
    try:
        return RunRecord(_decode(stored.data), stored.version)
    except MsgspecError as error:
        raise DamagedObject(f"the record of run {stored.id} cannot be read: {error}") from None


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("ascii")).hexdigest()
