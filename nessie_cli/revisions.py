"""Revisions: the text that names a commit, such as `main@2e1c~2^1*2026-01-01T00:00:00Z`.

Grammar: `[name][@hash]` or a bare hash, then any of `~N` (Nth predecessor), `^N` (Nth parent) and
`*TIME` (newest commit not after TIME). Only a repository knows whether a bare word is a reference
or an abbreviated hash; `Revision.name` contains it until then. See
https://projectnessie.org/nessie-latest/spec/ for references in REST paths.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.model import MAX_NAME_LENGTH, check_reference_name, check_revision_size

HEAD = "HEAD"
_OF_REFLOG = (
    "`nessie reflog REF` lists earlier hashes of a reference; REF@HASH and REF*yesterday name"
    " earlier revisions"
)
"""The hint for git's `main@{1}`."""
_HASH = r"[0-9a-fA-F]{4,64}"
_STEP = r"([~^])(\d*)|\*([^~^*]+)"
_AGO = r"(\d+) *(second|minute|hour|day|week|month|year)s?(?: +ago)?"
_YEAR_DIGITS = 8
"""Up to this many digits are a date (20260131), more are epoch milliseconds."""
_MOST_DIGITS = 20
_UNIT = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
    "month": timedelta(days=30),
    "year": timedelta(days=365),
}


class StepKind(StrEnum):
    """How a step goes back in history."""

    ANCESTOR = "~"
    PARENT = "^"
    TIME = "*"


class RevisionStep(Struct, frozen=True):
    """One step back; `count` for `~` and `^`, `time` for `*`."""

    kind: StepKind
    count: int = 0
    time: datetime | None = None

    def __str__(self) -> str:
        """The text form."""
        return f"*{format_time(self.time)}" if self.time else f"{self.kind.value}{self.count}"


class Revision(Struct, frozen=True):
    """A parsed revision.

    `name` is a reference name, HEAD or (for a bare word) a hash, perhaps abbreviated. `hash` is the
    text after the `@`.
    """

    name: str | None
    hash: str | None = None
    steps: tuple[RevisionStep, ...] = ()

    def __str__(self) -> str:
        """The text form; `parse` gives the value back."""
        return (
            (self.name or "")
            + (f"@{self.hash}" if self.hash else "")
            + "".join(map(str, self.steps))
        )


class RevisionRange(Struct, frozen=True):
    """`A..B`, or `A...B` with `symmetric`: from the merge base on.

    An end that is left out is HEAD.
    """

    start: Revision
    end: Revision
    symmetric: bool = False


def parse(text: str, now: datetime | None = None) -> Revision:
    """Returns a parsed revision. Relative times count from `now`.

    Raises `InvalidInput` that names the invalid part.

    >>> parse("main@2e1cfa82~2").steps
    (RevisionStep(kind=<StepKind.ANCESTOR: '~'>, count=2, time=None),)
    """
    check_revision_size(text)
    first = re.search(r"[~^*]", text)
    base, rest = (text[: first.start()], text[first.start() :]) if first else (text, "")
    name, at, hash_ = base.partition("@")
    if not base:
        raise InvalidInput(f"revision {text!r} names no reference and no commit")
    if at and hash_ and not re.fullmatch(_HASH, hash_):
        raise InvalidInput(
            f"revision {text!r}: {hash_!r} is not a commit hash (4 to 64 hexadecimal digits)",
            hint=_OF_REFLOG if hash_.startswith("{") else "",
        )
    if at and not name and not hash_:
        raise InvalidInput(
            f"revision {text!r}: a name before the '@' or a hash after it is missing"
        )
    if name and name != "-" and not re.fullmatch(_HASH, name):
        try:
            check_reference_name(name)
        except InvalidInput as error:
            if len(name) > MAX_NAME_LENGTH:
                raise InvalidInput(f"revision: {error.message}") from None
            raise InvalidInput(
                f"revision {text!r}: {name!r} is neither a reference name nor a commit hash"
            ) from None
    return Revision(name or None, hash_.lower() or None, _steps(text, rest, now))


def _steps(text: str, rest: str, now: datetime | None) -> tuple[RevisionStep, ...]:
    steps: list[RevisionStep] = []
    position = 0
    while position < len(rest):
        match = re.compile(_STEP).match(rest, position)
        if not match:
            raise InvalidInput(
                f"revision {text!r}: {rest[position:]!r} is not a valid step; write ~N, ^N or *TIME"
            )
        position = match.end()
        if match[3]:
            steps.append(RevisionStep(StepKind.TIME, time=parse_time(match[3], now)))
            continue
        count = int(match[2] or 1) if len(match[2]) <= _MOST_DIGITS else 0
        if not 0 < count < 2**31:
            raise InvalidInput(
                f"revision {text!r}: the number in {match[0]!r} must be between 1 and {2**31 - 1}"
            )
        steps.append(RevisionStep(StepKind(match[1]), count))
    return tuple(steps)


def parse_range(
    text: str, parse_end: Callable[[str], Revision] = parse
) -> RevisionRange | Revision:
    """Returns the range `A..B` or `A...B`, or a single revision. An empty end is HEAD."""
    for dots in ("...", ".."):
        start, separator, end = text.partition(dots)
        if separator:
            symmetric = dots == "..."
            return RevisionRange(parse_end(start or HEAD), parse_end(end or HEAD), symmetric)
    return parse_end(text)


def parse_time(text: str, now: datetime | None = None) -> datetime:
    """Returns the time of an ISO instant, epoch milliseconds, `2 hours ago`, `now` or `today`.

    `today` is the last midnight, `yesterday` 24 hours ago. A time without a zone is in UTC. Raises
    `InvalidInput`.
    """
    text = text.strip()
    now = now or datetime.now(UTC)
    if text in ("now", "today", "yesterday"):
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return {"now": now, "today": midnight, "yesterday": now - timedelta(days=1)}[text]
    try:
        if (match := re.fullmatch(_AGO, text.replace(".", " "))) and len(match[1]) <= _MOST_DIGITS:
            return now - int(match[1]) * _UNIT[match[2]]
        if text.isascii() and text.isdigit() and len(text) > _YEAR_DIGITS:
            return datetime.fromtimestamp(int(text) / 1000, UTC)
        # An instant may carry nanoseconds; commit times have microseconds.
        when = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text))
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(
            f"time {text!r}: write an ISO instant (2026-01-31T12:00:00Z), epoch milliseconds,"
            " or '2 hours ago'"
        ) from None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def format_time(when: datetime) -> str:
    """Returns an ISO instant in UTC with microseconds.

    The original server 0.99.0 requires a fraction in a revision.
    """
    return when.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
