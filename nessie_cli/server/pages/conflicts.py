"""Conflicts on a page, and the decisions about them in its form."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

from msgspec import structs

from nessie_cli.errors import NessieError, NotAllowed
from nessie_cli.iceberg.metadata import Document
from nessie_cli.inspection.conflicts import (
    SideChange,
    differing_fields,
    figures_read,
    side_changes,
)
from nessie_cli.inspection.decisions import DecisionEffect, effects_of, options_of
from nessie_cli.inspection.fields import Difference, fields
from nessie_cli.model import (
    CommitMeta,
    Conflict,
    Content,
    ContentPlace,
    IcebergTable,
    IcebergView,
    KeyBehavior,
    MergeBehavior,
)
from nessie_cli.model.conflicts import OF_NAMESPACES
from nessie_cli.revisions import Revision
from nessie_cli.server.pages.call import PageCall
from nessie_cli.server.pages.changes import MOST_FIELDS, MOST_FIELDS_OF_ONE
from nessie_cli.server.pages.listings import Listing, listing
from nessie_cli.server.pages.row_choices import ROWS, ShownRows, carried
from nessie_cli.server.pages.table_access import MetadataReader, TableAccess

CONFLICTS = 20
"""The conflicts of one page."""
MOST_DECIDED = 800
"""The most conflicts that are decided on pages: addresses and forms contain all decisions."""
MOST_EFFECTS = 15
"""The most other contents that are listed with a decision."""
_DECISION = "decide."
"""The beginning of the names of fields with decisions; see `decision_fields`."""
_DIGEST_BYTES = 12
_PAGE = "conflicts"
"""The parameter with the number of a page."""
BEHAVIORS: Mapping[str, MergeBehavior] = {
    "ours": MergeBehavior.DROP,
    "theirs": MergeBehavior.FORCE,
}


class Choice(NamedTuple):
    """A possible decision about a conflict: `ours` or `theirs`, and what it does to others.

    `left_out` is the number of the effects that are not shown.
    """

    value: str
    effects: Sequence[DecisionEffect]
    left_out: int


class ConflictStates(NamedTuple):
    """Where the states of conflicts are.

    `ours` and `theirs` are revisions by the references through which they are seen, and `commits`
    the hashes of base, ours and theirs. `is_undone` is whether theirs is the state before a commit,
    and not a change of an author.
    """

    ours: Revision
    theirs: Revision
    commits: tuple[str, str, str]
    is_undone: bool = False


class Decided(NamedTuple):
    """The decisions about conflicts, and the contents of the branch after them, by id.

    `given_rows` are the decisions about rows, and `rows` the merges of rows by the fields of the
    decisions about their tables.
    """

    given: Mapping[str, str]
    results: Mapping[str | None, Content]
    given_rows: Mapping[str, str] = {}
    rows: Mapping[str, ShownRows] = {}


class ConflictRow(NamedTuple):
    """A conflict: what both sides did, the fields of the three states, and its decision.

    `field` names the decision in the form. `ours_by` and `theirs_by` are the commits of both sides,
    if the caller may see them. `problem` says why the metadata files of the states are not read.
    `result` has the fields of the content after the decision; None if the content is absent then,
    or nothing is decided. The caller may not read a side that is hidden, nor the files of a table
    without `shows_files`. `left_out` is how many fields are not shown. `rows` is the merge
    of the rows of a table whose files collide, if the page may show anything of it.
    """

    conflict: Conflict
    field: str
    ours: SideChange
    theirs: SideChange
    ours_by: CommitMeta | None
    theirs_by: CommitMeta | None
    fields: Sequence[Difference]
    left_out: int
    problem: str
    choices: Sequence[Choice]
    chosen: str
    result: Mapping[str, str] | None
    hides_ours: bool
    hides_theirs: bool
    shows_files: bool
    rows: ShownRows | None

    @property
    def is_table(self) -> bool:
        """Whether both sides can have changed rows of a table."""
        conflict = self.conflict
        states = (conflict.expected, conflict.actual, conflict.proposed)
        return conflict.key is not None and any(isinstance(s, IcebergTable) for s in states)

    @property
    def merges_rows(self) -> bool:
        """Whether the decision is to merge the rows."""
        return self.chosen == ROWS

    @property
    def shows_rows(self) -> bool:
        """Whether the page shows the decisions about rows."""
        return self.merges_rows and self.rows is not None and self.rows.are_read

    @property
    def why_not_rows(self) -> str:
        """Why the rows cannot be merged, though that is the decision."""
        if not self.merges_rows or self.rows is None or self.rows.bytes is not None:
            return ""
        return self.rows.reason.removeprefix("the rows cannot be merged: ")

    @property
    def is_about_others(self) -> bool:
        """Whether other contents are the reason: namespaces, or another key of the content."""
        conflict = self.conflict
        others = (conflict.other_key, conflict.same_file_key)
        return conflict.type in OF_NAMESPACES or any(others)


def decisions(
    fields: Mapping[str, Sequence[str]], values: Collection[str] = BEHAVIORS
) -> dict[str, str]:
    """Returns the decisions of a form, which are some `values`, by the names of their fields."""
    return {
        name: given[0]
        for name, given in fields.items()
        if name.startswith(_DECISION) and given[0] in values
    }


def decision_fields(conflicts: Sequence[Conflict]) -> list[str]:
    """Returns the names of the fields with the decisions about conflicts, one for each content.

    A name is a digest of what is decided: a decision does not count for another state.
    """
    contents = [conflict.content_id or conflict.key for conflict in conflicts]
    digests = defaultdict[object, blake2b](partial(blake2b, digest_size=_DIGEST_BYTES))
    for content, conflict in zip(contents, conflicts, strict=True):
        digests[content].update(repr(_decided(conflict)).encode())
    return [f"{_DECISION}{digests[content].hexdigest()}" for content in contents]


def table_digest(field: str) -> str:
    """Returns the digest in the name of the field with the decision about a table."""
    return field.removeprefix(_DECISION)


def _decided(conflict: Conflict) -> Sequence[object]:
    """Returns what a decision is about: the content, its states, and the effects on others."""
    return (
        *(conflict.type, conflict.content_id),
        *(conflict.key, conflict.base_key, conflict.theirs_key),
        *(conflict.expected, conflict.actual, conflict.proposed),
        *(conflict.other_key, conflict.same_file_key, conflict.blocking_namespace),
        conflict.options,
    )


def behaviors(conflicts: Sequence[Conflict], given: Mapping[str, str]) -> list[KeyBehavior]:
    """Returns the decisions for a side of conflicts in their present states."""
    decided: dict[str, KeyBehavior] = {}
    for field, conflict in zip(decision_fields(conflicts), conflicts, strict=True):
        behavior = BEHAVIORS.get(given.get(field, ""))
        if behavior is not None and conflict.key is not None:
            decided[field] = KeyBehavior(conflict.key, behavior, content_id=conflict.content_id)
    return list(decided.values())


def has_outdated(conflicts: Sequence[Conflict], given: Mapping[str, str]) -> bool:
    """Returns whether a decision is about a state that is not in conflict, or no longer so."""
    return not given.keys() <= set(decision_fields(conflicts))


def arising(undecided: Sequence[Conflict], left: Sequence[Conflict]) -> list[str]:
    """Returns the messages of some conflicts that arise from decisions about others."""
    before = {conflict.message for conflict in undecided}
    return [each.message for each in left if each.message not in before][:CONFLICTS]


class ShownConflicts(NamedTuple):
    """The conflicts of a page, and the decisions about all others, by the names of their fields.

    `outdated` is the number of decisions about states that are no longer in conflict.
    """

    listing: Listing[ConflictRow]
    other_decisions: Mapping[str, str]
    outdated: int

    @property
    def are_too_many(self) -> bool:
        """Whether pages cannot decide all of them."""
        return self.listing.total > MOST_DECIDED


def conflicts_of_page(
    call: PageCall, conflicts: Sequence[Conflict]
) -> Listing[tuple[str, Conflict]]:
    """Returns the conflicts of a page with the names of the fields of their decisions."""
    named = list(zip(decision_fields(conflicts), conflicts, strict=True))
    return listing(call, named, CONFLICTS, _PAGE)


def shown_conflicts(
    call: PageCall,
    access: TableAccess,
    conflicts: Sequence[Conflict],
    decided: Decided,
    states: ConflictStates,
) -> ShownConflicts:
    """Returns the conflicts of a page with their decisions.

    Costs up to three metadata files for each conflict.
    """
    fields = decision_fields(conflicts)
    page = listing(call, list(zip(fields, conflicts, strict=True)), CONFLICTS, _PAGE)
    most = MOST_FIELDS if len(page.rows) > 1 else MOST_FIELDS_OF_ONE
    with access.metadata(call.repository) as metadata:
        reader = metadata if access.has_warehouses else None
        rows = [_conflict_row(call, reader, each, decided, states, most=most) for each in page.rows]
    shown = {row.field for row in rows}
    others = set(fields) - shown
    other_decisions = {name: value for name, value in decided.given.items() if name in others}
    with_rows = {row.field for row in rows if row.shows_rows}
    tables, shown_tables = (set(map(table_digest, names)) for names in (fields, with_rows))
    other_decisions |= carried(decided.given_rows, tables, shown_tables)
    outdated = len(decided.given.keys() - fields)
    return ShownConflicts(page.with_rows(rows), other_decisions, outdated)


def _conflict_row(
    call: PageCall,
    reader: MetadataReader | None,
    named: tuple[str, Conflict],
    decided: Decided,
    states: ConflictStates,
    *,
    most: int,
) -> ConflictRow:
    """Returns a conflict with the name of its field, and at most so many fields that differ."""
    field, conflict = named[0], _readable(call, named[1], states)
    chosen = decided.given.get(field, "")
    values = {behavior: value for value, behavior in BEHAVIORS.items()}
    content = _result(conflict, chosen, decided.results)
    key = conflict.key
    # A content that has a place, but is not here, is not readable for the caller.
    hides_ours = conflict.actual is None and (
        conflict.actual_at is not None or not call.may_see_key(states.ours, key)
    )
    theirs_key = conflict.theirs_key or key
    hides_theirs = conflict.proposed is None and (
        conflict.proposed_at is not None or not call.may_see_key(states.theirs, theirs_key)
    )
    ours, theirs = side_changes(conflict)
    shows_ours = bool(ours.verbs) and not hides_ours
    figures: Sequence[Mapping[str, str]] = ()
    problem = ""
    if reader is not None:
        try:
            figures = _figures(reader, conflict, states)
        except NessieError as error:
            problem = error.message
    result = None if content is None else {**fields(content), **_of(content, conflict, figures)}
    labels = {label for figure in figures for label in figure}
    # The numbers of rows say more than ids.
    differing = sorted(
        differing_fields(conflict, figures), key=lambda each: each.label not in labels
    )
    return ConflictRow(
        conflict,
        field,
        ours,
        theirs,
        conflict.changed_by if shows_ours and call.may_list_log(states.ours.name) else None,
        _theirs_by(call, conflict, states) if theirs.verbs and not hides_theirs else None,
        differing[:most],
        max(len(differing) - most, 0),
        problem,
        [
            _choice(values[option.behavior], effects_of(option, conflict))
            for option in sorted(options_of(conflict), key=lambda each: each.behavior)
            if option.behavior in values
        ],
        chosen,
        result,
        hides_ours,
        hides_theirs,
        key is not None and call.may_read_rows(states.ours, key),
        decided.rows.get(field),
    )


def _readable(call: PageCall, conflict: Conflict, states: ConflictStates) -> Conflict:
    """Returns a conflict of a merge without contents that the caller may not read."""
    base, sides = conflict.base_key or conflict.key, (states.ours, states.theirs)

    def of_side(content: Content | None, at: ContentPlace | None) -> Content | None:
        # A content without a place comes from the caller. A revert reads what the caller may read.
        if content is None or at is None:
            return content
        side = states.ours if at.hash == states.commits[1] else states.theirs
        return content if call.may_read(side, at.key, content.type_name) else None

    expected = conflict.expected
    if expected is not None and base is not None and (conflict.actual_at or conflict.proposed_at):
        is_readable = any(call.may_read(side, base, expected.type_name) for side in sides)
        expected = expected if is_readable else None
    return structs.replace(
        conflict,
        expected=expected,
        actual=of_side(conflict.actual, conflict.actual_at),
        proposed=of_side(conflict.proposed, conflict.proposed_at),
    )


def _choice(value: str, effects: Sequence[DecisionEffect]) -> Choice:
    return Choice(value, effects[:MOST_EFFECTS], max(len(effects) - MOST_EFFECTS, 0))


def _figures(
    reader: MetadataReader, conflict: Conflict, states: ConflictStates
) -> Sequence[Mapping[str, str]]:
    """Returns rows, files and columns of the three states. Raises any `NessieError`."""
    key = conflict.key
    keys = (conflict.base_key or key, key, conflict.theirs_key or key)

    def read(side: int, content: IcebergTable | IcebergView) -> Document:
        at, known_as = states.commits[side], keys[side]
        assert known_as is not None
        return reader.read(at, known_as, content)

    return figures_read(conflict, read) if key is not None else ()


def _of(
    content: Content, conflict: Conflict, figures: Sequence[Mapping[str, str]]
) -> Mapping[str, str]:
    """Returns the figures of a content that is one of the states."""
    contents = (conflict.expected, conflict.actual, conflict.proposed)
    same = (figure for state, figure in zip(contents, figures, strict=False) if state == content)
    return next(same, {})


def _theirs_by(call: PageCall, conflict: Conflict, states: ConflictStates) -> CommitMeta | None:
    key = conflict.theirs_key or conflict.base_key or conflict.key
    if states.is_undone or key is None:
        return None
    try:
        return call.repository.last_change(states.theirs, key)
    except NotAllowed:
        return None


def _result(
    conflict: Conflict, chosen: str, results: Mapping[str | None, Content]
) -> Content | None:
    """Returns the content after a decision. Without a change of ours, it is not in `results`."""
    if chosen == "ours" and conflict.actual is not None:
        return results.get(conflict.actual.id, conflict.actual)
    if chosen == "theirs" and conflict.proposed is not None:
        return results.get(conflict.proposed.id)
    return None
