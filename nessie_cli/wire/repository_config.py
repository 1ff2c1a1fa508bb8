"""Configuration objects that a repository stores for clients, such as gc settings."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import structs, to_builtins

from nessie_cli.errors import InvalidInput
from nessie_cli.model.durations import duration_nanos
from nessie_cli.wire.bodies import UpdateRepositoryConfigRequest
from nessie_cli.wire.json_text import describe, fault, join
from nessie_cli.wire.scalars import Json
from nessie_cli.wire.validation import checked
from nessie_cli.wire.values import object_with_type

GARBAGE_COLLECTOR = "GARBAGE_COLLECTOR"
TYPE_NAMES = frozenset({GARBAGE_COLLECTOR})
"""The types that a repository stores."""

_POLICY_RULE = (
    "must be NONE, a positive number of commits, a duration (PT36H, P30D)"
    " or an instant (2026-01-31T12:00:00Z)"
)
_NANOS = 10**9


def decode_repository_config(data: Any) -> tuple[str, Json]:
    """Decodes `{"config": {"type": ...}}` to the type and the object without empty attributes."""
    if not isinstance(data, dict):
        raise fault("", f"must be an object, not {describe(data)}")
    name = object_with_type(data.get("config"), "config", TYPE_NAMES)
    if name not in TYPE_NAMES:
        raise InvalidInput(
            f"Repository config type bundle for '{name}' is not available"
            " on the Nessie server side."
        )
    config = checked(UpdateRepositoryConfigRequest, data, "").config
    # Patterns are stored unchanged: their readers check them, in the dialect of their language.
    if config.default_cutoff_policy is not None:
        _check_policy(config.default_cutoff_policy, "config.defaultCutoffPolicy")
    for index, per_reference in enumerate(config.per_ref_cutoff_policies or ()):
        _check_policy(per_reference.policy, join("config.perRefCutoffPolicies", index, "policy"))
    grace = config.new_files_grace_period
    normal = structs.replace(
        config,
        per_ref_cutoff_policies=config.per_ref_cutoff_policies or None,
        new_files_grace_period=None
        if grace is None
        else _normal_duration(grace, "config.newFilesGracePeriod"),
    )
    return name, to_builtins(normal)


def _check_policy(text: str, path: str) -> None:
    if not (
        text.upper() == "NONE"
        or (text.isascii() and text.isdigit() and text.strip("0"))
        or duration_nanos(text) is not None
        or _is_instant(text)
    ):
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
