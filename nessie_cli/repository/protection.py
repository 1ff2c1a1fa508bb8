"""Protected branches and tags, by settings `protect.PATTERN` of the repository.

A value lists rules separated by commas: `no-delete` (neither deleted nor renamed), `no-rewind`
(assigned only to descendants), `merge-only` (changed only by merges). The pattern is the name of a
branch or tag, or a glob such as `release/*`. All matching patterns apply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase

from nessie_cli.errors import InvalidInput, NessieError, NotAllowed

PREFIX = "protect."
NO_DELETE = "no-delete"
NO_REWIND = "no-rewind"
MERGE_ONLY = "merge-only"
RULES = (NO_DELETE, NO_REWIND, MERGE_ONLY)


def check_setting(name: str, value: str | None) -> None:
    """Raises `InvalidInput` for a protection setting with an unknown rule or without a pattern."""
    if not name.startswith(PREFIX) or value is None:
        return
    if name == PREFIX:
        raise InvalidInput(f"setting {name!r} names no branch; write {PREFIX}main")
    unknown = [rule for rule in _rules(value) if rule not in RULES]
    if unknown or not _rules(value):
        raise InvalidInput(
            f"setting {name}: {value!r} is not a list of rules; choose from {', '.join(RULES)}"
        )


def _rules(value: str) -> list[str]:
    return [rule.strip() for rule in value.split(",") if rule.strip()]


def refusal(
    settings: Mapping[str, str], reference: str, rule: str, why: str, kind: str = "branch"
) -> Callable[[], NessieError] | None:
    """Returns a function that creates the error if a rule protects a branch or tag (`kind`).

    Returns None if no rule does. `why` explains the rule.
    """
    for name, value in settings.items():
        if (
            name.startswith(PREFIX)
            and fnmatchcase(reference, name[len(PREFIX) :])
            and rule in _rules(value)
        ):
            text = f"{kind.lower()} '{reference}' is protected ({name} = {value}): {why}"
            return lambda: NotAllowed(text)
    return None
