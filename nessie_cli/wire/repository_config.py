"""Configuration objects that a repository stores for clients, such as gc settings."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.model.durations import duration_nanos
from nessie_cli.wire.bodies import UpdateRepositoryConfigRequest
from nessie_cli.wire.encode import Json
from nessie_cli.wire.guards import check, guard_of
from nessie_cli.wire.json_text import describe, fault, join
from nessie_cli.wire.rest import GarbageCollectorConfig
from nessie_cli.wire.values import object_with_type

GARBAGE_COLLECTOR = "GARBAGE_COLLECTOR"
TYPE_NAMES = frozenset({GARBAGE_COLLECTOR})
"""The types that a repository stores."""

MOST_POLICIES = 10_000
"""The most retention policies of a repository."""
_POLICY_RULE = (
    "must be NONE, a positive number of commits, a duration (PT36H, P30D)"
    " or an instant (2026-01-31T12:00:00Z)"
)
_NANOS = 10**9


def decode_repository_config(data: Any) -> tuple[str, Json]:
    """Decodes `{"config": {"type": ...}}` to the type and the object without empty attributes."""
    config = check(guard_of(UpdateRepositoryConfigRequest), data, "").__dict__["config"]
    name = object_with_type(config, "config", TYPE_NAMES)
    if name not in TYPE_NAMES:
        raise InvalidInput(
            f"Repository config type bundle for '{name}' is not available"
            " on the Nessie server side."
        )
    given = config.get("perRefCutoffPolicies")
    if isinstance(given, list) and len(given) > MOST_POLICIES:
        raise fault("config.perRefCutoffPolicies", f"has more than {MOST_POLICIES:,} items")
    guard: Any = check(guard_of(GarbageCollectorConfig), config, "config")
    policies = [
        _policy(one, join("config.perRefCutoffPolicies", index))
        for index, one in enumerate(guard.per_ref_cutoff_policies or ())
    ]
    default, grace = guard.default_cutoff_policy, guard.new_files_grace_period
    body = {
        "type": name,
        "defaultCutoffPolicy": None
        if default is None
        else _checked_policy(default, "config.defaultCutoffPolicy"),
        "perRefCutoffPolicies": policies or None,
        "newFilesGracePeriod": None
        if grace is None
        else _normal_duration(grace, "config.newFilesGracePeriod"),
        "expectedFileCountPerContent": guard.expected_file_count_per_content,
    }
    return name, {attribute: value for attribute, value in body.items() if value is not None}


def _policy(guard: Any, path: str) -> Json:
    # The pattern is stored unchanged: its readers check it, in the dialect of their language.
    return {
        "referenceNamePattern": guard.reference_name_pattern,
        "policy": _checked_policy(guard.policy, join(path, "policy")),
    }


def _checked_policy(text: str, path: str) -> str:
    if (
        text.upper() == "NONE"
        or (text.isascii() and text.isdigit() and text.strip("0"))
        or duration_nanos(text) is not None
        or _is_instant(text)
    ):
        return text
    raise fault(path, f"{_POLICY_RULE}, not {describe(text)}")


def _is_instant(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _normal_duration(text: str, path: str) -> str:
    """Formats a duration like the original server: hours, minutes, seconds (`PT26H`)."""
    nanos = duration_nanos(text)
    if nanos is None:
        raise fault(path, f"must be a duration such as PT3H, not {describe(text)}")
    if nanos == 0:
        return "PT0S"
    sign, rest = ("-", -nanos) if nanos < 0 else ("", nanos)
    seconds, fraction = divmod(rest, _NANOS)
    hours, seconds = divmod(seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    decimals = f".{fraction:09d}".rstrip("0") if fraction else ""
    parts = [
        f"{sign}{hours}H" if hours else "",
        f"{sign}{minutes}M" if minutes else "",
        f"{sign}{seconds}{decimals}S" if seconds or fraction else "",
    ]
    return "PT" + "".join(parts)
