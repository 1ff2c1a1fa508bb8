"""The page of a merge: its preview, the decisions about its conflicts, and the merge itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from nessie_cli.errors import MergeConflict, NotAllowed, ReferenceMoved
from nessie_cli.inspection.changes import ContentChange, changes_of, tally
from nessie_cli.inspection.merges import differences_of
from nessie_cli.inspection.text import short_hash
from nessie_cli.model import (
    NO_ANCESTOR,
    CombinationRules,
    CommitMeta,
    Conflict,
    Content,
    KeyBehavior,
    MergeResult,
    Reference,
    ReferenceType,
    TableCombination,
)
from nessie_cli.repository.changes import Merge, MergeOptions
from nessie_cli.repository.draft import LargeMerge
from nessie_cli.revisions import Revision
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pages.call import PageCall
from nessie_cli.server.pages.changes import has_rows
from nessie_cli.server.pages.conflicts import (
    ConflictStates,
    Decided,
    arising,
    behaviors,
    decisions,
    has_outdated,
    shown_conflicts,
)
from nessie_cli.server.pages.html import redirect
from nessie_cli.server.pages.listings import Listing, listing
from nessie_cli.server.pages.previews import MOST_PREVIEWED, preview_page
from nessie_cli.server.pages.table_access import TableAccess
from nessie_cli.server.pages.urls import page_url

if TYPE_CHECKING:
    from nessie_cli.server.nessie.combination import TableCombinations

MOST_TRIES = 3
"""How often a page is made again because its target has moved meanwhile."""


class MergedChange(NamedTuple):
    """A change of the target, and whether it combines the files of both sides.

    `combination` has the numbers of that, if the caller may know them.
    """

    change: ContentChange
    is_combined: bool
    combination: TableCombination | None

    @property
    def is_table(self) -> bool:
        """Whether there are rows that can be compared."""
        return has_rows(self.change)


def merged_change(
    call: PageCall, change: ContentChange, combination: TableCombination | None, target: str
) -> MergedChange:
    """Returns a change of a branch."""
    is_shown = combination is not None and call.may_read_rows(
        Revision(target), change.old_key or change.key
    )
    return MergedChange(change, combination is not None, combination if is_shown else None)


class Sides(NamedTuple):
    """The two sides of a merge. `is_head` is whether the source is the head of its reference."""

    source: Reference
    target: Reference
    is_head: bool

    @property
    def revision(self) -> str:
        """The text that names the source."""
        name, hash_ = self.source.name, self.source.hash
        return name if self.is_head else f"{name}@{hash_}" if name else hash_

    def states(self, base: str) -> ConflictStates:
        """The states of conflicts, given the hash of the merge base."""
        source, target = self.source, self.target
        return ConflictStates(
            Revision(target.name),
            Revision(source.name or None, source.hash),
            (base, target.hash, source.hash),
        )

    @property
    def label(self) -> str:
        """The source for people."""
        name, hash_ = self.source.name, short_hash(self.source.hash)
        return name if self.is_head else f"{name}@{hash_}" if name else hash_

    @property
    def message(self) -> str:
        """The default message of the merge."""
        kind = self.source.type.lower() if self.is_head else "commit"
        name = self.source.name if self.is_head else short_hash(self.source.hash)
        return f"Merge {kind} '{name}' into {self.target.name}"


class MergePages:
    """The pages of merges. With `combinations`, tables that both sides changed combine."""

    def __init__(self, access: TableAccess, combinations: TableCombinations | None) -> None:
        self._access = access
        self._combinations = combinations

    def show(self, call: PageCall) -> Reply:
        """`GET /ui/merge`: what a merge with some decisions would change.

        With the commits that were shown, it says what has moved since.
        """
        return self._present_page(call, decisions(call.parameters))

    def merge(self, call: PageCall) -> Reply:
        """`POST /ui/merge`: the merge that was shown, or what has moved since."""
        sides = _sides_of(call)
        for name in ("source_hash", "target_hash"):
            call.needed_field(name)
        given = decisions(call.form)
        done = redirect(page_url("history", ref=sides.target.name, done="merge"))
        if call.was_done(sides.target.name):
            return done
        if _moved_from(call, sides) is not None:
            return self._present_page(call, given)
        try:
            return self._merged(call, sides, given) or done
        except ReferenceMoved:
            # The target has changed the same contents after the check above.
            return self._present_page(call, given)

    def _merged(self, call: PageCall, sides: Sides, given: Mapping[str, str]) -> Reply | None:
        """Merges; returns a page if it has to be shown before. Raises `ReferenceMoved`."""
        conflicts = _conflicts(self._draft(call, sides, ()))
        if has_outdated(conflicts, given):
            # A file that was not readable for the page combines now, for example.
            return self._page(call, sides, given)._replace(status=HTTPStatus.CONFLICT)
        decided = behaviors(conflicts, given)
        meta = CommitMeta(call.field("message") or sides.message, authors=call.authors)
        try:
            self._submit(call, _merge(sides, decided, meta, dry_run=False))
        except MergeConflict:
            return self._present_page(call, given)
        return None

    # -- the preview -------------------------------------------------------------------------------
    def _present_page(self, call: PageCall, given: Mapping[str, str]) -> Reply:
        """Returns the page of the present commits, which may move while it is made."""
        for _ in range(MOST_TRIES):
            with suppress(ReferenceMoved):
                return self._page(call, _sides_of(call), given)
        return self._page(call, _sides_of(call), given)

    def _page(self, call: PageCall, sides: Sides, given: Mapping[str, str]) -> Reply:
        most = None if call.value("full") else MOST_PREVIEWED
        try:
            undecided = self._draft(call, sides, (), most)
        except LargeMerge:
            if _is_visibly_large(call, sides):
                return _reply(call, sides, is_large=True)
            # The rights of the caller are checked on the whole merge.
            undecided = self._draft(call, sides, ())
        conflicts = _conflicts(undecided)
        decided = undecided
        if conflicts and given:
            decided = self._draft(call, sides, behaviors(conflicts, given))
        result = decided.result if isinstance(decided, MergeConflict) else decided
        changes = _certain_changes(result)
        states = sides.states(result.common_ancestor or NO_ANCESTOR)
        results = _results(result)
        return _reply(
            call,
            sides,
            conflicts=shown_conflicts(
                call, self._access, conflicts, Decided(given, results), states
            ),
            left=len(_conflicts(decided)),
            arising=arising(conflicts, _conflicts(decided)),
            numbers=tally(changes),
            listing=_merged_changes(call, result, listing(call, changes)),
            is_merged=result.resultant_hash is not None and not changes and not conflicts,
            reads_rows=call.reads_rows,
        )

    def _draft(
        self,
        call: PageCall,
        sides: Sides,
        behaviors: Sequence[KeyBehavior],
        most_changes: int | None = None,
    ) -> MergeResult | MergeConflict:
        """Returns the result of a dry run, or its conflicts.

        Raises `LargeMerge` for more changes than `most_changes`.
        """
        try:
            return self._submit(call, _merge(sides, behaviors, None, dry_run=True), most_changes)
        except MergeConflict as conflict:
            return conflict

    def _submit(
        self, call: PageCall, change: Merge, most_changes: int | None = None
    ) -> MergeResult:
        if self._combinations is not None:
            return self._combinations.submit(call, change, CombinationRules(), most_changes)
        if change.is_dry_run:
            return call.preview(change, most_changes)
        return call.commit(change)


def _reply(call: PageCall, sides: Sides, *, is_large: bool = False, **values: Any) -> Reply:
    """Returns the page. A merge that `is_large` is previewed only if that is asked for."""
    source, target = sides.source.hash, sides.target.hash
    return preview_page(
        call,
        "merge.html",
        f"Merge {sides.label} into {sides.target.name}",
        moved_from=_moved_from(call, sides),
        message=sides.message,
        is_large=is_large,
        at=sides.source,
        revision=sides.revision,
        fixed_url=call.url_with(source=source, source_hash=source, target_hash=target),
        sides=sides,
        **({"is_merged": False} | values),
    )


def _is_visibly_large(call: PageCall, sides: Sides) -> bool:
    """Returns whether the caller may see more than `MOST_PREVIEWED` changes of the source."""
    states = sides.states(NO_ANCESTOR)
    with suppress(NotAllowed):
        base = Revision(None, call.repository.merge_base(states.ours, states.theirs))
        changes = islice(call.repository.diff(base, states.theirs), MOST_PREVIEWED + 1)
        return sum(1 for _ in changes) > MOST_PREVIEWED
    return False


def _sides_of(call: PageCall) -> Sides:
    """Returns the sides that a page or form names."""
    text = call.text("source") or call.needed_field("source")
    source = call.repository.resolve(text)
    name = call.value("into") or call.default_branch
    return Sides(source, call.repository.reference(name), is_head=text == source.name)


def _moved_from(call: PageCall, sides: Sides) -> Sides | None:
    """Returns the sides at the commits that were shown, or None if they have not moved."""
    shown = Sides(
        structs.replace(sides.source, hash=call.value("source_hash") or sides.source.hash),
        structs.replace(sides.target, hash=call.value("target_hash") or sides.target.hash),
        sides.is_head,
    )
    return shown if shown != sides else None


def _merge(
    sides: Sides, behaviors: Sequence[KeyBehavior], meta: CommitMeta | None, *, dry_run: bool
) -> Merge:
    source, target = sides.source, sides.target
    named = source.name if source.type is not ReferenceType.DETACHED else ""
    options = MergeOptions(
        meta=meta,
        behaviors=behaviors,
        # A merge into an empty branch needs no common history.
        unrelated=target.hash == NO_ANCESTOR,
        expected_hash=target.hash,
        dry_run=dry_run,
    )
    return Merge(target.name, f"{named}@{source.hash}", options)


def _conflicts(draft: MergeResult | MergeConflict) -> Sequence[Conflict]:
    return draft.conflicts if isinstance(draft, MergeConflict) else ()


def _results(result: MergeResult) -> dict[str | None, Content]:
    """Returns the contents of the target after a merge that it touches, by id."""
    return {detail.result.id: detail.result for detail in result.details if detail.result}


def _certain_changes(result: MergeResult) -> list[ContentChange]:
    """Returns the changes of the target that are not in conflict."""
    certain = tuple(each for each in result.details if each.conflict is None)
    return changes_of(differences_of(structs.replace(result, details=certain)))


def _merged_changes(
    call: PageCall, result: MergeResult, page: Listing[ContentChange]
) -> Listing[MergedChange]:
    """Returns the changes of a page, with the combinations of their tables."""
    combinations = {
        detail.key: detail.combination for detail in result.details if detail.combination
    }
    return page.with_rows(
        [
            merged_change(call, change, combinations.get(change.key), result.target_branch)
            for change in page.rows
        ]
    )
