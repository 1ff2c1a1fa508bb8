"""How much of a reference's history is live: policies by patterns of names, as the original writes them (`10`, `P30D`, an instant, `NONE`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from re import Pattern

from msgspec import DecodeError, Struct, json

from nessie_cli.errors import InvalidInput
from nessie_cli.model import RepositoryConfig
from nessie_cli.model.durations import LONGEST, find_duration, parse_duration
from nessie_cli.wire.repository_config import GARBAGE_COLLECTOR

_MOST_DIGITS = 9
_RULE = "write a number of commits (10), a duration (P30D, PT36H, 30d, 36h), an instant (2026-01-31T12:00:00Z) or NONE"
_SETTING = f"repository-config.{GARBAGE_COLLECTOR}"
"""The setting of the repository that keeps what clients were told to do about garbage."""


class Policy(Struct, frozen=True):
    """What is live of a history along first parents: its newest `commits`, or those not older than `since`; all where both are None.

    The newest commit is live in any case, and so is everything that the oldest live commit still holds.
    """

    text: str
    commits: int | None = None
    since: datetime | None = None


class Policies(Struct, frozen=True):
    """The first rule whose pattern matches a whole name decides; the default where none does."""

    default: Policy
    rules: tuple[tuple[Pattern[str], Policy], ...] = ()

    def of(self, name: str) -> Policy:
        """The policy of a branch or tag."""
        return next(
            (policy for pattern, policy in self.rules if pattern.fullmatch(name)), self.default
        )


def policies(
    default: str, cutoffs: Sequence[tuple[str, str]], reference_time: datetime
) -> Policies:
    """Policies from texts; durations count back from `reference_time`. `cutoffs` are (regular expression, policy).

    Raises `InvalidInput` that names the text which is none.
    """
    return Policies(
        policy(default, reference_time),
        tuple((_pattern(name), policy(text, reference_time)) for name, text in cutoffs),
    )


def policy(text: str, reference_time: datetime) -> Policy:
    """One policy. Raises `InvalidInput`."""
    given = text.strip()
    if given.upper() == "NONE":
        return Policy("NONE")
    if given.isascii() and given.isdigit():
        if not given.strip("0") or len(given) > _MOST_DIGITS:
            raise InvalidInput(
                f"cut-off {text!r}: a number of commits is from 1 to 999999999; the newest commit is always live"
            )
        return Policy(given, commits=int(given))
    back = find_duration(given)
    if back is not None:
        if not timedelta(0) <= back <= LONGEST:
            raise InvalidInput(
                f"cut-off {text!r}: a duration is neither negative nor longer than {LONGEST.days} days"
            )
        return Policy(
            given,
            since=reference_time - min(back, reference_time - datetime.min.replace(tzinfo=UTC)),
        )
    return Policy(given, since=_instant(text, given))


def _instant(text: str, given: str) -> datetime:
    try:
        since = datetime.fromisoformat(given)
    except ValueError:
        raise InvalidInput(f"cut-off {text!r}: is no policy; {_RULE}") from None
    if since.tzinfo is None:
        raise InvalidInput(
            f"cut-off {text!r}: an instant says its time zone; write {given}Z for UTC"
            if "T" in given
            else f"cut-off {text!r}: {_RULE}"
        )
    return since.astimezone(UTC)


def _pattern(name: str) -> Pattern[str]:
    try:
        return re.compile(name)
    except re.error as error:
        raise InvalidInput(f"cut-off pattern {name!r}: is no regular expression: {error}") from None


# -- what the repository says -----------------------------------------------------------------------------------------------------------------


class Defaults(Struct, frozen=True):
    """What the repository has been told for everybody who collects its garbage; None and empty for what it has not. `grace` in seconds."""

    default_cutoff: str | None = None
    cutoffs: tuple[tuple[str, str], ...] = ()
    grace: int | None = None


class _Rule(Struct, rename="camel"):
    reference_name_pattern: str
    policy: str


class _Stored(Struct, rename="camel"):
    default_cutoff_policy: str | None = None
    per_ref_cutoff_policies: tuple[_Rule, ...] = ()
    new_files_grace_period: str | None = None


def repository_defaults(config: RepositoryConfig) -> Defaults:
    """The repository's own configuration of garbage collection. Raises `InvalidInput` where that cannot be read."""
    text = config.settings.get(_SETTING)
    if text is None:
        return Defaults()
    try:
        stored = json.decode(text, type=_Stored)
    except DecodeError as error:
        raise InvalidInput(f"the repository's setting {_SETTING} is damaged: {error}") from None
    grace = (
        None
        if stored.new_files_grace_period is None
        else int(parse_duration(stored.new_files_grace_period).total_seconds())
    )
    return Defaults(
        stored.default_cutoff_policy,
        tuple(
            (rule.reference_name_pattern, rule.policy) for rule in stored.per_ref_cutoff_policies
        ),
        grace,
    )
