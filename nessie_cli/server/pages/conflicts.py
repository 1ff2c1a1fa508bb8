"""Conflicts on a page, and the decisions about them in its form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nessie_cli.inspection.conflicts import SideChange, differing_fields, side_changes
from nessie_cli.inspection.decisions import DecisionEffect, effects_of, options_of
from nessie_cli.inspection.fields import Difference, fields
from nessie_cli.model import Conflict, Content, IcebergTable, KeyBehavior, MergeBehavior
from nessie_cli.model.conflicts import OF_NAMESPACES

_DECISION = "decide."
"""The beginning of the names of fields with decisions; a content id or key follows."""
BEHAVIORS: Mapping[str, MergeBehavior] = {
    "ours": MergeBehavior.DROP,
    "theirs": MergeBehavior.FORCE,
}


class Choice(NamedTuple):
    """A possible decision about a conflict: `ours` or `theirs`, and what it does to others."""

    value: str
    effects: Sequence[DecisionEffect]


class ConflictRow(NamedTuple):
    """A conflict: what both sides did, the fields of the three states, and its decision.

    `field` names the decision in the form. `result` has the fields of the content after the
    decision; None if the content is absent then, or nothing is decided.
    """

    conflict: Conflict
    field: str
    ours: SideChange
    theirs: SideChange
    fields: Sequence[Difference]
    choices: Sequence[Choice]
    chosen: str
    result: Mapping[str, str] | None

    @property
    def is_table(self) -> bool:
        """Whether both sides can have changed rows of a table."""
        conflict = self.conflict
        states = (conflict.expected, conflict.actual, conflict.proposed)
        return conflict.key is not None and any(isinstance(s, IcebergTable) for s in states)

    @property
    def is_of_namespaces(self) -> bool:
        """Whether it is about the namespaces of other contents."""
        return self.conflict.type in OF_NAMESPACES


def decisions(fields: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Returns the decisions of a form by the names of their fields."""
    return {
        name: values[0]
        for name, values in fields.items()
        if name.startswith(_DECISION) and values[0] in BEHAVIORS
    }


def _field_of(conflict: Conflict) -> str:
    return f"{_DECISION}{conflict.content_id or conflict.key}"


def behaviors(conflicts: Sequence[Conflict], given: Mapping[str, str]) -> list[KeyBehavior]:
    """Returns the decisions about conflicts.

    The change that contains them must expect the commit that was shown: then a content that has
    changed since is a conflict again.
    """
    decided: dict[str, KeyBehavior] = {}
    for conflict in conflicts:
        field = _field_of(conflict)
        if field in given and conflict.key is not None:
            decided[field] = KeyBehavior(
                conflict.key,
                BEHAVIORS[given[field]],
                content_id=conflict.content_id,
            )
    return list(decided.values())


def conflict_rows(
    conflicts: Sequence[Conflict],
    given: Mapping[str, str],
    results: Mapping[str | None, Content],
) -> list[ConflictRow]:
    """Returns conflicts with their decisions. `results` are contents after them, by id."""
    return [_conflict_row(conflict, given, results) for conflict in conflicts]


def _conflict_row(
    conflict: Conflict, given: Mapping[str, str], results: Mapping[str | None, Content]
) -> ConflictRow:
    field = _field_of(conflict)
    chosen = given.get(field, "")
    values = {behavior: value for value, behavior in BEHAVIORS.items()}
    content = _result(conflict, chosen, results)
    return ConflictRow(
        conflict,
        field,
        *side_changes(conflict),
        differing_fields(conflict),
        [
            Choice(values[option.behavior], effects_of(option, conflict))
            for option in sorted(options_of(conflict), key=lambda each: each.behavior)
            if option.behavior in values
        ],
        chosen,
        fields(content) if content is not None else None,
    )


def _result(
    conflict: Conflict, chosen: str, results: Mapping[str | None, Content]
) -> Content | None:
    """Returns the content after a decision. Without a change of ours, it is not in `results`."""
    if chosen == "ours" and conflict.actual is not None:
        return results.get(conflict.actual.id, conflict.actual)
    if chosen == "theirs" and conflict.proposed is not None:
        return results.get(conflict.proposed.id)
    return None
