"""Durations as text: ISO 8601 (`P3D`, `PT36H`) or in short (`3d`, `1d 12h`, `90m`)."""

from __future__ import annotations

import re
from datetime import timedelta

from nessie_cli.errors import InvalidInput

LONGEST = timedelta(days=365_000)
"""The longest duration that is accepted."""

_DURATION = re.compile(
    r"(?P<sign>[+-]?)P(?:(?P<days>[+-]?\d{1,15})D)?"
    r"(?P<time>T(?:(?P<hours>[+-]?\d{1,15})H)?(?:(?P<minutes>[+-]?\d{1,12})M)?"
    r"(?:(?P<seconds>[+-]?\d{1,12})(?P<fraction>\.\d{0,9})?S)?)?",
    re.IGNORECASE,
)
_SHORT = re.compile(
    r"(?:(\d{1,6})w\s*)?(?:(\d{1,6})d\s*)?(?:(\d{1,7})h\s*)?(?:(\d{1,9})m\s*)?(?:(\d{1,11})s)?",
    re.IGNORECASE,
)
_UNITS = ("weeks", "days", "hours", "minutes", "seconds")
_NANOS = 10**9


def parse_duration(text: str) -> timedelta:
    """Returns a duration that is not negative; raises `InvalidInput`."""
    duration = find_duration(text.strip())
    if duration is None:
        raise InvalidInput(
            f"duration {text!r}: write it as P3D or PT36H, or in short as 3d, 36h, 1d 12h"
        )
    if not timedelta(0) <= duration <= LONGEST:
        raise InvalidInput(f"duration {text!r} is negative or longer than {LONGEST.days} days")
    return duration


def find_duration(text: str) -> timedelta | None:
    """Returns the duration that a text means, or None if it means none."""
    short = _SHORT.fullmatch(text)
    try:
        if short and any(short.groups()):
            return timedelta(
                **{
                    unit: int(value or 0)
                    for unit, value in zip(_UNITS, short.groups(), strict=True)
                }
            )
        nanos = duration_nanos(text)
        return None if nanos is None else timedelta(microseconds=nanos // 1000)
    except OverflowError:
        return timedelta.max


def duration_nanos(text: str) -> int | None:
    """Returns the nanoseconds of an ISO 8601 duration without months, or None for other text."""
    match = _DURATION.fullmatch(text)
    if not match or text.upper().rstrip("+-").endswith(("P", "T")):
        return None
    parts = {name: int(match[name] or 0) for name in ("days", "hours", "minutes", "seconds")}
    seconds = (
        parts["days"] * 86400 + parts["hours"] * 3600 + parts["minutes"] * 60 + parts["seconds"]
    )
    nanos = int((match["fraction"] or ".")[1:].ljust(9, "0"))
    if (match["seconds"] or "").startswith("-"):
        nanos = -nanos
    total = seconds * _NANOS + nanos
    return -total if match["sign"] == "-" else total
