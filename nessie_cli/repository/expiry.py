"""How long the repository remembers: settings for the expiry of the reflog and of request ids."""

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


class Expiry(Struct, frozen=True):
    """How old entries of the reflog and request ids become. Requests never outlive the moves that they made."""

    moves: timedelta
    requests: timedelta


def expiry(settings: Mapping[str, str]) -> Expiry:
    """Returns what the settings of a repository say, with defaults for those that are not set."""
    moves, requests = (
        parse_duration(settings[name]) if name in settings else default
        for name, default in DEFAULTS.items()
    )
    return Expiry(moves, min(moves, requests))


def check_setting(name: str, value: str | None) -> None:
    """Raises `InvalidInput` if an expiry is not a duration or is too short."""
    if name not in DEFAULTS or value is None:
        return
    if parse_duration(value) < SHORTEST:
        raise InvalidInput(f"setting {name}: {value!r} is too short; the shortest is 1h")
