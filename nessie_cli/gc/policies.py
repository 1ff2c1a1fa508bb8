"""Retention policies by patterns of reference names: `10`, `P30D`, an instant or `NONE`."""

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
_RULE = (
    "write a number of commits (10), a duration (P30D, PT36H, 30d, 36h), an instant"
    " (2026-01-31T12:00:00Z) or NONE"
)
_SETTING = f"repository-config.{GARBAGE_COLLECTOR}"
"""The setting of the repository with the defaults of its garbage collection."""


class RetentionPolicy(Struct, frozen=True):
    """The live first parents of a reference: the newest ones, those since a time, or all.

    The newest commit is always live. So are all contents of the oldest live commit.
    """

    text: str
    commits: int | None = None
    since: datetime | None = None


class Policies(Struct, frozen=True):
    """Policies by name. The first pattern that matches the whole name decides, then the default."""

    default: RetentionPolicy
    rules: tuple[tuple[Pattern[str], RetentionPolicy], ...] = ()

    def of(self, name: str) -> RetentionPolicy:
        """Returns the policy of a branch or tag."""
        return next(
            (policy for pattern, policy in self.rules if pattern.fullmatch(name)), self.default
        )


def policies(
    default: str, cutoffs: Sequence[tuple[str, str]], reference_time: datetime
) -> Policies:
    """Parses policies. `cutoffs` are pairs of a regular expression and a policy.

    Durations count back from `reference_time`. Raises `InvalidInput`, which quotes the policy.
    """
    return Policies(
        policy(default, reference_time),
        tuple((_pattern(name), policy(text, reference_time)) for name, text in cutoffs),
    )


def policy(text: str, reference_time: datetime) -> RetentionPolicy:
    """Parses a policy. Raises `InvalidInput`."""
    given = text.strip()
    if given.upper() == "NONE":
        return RetentionPolicy("NONE")
    if given.isascii() and given.isdigit():
        if not given.strip("0") or len(given) > _MOST_DIGITS:
            raise InvalidInput(
                f"retention policy {text!r}: the number of commits must be between 1 and 999999999."
                " The newest commit is always live"
            )
        return RetentionPolicy(given, commits=int(given))
    back = find_duration(given)
    if back is not None:
        if not timedelta(0) <= back <= LONGEST:
            raise InvalidInput(
                f"retention policy {text!r}: a duration must not be negative or longer than"
                f" {LONGEST.days} days"
            )
        return RetentionPolicy(
            given,
            since=reference_time - min(back, reference_time - datetime.min.replace(tzinfo=UTC)),
        )
    return RetentionPolicy(given, since=_instant(text, given))


def _instant(text: str, given: str) -> datetime:
    try:
        since = datetime.fromisoformat(given)
    except ValueError:
        raise InvalidInput(f"retention policy {text!r} is not valid", hint=_RULE) from None
    if since.tzinfo is None:
        if "T" not in given:
            raise InvalidInput(f"retention policy {text!r} is not valid", hint=_RULE)
        raise InvalidInput(
            f"retention policy {text!r}: an instant needs a time zone",
            hint=f"write {given}Z for UTC",
        )
    return since.astimezone(UTC)


def _pattern(name: str) -> Pattern[str]:
    try:
        return re.compile(name)
    except re.error as error:
        raise InvalidInput(
            f"pattern {name!r} of a retention policy is not a regular expression: {error}"
        ) from None


# -- what the repository says ---------------------------------------------------------------------


class Defaults(Struct, frozen=True):
    """The defaults of a repository, None or empty if unset. `grace` is in seconds."""

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
    """Returns the defaults of a repository. Raises `InvalidInput` if its setting is damaged."""
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
