"""Protected branches and tags, by settings `protect.PATTERN` of the repository.

A value lists rules separated by commas: `no-delete` (neither deleted nor renamed), `no-rewind`
(assigned only to descendants), `merge-only` (changed only by merges of content that one of the two
branches has). The pattern is the name of a
branch or tag, or a glob such as `release/*`. All matching patterns apply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from nessie_cli.errors import InvalidInput, NessieError, NotAllowed
from nessie_cli.kernel.forms import Id
from nessie_cli.repository.changes import Change, Commit, Merge, RenameReference, Transplant
from nessie_cli.repository.draft import Draft, ReferenceChange
from nessie_cli.store.base import View

PREFIX = "protect."
NO_DELETE = "no-delete"
NO_REWIND = "no-rewind"
MERGE_ONLY = "merge-only"
RULES = (NO_DELETE, NO_REWIND, MERGE_ONLY)
_SUPPLIED = (
    "a merge into it cannot contain content that the caller supplies. Hint: commit the resolution"
    " to the source, and merge it"
)


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
    draft: Draft[Any], view: View, is_ancestor: Callable[[Id, Id], bool]
) -> Callable[[], NessieError] | None:
    """Returns a function that creates the error if a rule forbids a draft, otherwise None.

    Judges the moves of references and the change, for every verb and API. `view` is the state of
    the draft. `is_ancestor` returns whether its first commit is an ancestor of its second.
    """
    for reference in () if draft.repeated else draft.references:
        for rule, reason in _forbidding(draft.change, reference):
            settings = draft.settings or view.settings()
            setting = protecting(settings.values, reference.name, rule)
            if setting is None or (
                rule == NO_REWIND and is_ancestor(_id(reference.before), _id(reference.after))
            ):
                continue
            return partial(
                NotAllowed,
                f"{reference.type.lower()} '{reference.name}' is protected"
                f" ({setting} = {settings.values[setting]}): {reason}",
            )
    return None


def _forbidding(change: Change[Any], reference: ReferenceChange) -> list[tuple[str, str]]:
    """Returns the rules that forbid a move, each with a reason. No rule forbids a new reference.

    `no-rewind` allows moves to descendants.
    """
    if reference.before is None:
        return []
    if reference.after is None:
        renamed = isinstance(change, RenameReference)
        return [(NO_DELETE, f"it cannot be {'renamed' if renamed else 'deleted'}")]
    if isinstance(change, Merge):
        supplied = any(behavior.resolved is not None for behavior in change.options.behaviors)
        return [(MERGE_ONLY, _SUPPLIED)] if supplied else []
    forbidding = [(MERGE_ONLY, "it changes only by merges")]
    if not isinstance(change, Commit | Transplant):
        forbidding.append((NO_REWIND, "it is only assigned to descendants of its HEAD"))
    return forbidding


def protecting(settings: Mapping[str, str], reference: str, rule: str) -> str | None:
    """Returns the name of a setting that applies a rule to a reference."""
    return next(
        (
            name
            for name, value in settings.items()
            if name.startswith(PREFIX)
            and fnmatchcase(reference, name[len(PREFIX) :])
            and rule in _rules(value)
        ),
        None,
    )


def _id(hash_: str | None) -> Id:
    return bytes.fromhex(hash_ or "")
