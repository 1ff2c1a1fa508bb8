"""The header `Idempotency-Key`: a repeated request is carried out once.

The key of a request that commits is its request id, so the store knows its outcome, on every server
and after a restart. This module remembers what the store does not: refusals and requests that
changed nothing, for the time that the configuration announces, and the running requests, so that a
repetition waits for the first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.server.iceberg.errors import REMEMBERED, RepeatedRefusal

A = TypeVar("A")
LIFETIME = 1800.0
LIFETIME_TEXT = "PT30M"
"""How long a client may repeat a request under its key."""
MOST = 10_000
"""Keys that are remembered. Beyond that the oldest is forgotten."""
_LENGTH = 36
OwnKey = tuple[str, str]
"""A caller and a key: the reflog shows keys to others, who must not use them up."""


def checked(key: str) -> str:
    """Returns a key in lower case. Raises `InvalidInput` for one that is not a UUID."""
    try:
        UUID(key)
    except ValueError:
        key = ""
    if len(key) != _LENGTH:
        raise InvalidInput("Idempotency-Key: must be a UUID of 36 characters")
    return key.lower()


class _Use:
    """The use of one key. The lock is held while its request runs."""

    def __init__(self, digest: bytes) -> None:
        self.digest = digest
        self.lock = threading.Lock()
        self.since = time.monotonic()
        self.refusal: RepeatedRefusal | None = None
        self.unchanged_at: str | None = None


class Idempotency:
    """The keys of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._uses: dict[OwnKey, _Use] = {}

    def once(
        self, key: OwnKey, digest: bytes, may: Callable[[], object], run: Callable[[], A]
    ) -> A:
        """Runs a request under its key; raises the refusal of its first run.

        `may` raises if the caller may no longer write. Raises `InvalidInput` if the key was used
        for another request.
        """
        use = self._use(key, digest)
        with use.lock:
            if use.digest != digest:
                raise InvalidInput(
                    f"Idempotency-Key {key[1]} was used for another request; use a new one for each"
                )
            if use.refusal is not None:
                may()
                raise use.refusal.with_traceback(None)
            try:
                return run()
            except NessieError as error:
                if error.status in REMEMBERED:
                    use.refusal = RepeatedRefusal(error)
                raise

    def unchanged_at(self, key: OwnKey) -> str | None:
        """Returns the commit at which the request of a key changed nothing, if it did."""
        with self._lock:
            use = self._uses.get(key)
            return use.unchanged_at if use is not None else None

    def remember_unchanged(self, key: OwnKey, at: str) -> None:
        """Says that the running request of a key changes nothing at a commit."""
        with self._lock:
            if (use := self._uses.get(key)) is not None:
                use.unchanged_at = at

    def _use(self, key: OwnKey, digest: bytes) -> _Use:
        now = time.monotonic()
        with self._lock:
            while self._uses:
                oldest = next(iter(self._uses))
                use = self._uses[oldest]
                if use.since + LIFETIME > now and len(self._uses) <= MOST:
                    break
                del self._uses[oldest]
            return self._uses.setdefault(key, _Use(digest))
