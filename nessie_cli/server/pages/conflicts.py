"""Conflicts on a page, and the decisions about them in its form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nessie_cli.inspection.conflicts import SideChange, differing_fields, side_changes
from nessie_cli.inspection.decisions import DecisionEffect, effects_of, options_of
from nessie_cli.inspection.fields import Difference, fields
from nessie_cli.model import (
    Conflict,
    Content,
    IcebergTable,
    KeyBehavior,
    MergeBehavior,
)
from nessie_cli.model.conflicts import OF_NAMESPACES
from nessie_cli.revisions import Revision
from nessie_cli.server.pages.call import PageCall

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
    decision; None if the content is absent then, or nothing is decided. The caller may not read a
    side that is hidden, nor the files of a table without `shows_files`.
    """

    conflict: Conflict
    field: str
    ours: SideChange
    theirs: SideChange
    fields: Sequence[Difference]
    choices: Sequence[Choice]
    chosen: str
    result: Mapping[str, str] | None
    hides_ours: bool
    hides_theirs: bool
    shows_files: bool

    @property
    def is_table(self) -> bool:
        """Whether both sides can have changed rows of a table."""
        conflict = self.conflict
        states = (conflict.expected, conflict.actual, conflict.proposed)
        return conflict.key is not None and any(isinstance(s, IcebergTable) for s in states)

    @property
    def is_about_others(self) -> bool:
        """Whether other contents are the reason: namespaces, or another key of the content."""
        conflict = self.conflict
        others = (conflict.other_key, conflict.same_file_key)
        return conflict.type in OF_NAMESPACES or any(others)


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
    call: PageCall,
    conflicts: Sequence[Conflict],
    given: Mapping[str, str],
    results: Mapping[str | None, Content],
    states: tuple[Revision, Revision],
) -> list[ConflictRow]:
    """Returns conflicts with their decisions.

    `results` are contents after them, by id. `states` are ours and theirs.
    """
    return [_conflict_row(call, conflict, given, results, states) for conflict in conflicts]


def _conflict_row(
    call: PageCall,
    conflict: Conflict,
    given: Mapping[str, str],
    results: Mapping[str | None, Content],
    states: tuple[Revision, Revision],
) -> ConflictRow:
    field = _field_of(conflict)
    chosen = given.get(field, "")
    values = {behavior: value for value, behavior in BEHAVIORS.items()}
    content = _result(conflict, chosen, results)
    key = conflict.key
    hides_ours = conflict.actual is None and not call.may_see_key(states[0], key)
    theirs_key = conflict.theirs_key or key
    hides_theirs = conflict.proposed is None and not call.may_see_key(states[1], theirs_key)
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
        hides_ours,
        hides_theirs,
        key is not None and call.may_read_rows(states[0], key),
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
