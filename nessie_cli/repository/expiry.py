"""The expiry of the reflog, of request ids and of runs, by settings of the repository."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from msgspec import Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.model.durations import parse_duration

REFLOG_EXPIRY = "reflog-expiry"
REQUEST_EXPIRY = "request-expiry"
RUN_EXPIRY = "run-expiry"
DEFAULTS: Mapping[str, timedelta] = {
    REFLOG_EXPIRY: timedelta(days=90),
    REQUEST_EXPIRY: timedelta(days=7),
    RUN_EXPIRY: timedelta(days=14),
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
    moves = _age(settings, REFLOG_EXPIRY)
    return ExpiryLimits(moves, min(moves, _age(settings, REQUEST_EXPIRY)))


def run_expiry(settings: Mapping[str, str]) -> timedelta:
    """Returns the age at which the branch of a run that was not published is deleted."""
    return _age(settings, RUN_EXPIRY)


def _age(settings: Mapping[str, str], name: str) -> timedelta:
    return parse_duration(settings[name]) if name in settings else DEFAULTS[name]


def moves_before(limits: ExpiryLimits, now: int) -> int:
    """Returns the time before which reflog entries have expired. Both are in microseconds."""
    return now - limits.moves // timedelta(microseconds=1)


def check_setting(name: str, value: str | None) -> None:
    """Raises `InvalidInput` if an expiry is not a duration or is too short."""
    if name not in DEFAULTS or value is None:
        return
    if parse_duration(value) < SHORTEST:
        raise InvalidInput(f"setting {name}: {value!r} is too short; the shortest is 1h")
