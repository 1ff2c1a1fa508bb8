"""The page of a merge: its preview, the decisions about its conflicts, and the merge itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
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
    BEHAVIORS,
    ConflictStates,
    Decided,
    arising,
    behaviors,
    conflicts_of_page,
    decisions,
    has_outdated,
    shown_conflicts,
)
from nessie_cli.server.pages.html import redirect
from nessie_cli.server.pages.listings import Listing, listing
from nessie_cli.server.pages.previews import (
    MOST_PREVIEWED,
    first_step,
    preview_page,
    without_frames,
)
from nessie_cli.server.pages.row_choices import ROWS, row_choices
from nessie_cli.server.pages.row_merges import (
    NO_PLAN,
    NO_ROWS,
    Given,
    RowAnswer,
    RowMerges,
    RowPlan,
    RowResults,
)
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


class _Preview(NamedTuple):
    """A merge without decisions on a page, and what a process has to do for the page."""

    sides: Sides
    undecided: MergeResult | MergeConflict
    plan: RowPlan


class _Sent(NamedTuple):
    """A merge that was sent, its conflicts without decisions, and what a process does before."""

    sides: Sides
    conflicts: Sequence[Conflict]
    plan: RowPlan


class _Shown(NamedTuple):
    """The page is shown instead of a merge, with a status of its own or with another one."""

    status: HTTPStatus | None = None


class MergePages:
    """The pages of merges. With `combinations`, tables that both sides changed combine.

    Each request takes a thread that may wait, and none while a process merges rows.
    """

    def __init__(self, access: TableAccess, combinations: TableCombinations | None) -> None:
        self._access = access
        self._combinations = combinations
        self._rows = RowMerges(access)

    async def show(self, call: PageCall) -> Reply:
        """`GET /ui/merge`: what a merge with some decisions would change.

        With the commits that were shown, it says what has moved since.
        """
        return await self._present_page(call, _given(call.parameters))

    async def merge(self, call: PageCall) -> Reply:
        """`POST /ui/merge`: the merge that was shown, or what has moved since."""
        step, is_large = await first_step(self._access, call, self._begin_merge)
        given = _given(call.form)
        if isinstance(step, _Sent):
            answer = await self._rows.run(call, step.plan)
            end = partial(self._end_merge, given, step, answer)
            step = await self._access.answer_with_files(call, end, begun=True, large=is_large)
        if isinstance(step, _Shown):
            page = await self._present_page(call, given, begun=True)
            return page if step.status is None else page._replace(status=step.status)
        reply: Reply = step
        return reply

    def _begin_merge(self, most: int, call: PageCall) -> Reply | _Shown | _Sent:
        """Merges at most so many changes, unless a process has to merge rows before."""
        # The thread of the event loop never reads a form, which takes up to 30 ms.
        given = _given(call.form)
        sides = _sides_of(call)
        for name in ("source_hash", "target_hash"):
            call.needed_field(name)
        if call.was_done(sides.target.name):
            return _done(sides)
        if _moved_from(call, sides) is not None:
            return _Shown()
        try:
            undecided = self._draft(call, sides, (), most)
        except ReferenceMoved:
            return _Shown()
        plan = self._plan(call, sides, undecided, given, offered=(), writes=True)
        sent = _Sent(sides, _conflicts(undecided), plan)
        return sent if plan.request else self._end_merge(given, sent, RowAnswer(plan), call)

    def _end_merge(
        self, given: Given, sent: _Sent, answer: RowAnswer, call: PageCall
    ) -> Reply | _Shown:
        sides, conflicts, _ = sent
        rows = self._rows.results(answer)
        if has_outdated(conflicts, given.tables) or rows.are_outdated:
            # A file that was not readable for the page combines now, for example.
            return _Shown(HTTPStatus.CONFLICT)
        decided = behaviors(conflicts, given.tables)
        meta = CommitMeta(call.field("message") or sides.message, authors=call.authors)
        try:
            self._submit(call, _merge(sides, decided, meta, dry_run=False), rows=rows)
        except (MergeConflict, ReferenceMoved):
            # The target has changed the same contents after the check above, for example.
            return _Shown()
        return _done(sides)

    # -- the preview -------------------------------------------------------------------------------
    async def _present_page(self, call: PageCall, given: Given, *, begun: bool = False) -> Reply:
        """Returns the page of the present commits, which may move while it is made."""
        for _ in range(MOST_TRIES):
            with suppress(ReferenceMoved):
                return await self._page(call, given, begun=begun)
        return await self._page(call, given, begun=True)

    async def _page(self, call: PageCall, given: Given, *, begun: bool) -> Reply:
        first = partial(self._begin_page, given)
        page, is_large = await first_step(self._access, call, first, begun=begun)
        if isinstance(page, _Preview):
            answer = await self._rows.run(call, page.plan)
            end = partial(self._end_page, given, page, answer)
            page = await self._access.answer_with_files(call, end, begun=True, large=is_large)
        reply: Reply = page
        return reply

    def _begin_page(self, given: Given, most: int, call: PageCall) -> Reply | _Preview:
        """Returns the page, unless a process has to read something for it.

        Raises `LargeMerge` for more changes than `most`.
        """
        sides = _sides_of(call)
        try:
            undecided = self._draft(call, sides, (), most)
        except LargeMerge:
            if most > MOST_PREVIEWED and not _is_visibly_large(call, sides):
                raise NotAllowed("you may not read all that this merge changes") from None
            # Otherwise the rights of the caller are checked on the whole merge.
            if call.value("full") or not _is_visibly_large(call, sides):
                raise
            return _reply(call, sides, is_large=True)
        offered = {field for field, _ in conflicts_of_page(call, _conflicts(undecided)).rows}
        plan = self._plan(call, sides, undecided, given, offered=offered, writes=False)
        preview = _Preview(sides, undecided, plan)
        if plan.request is not None:
            return preview
        return self._end_page(given, preview, RowAnswer(plan), call)

    def _end_page(
        self, given: Given, preview: _Preview, answer: RowAnswer, call: PageCall
    ) -> Reply:
        sides, undecided, _ = preview
        rows = self._rows.results(answer)
        conflicts = _conflicts(undecided)
        decided = undecided
        if conflicts and given.tables:
            decided = self._draft(call, sides, behaviors(conflicts, given.tables), rows=rows)
        result = decided.result if isinstance(decided, MergeConflict) else decided
        changes = _certain_changes(result)
        states = sides.states(result.common_ancestor or NO_ANCESTOR)
        shown = Decided(
            given.tables,
            _results(result),
            given.rows,
            rows.refused(_conflicts(decided)).shown(given),
        )
        return _reply(
            call,
            sides,
            conflicts=shown_conflicts(call, self._access, conflicts, shown, states),
            left=len(_conflicts(decided)),
            arising=arising(conflicts, _conflicts(decided)),
            numbers=tally(changes),
            listing=_merged_changes(call, result, listing(call, changes)),
            is_merged=result.resultant_hash is not None and not changes and not conflicts,
            reads_rows=call.reads_rows,
        )

    def _plan(
        self,
        call: PageCall,
        sides: Sides,
        undecided: MergeResult | MergeConflict,
        given: Given,
        *,
        offered: Collection[str],
        writes: bool,
    ) -> RowPlan:
        """Returns what a process has to do."""
        if self._combinations is None or not isinstance(undecided, MergeConflict):
            return NO_PLAN
        base = undecided.result.common_ancestor or NO_ANCESTOR
        return self._rows.plan(
            call,
            undecided,
            sides.states(base).commits,
            given,
            description=self._combinations.describe(_merge(sides, (), None, dry_run=False)),
            offered=offered,
            writes=writes,
        )

    def _draft(
        self,
        call: PageCall,
        sides: Sides,
        behaviors: Sequence[KeyBehavior],
        most_changes: int | None = None,
        *,
        rows: RowResults = NO_ROWS,
    ) -> MergeResult | MergeConflict:
        """Returns the result of a dry run, or its conflicts.

        Raises `LargeMerge` for more changes than `most_changes`.
        """
        try:
            change = _merge(sides, behaviors, None, dry_run=True)
            return self._submit(call, change, most_changes, rows=rows)
        except MergeConflict as conflict:
            return without_frames(conflict)

    def _submit(
        self,
        call: PageCall,
        change: Merge,
        most_changes: int | None = None,
        *,
        rows: RowResults = NO_ROWS,
    ) -> MergeResult:
        if self._combinations is not None:
            rules, merged = CombinationRules(), list(rows.merged.values())
            return self._combinations.submit(call, change, rules, most_changes, merged)
        if change.is_dry_run:
            return call.preview(change, most_changes)
        return call.commit(change)


def _given(fields: Mapping[str, Sequence[str]]) -> Given:
    return Given(decisions(fields, {*BEHAVIORS, ROWS}), row_choices(fields))


def _done(sides: Sides) -> Reply:
    return redirect(page_url("history", ref=sides.target.name, done="merge"))


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
