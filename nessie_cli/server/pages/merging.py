"""The page of a merge: what it would change, the decisions about its conflicts, and the merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from nessie_cli.errors import MergeConflict
from nessie_cli.inspection.changes import ContentChange, changes_of, tally
from nessie_cli.inspection.conflicts import SideChange, differing_fields, side_changes
from nessie_cli.inspection.decisions import DecisionEffect, effects_of, options_of
from nessie_cli.inspection.fields import Difference, fields
from nessie_cli.inspection.merges import differences_of
from nessie_cli.model import (
    CombinationRules,
    CommitMeta,
    Conflict,
    Content,
    KeyBehavior,
    MergeBehavior,
    MergeDetail,
    MergeResult,
    Reference,
    ReferenceType,
    TableCombination,
)
from nessie_cli.repository.changes import Merge, MergeOptions
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pages.call import PageCall
from nessie_cli.server.pages.html import redirect
from nessie_cli.server.pages.listings import listing
from nessie_cli.server.pages.urls import page_url

if TYPE_CHECKING:
    from nessie_cli.server.nessie.combination import TableCombinations

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


class ChangeRow(NamedTuple):
    """A change of the target, and its combination, if the table combines both sides."""

    change: ContentChange
    combination: TableCombination | None


class Sides(NamedTuple):
    """The two sides of a merge, as the page shows them."""

    source: Reference
    target: Reference

    @property
    def message(self) -> str:
        """The default message of the merge."""
        kind = self.source.type.lower() if self.source.name else "commit"
        return f"Merge {kind} '{self.source.name or self.source.hash[:12]}' into {self.target.name}"


class MergePages:
    """The pages of merges. With `combinations`, tables that both sides changed combine."""

    def __init__(self, combinations: TableCombinations | None) -> None:
        self._combinations = combinations

    def show(self, call: PageCall) -> Reply:
        """`GET /ui/merge`: what a merge with some decisions would change."""
        return self._page(call, _sides_of(call), _decisions(call.parameters))

    def merge(self, call: PageCall) -> Reply:
        """`POST /ui/merge`: the merge that was shown, or what has moved since."""
        sides = _sides_of(call)
        shown = call.needed_field("source_hash"), call.needed_field("target_hash")
        given = _decisions(call.form)
        if call.was_done(sides.target.name):
            return redirect(page_url("history", ref=sides.target.name))
        if (sides.source.hash, sides.target.hash) != shown:
            return self._page(call, sides, given, moved_from=Sides(*_at(sides, shown)))
        conflicts = _conflicts(self._draft(call, sides, ()))
        behaviors = _behaviors(conflicts, given)
        meta = CommitMeta(call.field("message") or sides.message, authors=call.authors)
        try:
            self._submit(call, _merge(sides, behaviors, meta, dry_run=False))
        except MergeConflict:
            return self._page(call, _sides_of(call), given)
        return redirect(page_url("history", ref=sides.target.name))

    # -- the preview -------------------------------------------------------------------------------
    def _page(
        self,
        call: PageCall,
        sides: Sides,
        given: Mapping[str, str],
        moved_from: Sides | None = None,
    ) -> Reply:
        undecided = self._draft(call, sides, ())
        conflicts = _conflicts(undecided)
        decided = undecided
        if conflicts and given:
            decided = self._draft(call, sides, _behaviors(conflicts, given))
        result = decided.result if isinstance(decided, MergeConflict) else decided
        rows = _change_rows(result)
        reply = call.page(
            "merge.html",
            f"Merge {sides.source.name or sides.source.hash[:12]} into {sides.target.name}",
            at=sides.source,
            sides=sides,
            moved_from=moved_from,
            conflicts=_conflict_rows(conflicts, given, result),
            left=len(_conflicts(decided)),
            numbers=tally(row.change for row in rows),
            listing=listing(call, rows),
            is_merged=result.resultant_hash is not None and not rows and not conflicts,
            message=call.text("message") or sides.message,
            request=token_hex(16),
        )
        return reply._replace(status=409) if moved_from else reply

    def _draft(
        self, call: PageCall, sides: Sides, behaviors: Sequence[KeyBehavior]
    ) -> MergeResult | MergeConflict:
        """Returns the result of a dry run, or its conflicts."""
        try:
            return self._submit(call, _merge(sides, behaviors, None, dry_run=True))
        except MergeConflict as conflict:
            return conflict

    def _submit(self, call: PageCall, change: Merge) -> MergeResult:
        if self._combinations is not None:
            return self._combinations.submit(call, change, CombinationRules())
        return call.preview(change) if change.is_dry_run else call.commit(change)


def _sides_of(call: PageCall) -> Sides:
    """Returns the sides that a page or form names."""
    source = call.repository.resolve(call.text("source") or call.needed_field("source"))
    name = call.text("into") or call.field("into") or call.default_branch
    return Sides(source, call.repository.reference(name))


def _at(sides: Sides, hashes: tuple[str, str]) -> list[Reference]:
    return [structs.replace(side, hash=hash_) for side, hash_ in zip(sides, hashes, strict=True)]


def _merge(
    sides: Sides, behaviors: Sequence[KeyBehavior], meta: CommitMeta | None, *, dry_run: bool
) -> Merge:
    source, target = sides
    named = source.name if source.type is not ReferenceType.DETACHED else ""
    options = MergeOptions(
        meta=meta, behaviors=behaviors, expected_hash=target.hash, dry_run=dry_run
    )
    return Merge(target.name, f"{named}@{source.hash}", options)


def _conflicts(draft: MergeResult | MergeConflict) -> Sequence[Conflict]:
    return draft.conflicts if isinstance(draft, MergeConflict) else ()


def _decisions(fields: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Returns the decisions of a form by the names of their fields."""
    return {
        name: values[0]
        for name, values in fields.items()
        if name.startswith(_DECISION) and values[0] in BEHAVIORS
    }


def _field_of(conflict: Conflict) -> str:
    return f"{_DECISION}{conflict.content_id or conflict.key}"


def _behaviors(conflicts: Sequence[Conflict], given: Mapping[str, str]) -> list[KeyBehavior]:
    """Returns the decisions about conflicts, bound to the contents that were shown."""
    decided: dict[str, KeyBehavior] = {}
    for conflict in conflicts:
        field = _field_of(conflict)
        if field in given and conflict.key is not None:
            decided[field] = KeyBehavior(
                conflict.key,
                BEHAVIORS[given[field]],
                expected_target=conflict.actual,
                content_id=conflict.content_id,
            )
    return list(decided.values())


def _conflict_rows(
    conflicts: Sequence[Conflict], given: Mapping[str, str], result: MergeResult
) -> list[ConflictRow]:
    results = {detail.result.id: detail.result for detail in result.details if detail.result}
    return [_conflict_row(conflict, given, results) for conflict in conflicts]


def _conflict_row(
    conflict: Conflict, given: Mapping[str, str], results: Mapping[str | None, Content]
) -> ConflictRow:
    field = _field_of(conflict)
    chosen = given.get(field, "")
    words = {behavior: word for word, behavior in BEHAVIORS.items()}
    content = results.get(conflict.content_id) if chosen else None
    return ConflictRow(
        conflict,
        field,
        *side_changes(conflict),
        differing_fields(conflict),
        [
            Choice(words[option.behavior], effects_of(option, conflict))
            for option in sorted(options_of(conflict), key=lambda each: each.behavior)
            if option.behavior in words
        ],
        chosen,
        fields(content) if content is not None else None,
    )


def _change_rows(result: MergeResult) -> list[ChangeRow]:
    combinations: dict[object, MergeDetail] = {
        detail.key: detail for detail in result.details if detail.combination is not None
    }
    rows = []
    certain = structs.replace(
        result, details=tuple(each for each in result.details if each.conflict is None)
    )
    for change in changes_of(differences_of(certain)):
        detail = combinations.get(change.key)
        rows.append(ChangeRow(change, detail.combination if detail else None))
    return rows
