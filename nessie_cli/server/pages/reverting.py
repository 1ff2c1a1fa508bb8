"""The page of a revert: its preview, the decisions about conflicts, and the revert itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from nessie_cli.errors import InvalidInput, ReferenceConflict
from nessie_cli.iceberg.combination.merging import TableMerger
from nessie_cli.iceberg.deleted_files import refuse_deleted
from nessie_cli.inspection.changes import ContentChange, changes_of, tally
from nessie_cli.model import CommitMeta, Content, DiffEntry, KeyBehavior, LogEntry, Reference
from nessie_cli.model.conflicts import merge_message
from nessie_cli.repository.changes import Commit, MergeOptions
from nessie_cli.repository.draft import LargeMerge
from nessie_cli.repository.edits import operations_for
from nessie_cli.repository.inverse import Inverse, InvertedCommits, invert
from nessie_cli.repository.recreated import refuse_second_entries
from nessie_cli.revisions import Revision
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pages.call import PageCall
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
from nessie_cli.server.pages.merging import MergedChange, merged_change
from nessie_cli.server.pages.previews import (
    MOST_PREVIEWED,
    first_step,
    preview_page,
    without_frames,
)
from nessie_cli.server.pages.table_access import TableAccess
from nessie_cli.server.pages.urls import page_url

if TYPE_CHECKING:
    from nessie_cli.server.nessie.combination import TableCombinations


class Revert(NamedTuple):
    """A commit to revert, and the branch on which it is reverted."""

    commit: LogEntry
    branch: Reference

    @property
    def message(self) -> str:
        """The default message."""
        entry = self.commit
        return f'Revert "{entry.meta.subject}"\n\nThis reverts commit {entry.hash}.'

    @property
    def states(self) -> ConflictStates:
        """The states of conflicts: the base is the commit, theirs the state before it."""
        commit, branch = self.commit, self.branch
        commits = (commit.hash, branch.hash, commit.parent)
        theirs = Revision(None, commit.parent)
        return ConflictStates(Revision(branch.name), theirs, commits, is_undone=True)


class RevertDraft(NamedTuple):
    """What a revert would do: the inverse with the combined tables, or the conflicts."""

    inverse: Inverse | None
    merger: TableMerger | None
    conflict: ReferenceConflict | None = None


class RevertPages:
    """The pages of reverts. With `combinations`, tables that were changed since combine."""

    def __init__(self, access: TableAccess, combinations: TableCombinations | None) -> None:
        self._access = access
        self._combinations = combinations

    async def show(self, call: PageCall) -> Reply:
        """`GET /ui/revert`: what the revert of a commit with some decisions would change."""
        step = await first_step(self._access, call, self._show)
        reply: Reply = step.answer
        return reply

    async def revert(self, call: PageCall) -> Reply:
        """`POST /ui/revert`: the revert that was shown, or that the branch has moved since."""
        step = await first_step(self._access, call, self._revert)
        reply: Reply = step.answer
        return reply

    def _show(self, most: int, call: PageCall) -> Reply:
        """Returns the preview of at most so many changes. Raises `LargeMerge` for more."""
        asked = _revert_of(call)
        if not call.value("full") and _is_large(call, asked, MOST_PREVIEWED):
            return _reply(call, asked, is_large=True)
        _check_size(call, asked, most)
        return self._page(call, asked, decisions(call.parameters))

    def _revert(self, most: int, call: PageCall) -> Reply:
        asked = _revert_of(call)
        given = decisions(call.form)
        done = redirect(page_url("history", ref=asked.branch.name, done="revert"))
        if call.was_done(asked.branch.name):
            return done
        _check_size(call, asked, most)
        if call.needed_field("target_hash") != asked.branch.hash:
            return self._page(call, asked, given)
        undecided = self._draft(call, asked, ())
        conflicts = undecided.conflict.conflicts if undecided.conflict else ()
        if has_outdated(conflicts, given):
            return self._page(call, asked, given)._replace(status=HTTPStatus.CONFLICT)
        decided = behaviors(conflicts, given)
        meta = CommitMeta(call.field("message") or asked.message, authors=call.authors)
        if self._draft(call, asked, decided, meta).conflict is not None:
            return self._page(call, _revert_of(call), given)
        return done

    def _page(self, call: PageCall, asked: Revert, given: Mapping[str, str]) -> Reply:
        undecided = self._draft(call, asked, ())
        conflicts = undecided.conflict.conflicts if undecided.conflict else ()
        decided = undecided
        if conflicts and given:
            decided = self._draft(call, asked, behaviors(conflicts, given))
        left = decided.conflict.conflicts if decided.conflict else ()
        changes = _changes(decided)
        contents = [change.after for change in changes if change.after is not None]
        results: dict[str | None, Content] = {content.id: content for content in contents}
        states = asked.states
        return _reply(
            call,
            asked,
            conflicts=shown_conflicts(
                call, self._access, conflicts, Decided(given, results), states
            ),
            left=len(left),
            arising=arising(conflicts, left),
            numbers=tally(changes),
            listing=_merged_changes(call, asked, decided, listing(call, changes)),
        )

    def _draft(
        self,
        call: PageCall,
        asked: Revert,
        decided: Sequence[KeyBehavior],
        meta: CommitMeta | None = None,
    ) -> RevertDraft:
        """Returns what a revert would do. With the metadata of its commit, does it."""
        branch, dry_run = asked.branch.name, meta is None
        description = f"revert of {asked.commit.hash[:12]}"
        turn = (
            self._combinations.reverting(call, branch, description, dry_run=dry_run)
            if self._combinations is not None
            else nullcontext()
        )

        def do(options: MergeOptions) -> Inverse:
            inverse = _inverse(call, asked, options.behaviors)
            if self._combinations is not None:
                resolved = (each.resolved for each in options.behaviors if each.resolved)
                refuse_deleted(
                    inverse.edits,
                    [*inverse.state.values(), *resolved],
                    "`nessie revert` can leave single tables as they are: --ours KEY",
                    self._combinations.is_deleted,
                )
            return _performed(call, asked, inverse, meta)

        options = MergeOptions(behaviors=decided)
        with turn as merger:
            try:
                inverse = do(options) if merger is None else merger.merge(do, options)
            except ReferenceConflict as conflict:
                return RevertDraft(None, merger, without_frames(conflict))
        return RevertDraft(inverse, merger)


def _reply(call: PageCall, asked: Revert, *, is_large: bool = False, **values: Any) -> Reply:
    """Returns the page. A revert that `is_large` is previewed only if that is asked for."""
    target = asked.branch.hash
    shown = call.value("target_hash") or target
    return preview_page(
        call,
        "revert.html",
        f"Revert {asked.commit.hash[:12]} on {asked.branch.name}",
        moved_from=shown if shown != target else "",
        message=asked.message,
        is_large=is_large,
        at=asked.branch,
        revision=asked.branch.name,
        fixed_url=call.url_with(ref=asked.commit.hash, target_hash=target),
        asked=asked,
        **values,
    )


def _check_size(call: PageCall, asked: Revert, most: int) -> None:
    """Raises `LargeMerge` if a commit has more than `most` changes."""
    if _is_large(call, asked, most):
        raise LargeMerge


def _is_large(call: PageCall, asked: Revert, most: int) -> bool:
    """Returns whether a commit has more than `most` changes."""
    ends = Revision(None, asked.commit.parent), Revision(None, asked.commit.hash)
    changes = islice(call.repository.diff(*ends), most + 1)
    return sum(1 for _ in changes) > most


def _revert_of(call: PageCall) -> Revert:
    """Returns the commit and the branch that a page or form names."""
    repository = call.repository
    commit = call.commit_named(call.text("ref") or call.needed_field("ref"))
    name = call.value("into") or call.default_branch
    return Revert(commit, repository.reference(name))


def _inverse(call: PageCall, asked: Revert, decided: Sequence[KeyBehavior]) -> Inverse:
    commits = InvertedCommits(asked.commit.hash, asked.commit.parent)
    return invert(call.repository, commits, asked.branch.hash, decided)


def _performed(call: PageCall, asked: Revert, inverse: Inverse, meta: CommitMeta | None) -> Inverse:
    """Drafts the revert, or commits it if it has metadata. Raises `ReferenceConflict`."""
    if inverse.conflicts:
        raise ReferenceConflict(
            merge_message(inverse.conflicts),
            inverse.conflicts,
            reference=asked.branch.name,
            head=asked.branch.hash,
            expected_hash=asked.commit.hash,
        )
    refuse_second_entries(inverse.state, inverse.edits)
    edits = operations_for(inverse.edits, inverse.state, inverse.origins)
    if not edits:
        if meta is not None:
            raise InvalidInput("there is nothing to revert")
        return inverse
    change = Commit(
        asked.branch.name,
        [edit.operation for edit in edits],
        meta or CommitMeta(asked.message),
        asked.branch.hash,
        dry_run=meta is None,
    )
    if meta is None:
        call.preview(change)
    else:
        call.commit(change)
    return inverse


def _changes(draft: RevertDraft) -> list[ContentChange]:
    """Returns the changes of the branch."""
    inverse = draft.inverse
    if inverse is None:
        return []
    # A namespace that was created again stays as it is.
    edits = operations_for(inverse.edits, inverse.state, inverse.origins)
    keys = sorted({edit.operation.key for edit in edits})
    return changes_of(DiffEntry(key, inverse.state.get(key), inverse.edits[key]) for key in keys)


def _merged_changes(
    call: PageCall, asked: Revert, draft: RevertDraft, page: Listing[ContentChange]
) -> Listing[MergedChange]:
    """Returns the changes of a page, with the combinations of their tables."""
    combinations = draft.merger.combinations if draft.merger is not None else {}
    return page.with_rows(
        [
            merged_change(
                call,
                change,
                combinations.get(change.after.id if change.after else None),
                asked.branch.name,
            )
            for change in page.rows
        ]
    )
