"""The expiry of the reflog and of request ids, by settings of the repository."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from msgspec import Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.model.durations import parse_duration

REFLOG_EXPIRY = "reflog-expiry"
REQUEST_EXPIRY = "request-expiry"
DEFAULTS: Mapping[str, timedelta] = {
    REFLOG_EXPIRY: timedelta(days=90),
    REQUEST_EXPIRY: timedelta(days=7),
}
SHORTEST = timedelta(hours=1)
"""The shortest expiry: a client that repeats a request must still find it."""


class ExpiryLimits(Struct, frozen=True):
    """The ages at which reflog entries and request ids expire.

    Requests never outlive their moves.
    """

    moves: timedelta
    requests: timedelta


def expiry(settings: Mapping[str, str]) -> ExpiryLimits:
    """Returns the expiry that the settings of a repository give, with defaults."""
    moves, requests = (
        parse_duration(settings[name]) if name in settings else default
        for name, default in DEFAULTS.items()
    )
    return ExpiryLimits(moves, min(moves, requests))


def moves_before(limits: ExpiryLimits, now: int) -> int:
    """Returns the time before which reflog entries have expired. Both are in microseconds."""
    return now - limits.moves // timedelta(microseconds=1)


def check_setting(name: str, value: str | None) -> None:
    """Raises `InvalidInput` if an expiry is not a duration or is too short."""
    if name not in DEFAULTS or value is None:
        return
    if parse_duration(value) < SHORTEST:
        raise InvalidInput(f"setting {name}: {value!r} is too short; the shortest is 1h")
