"""The verb merge of the embedded repository, and the parts that a transplant shares."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import count
from typing import NamedTuple

from msgspec import structs

from nessie_cli.errors import CommitNotFound, InvalidInput, MergeConflict, NessieError
from nessie_cli.kernel import history, tree
from nessie_cli.kernel.commits import Stamp, check_client_meta, draft_commit, root_of
from nessie_cli.kernel.content_changes import MergeSides, ThreeWay
from nessie_cli.kernel.content_rules import ContentRules
from nessie_cli.kernel.edit import edit
from nessie_cli.kernel.fast_paths import near_merge_base
from nessie_cli.kernel.forms import NO_COMMIT, Id, decode_key
from nessie_cli.kernel.key_merge import KeyRules
from nessie_cli.kernel.objects import Objects
from nessie_cli.kernel.outcome import Detail, Outcome, describe, option_of, place_of
from nessie_cli.kernel.virtual_base import virtual_base
from nessie_cli.model import (
    CommitMeta,
    Conflict,
    Content,
    MergeDetail,
    MergeResult,
    Reference,
)
from nessie_cli.model.conflicts import merge_message
from nessie_cli.model.progress import Progress, with_progress
from nessie_cli.repository.changes import Merge, MergeOptions
from nessie_cli.repository.commits import conflict_error
from nessie_cli.repository.draft import ChangeSubmission, Draft, DraftEffect
from nessie_cli.repository.requests import Recorded, digest
from nessie_cli.repository.snapshot import StoreSnapshot
from nessie_cli.repository.writes import (
    UNVALIDATED,
    BranchDrafts,
    existing_branch,
    expected_commit,
    refuse_changed,
    repeated_draft,
)
from nessie_cli.revisions import Revision
from nessie_cli.store.records import StoredReference

_VISITS = 4
"""The commits that a search for merge bases visits in the time that a change takes."""


class MergeTarget(NamedTuple):
    """The branch and source of a merge or transplant.

    `expected` is the commit of the expected hash, without one HEAD. `bases` are the merge bases,
    none for a transplant. `shows_contents` is that of the submission.
    """

    branch: StoredReference
    expected_hash: str | None
    expected: Id
    bases: Sequence[Id]
    source: Id
    shows_contents: bool
    progress: Progress | None = None

    @property
    def base(self) -> Id | None:
        """The first merge base, which the answer names; None for a transplant."""
        return self.bases[0] if self.bases else None


def merge(at: StoreSnapshot, change: Merge, submission: ChangeSubmission) -> Draft[MergeResult]:
    """Drafts a merge of the changes of a source into a branch."""
    options = change.options
    if options.meta is not None:
        check_client_meta(options.meta)
    name = at.branch_name(change.branch)
    basis = at.view.basis(name, submission.request_id)
    if basis.request is not None:
        return repeated_draft(
            at,
            change,
            basis.request,
            submission.digest or digest(change),
            partial(_recorded_answer, at, change, submission),
        )
    source = at.resolve(change.source)
    branch = existing_branch(name, basis.reference, "merge")
    return _merge(BranchDrafts(at, change, branch, basis.settings), change, submission, source)


def _recorded_answer(
    at: StoreSnapshot, change: Merge, submission: ChangeSubmission, done: Recorded
) -> MergeResult:
    # The source may have moved since. The commit records what was merged.
    merged = at.objects.commit(after(done)).parents[1]
    source = at.resolve(Revision(None, merged.hex()))
    drafts = BranchDrafts(at, change, was_at(done), UNVALIDATED)
    draft = _merge(drafts, change, submission.repetition(), source)
    return as_recorded(draft.answer(), done)


def _merge(
    drafts: BranchDrafts[MergeResult],
    change: Merge,
    submission: ChangeSubmission,
    source: Reference,
) -> Draft[MergeResult]:
    at, branch = drafts.at, drafts.branch
    options, context, objects = change.options, at.context, at.drafting_objects()
    from_ = bytes.fromhex(source.hash)
    expected = expected_commit(objects, branch, options.expected_hash)
    bases = _bases(drafts, objects, from_, options, submission)
    target = MergeTarget(
        branch,
        options.expected_hash,
        expected,
        bases,
        from_,
        submission.shows_contents,
        context.progress,
    )
    if target.base == from_:
        return drafts.unchanged(answer(objects, target, {}, branch.target))
    rules = rules_of(objects, options)
    outcome = rules.apply(
        objects,
        _sides(objects, target, submission),
        validate_namespaces=drafts.validates_namespaces,
    )
    root = root_of(objects, branch.target)
    effect = DraftEffect(
        objects, root, outcome.edits_if_source_wins(), [branch.target, from_], [from_]
    )
    keys = () if options.per_key else outcome.edits.keys() | outcome.judged_keys
    refuse = refusal(at, objects, target, outcome, rules, changed=keys, decided=outcome.decided_ids)
    if refuse is not None:
        return drafts.refused(refuse, effect)
    # A merge per content is recorded even if it changes nothing, so its decisions are remembered.
    if options.dry_run or (options.per_key and not outcome.edits):
        result = answer(
            objects, target, outcome.details, None if options.dry_run else branch.target
        )
        return drafts.unchanged(result, effect)
    at_target = tree.get(objects, root, outcome.edits)
    generated = (
        f"Merged {source.name or 'DETACHED'} at {source.hash}"
        f" into {branch.name} at {expected.hex()}"
    )
    meta = options.meta or CommitMeta(generated)
    meta = meta if meta.message else structs.replace(meta, message=generated)
    new_root = edit(objects, root, outcome.edits)
    stamp = Stamp(context.who, context.clock())
    new = draft_commit(
        objects,
        [branch.target, from_],
        new_root,
        outcome.operations(at_target),
        meta=meta,
        stamp=stamp,
    )
    return drafts.moved(
        submission,
        "merge",
        new,
        answer=answer(objects, target, outcome.details, new, applied=True),
        effect=effect,
        digest=lambda: submission.digest or digest(change),
        required=[from_] if from_ != NO_COMMIT else (),
    )


def was_at(done: Recorded) -> StoredReference:
    """Returns the branch as it was before a recorded request moved it."""
    move = done.moves[-1]
    assert move.before is not None
    return StoredReference(move.name, move.kind, move.before)


def after(done: Recorded) -> Id:
    """Returns the commit to which a recorded request moved its branch."""
    commit = done.moves[-1].after
    assert commit is not None
    return commit


def as_recorded(result: MergeResult, done: Recorded) -> MergeResult:
    """Returns the answer of a recorded request, from a draft on the state before it."""
    return structs.replace(result, resultant_hash=after(done).hex(), applied=True)


def _bases(
    drafts: BranchDrafts[MergeResult],
    objects: Objects,
    source: Id,
    options: MergeOptions,
    submission: ChangeSubmission,
) -> Sequence[Id]:
    """Returns the merge bases. A merge per key has one, as in the original.

    Raises `LargeMerge` if the search takes as long as too many changes.
    """
    branch, visited = drafts.branch, count()

    def visit() -> bool:
        submission.check_size(next(visited) // _VISITS)
        return False

    if source == NO_COMMIT != branch.target:
        return [NO_COMMIT]
    # This base is the only one.
    near = near_merge_base(objects, drafts.at.view.find_indexed, branch.target, source)
    bases = (
        [near]
        if near is not None
        else [history.merge_base(objects, branch.target, source, visit)]
        if options.per_key
        else history.merge_bases(objects, [branch.target], [source], is_over=visit)
    )
    if bases == [NO_COMMIT] and not options.unrelated:
        raise CommitNotFound(
            f"No common ancestor in parents of {branch.target.hex()} and {source.hex()}",
            source.hex(),
        )
    return bases


def rules_of(objects: Objects, options: MergeOptions) -> KeyRules | ContentRules:
    """Returns the rules that a merge or transplant follows, with its decisions."""
    rules = KeyRules if options.per_key else ContentRules
    return rules(objects, options.behaviors, options.default_behavior)


def _sides(objects: Objects, target: MergeTarget, submission: ChangeSubmission) -> MergeSides:
    ours, theirs = (root_of(objects, id_) for id_ in (target.branch.target, target.source))
    if len(target.bases) == 1:
        base, contested = root_of(objects, target.bases[0]), None
    else:
        # Each further merge base, also of the merge bases, costs one more merge.
        submission.check_size(sys.maxsize)
        base, contested = virtual_base(objects, target.bases, ours, theirs)
    most = submission.most_changes
    three_way = tree.three_way(objects, base, ours, theirs, None if most is None else most + 1)
    changes = [ThreeWay(*states) for states in with_progress(three_way, target.progress, None)]
    submission.check_size(len(changes))
    return MergeSides(
        base,
        ours,
        changes,
        target.branch.target,
        target.source,
        contested=contested,
    )


def refusal(
    at: StoreSnapshot,
    objects: Objects,
    target: MergeTarget,
    outcome: Outcome,
    rules: KeyRules | ContentRules | None,
    *,
    changed: Collection[bytes] = (),
    decided: Collection[bytes] = (),
) -> Callable[[], NessieError] | None:
    """Returns the error that prevents an outcome, or None.

    With `rules`, also verifies that each decision was used. `changed` are keys, and `decided` the
    ids of contents, that must be the same at the expected hash.
    """
    branch = target.branch
    if moved := refuse_changed(objects, branch, target.expected, changed, decided):
        return moved
    if outcome.namespace_conflicts:
        return partial(
            conflict_error,
            at,
            objects,
            branch,
            target.base or NO_COMMIT,
            outcome.namespace_conflicts,
            shows_contents=target.shows_contents,
        )
    try:
        if rules is not None:
            rules.check_used(outcome, is_transplant=target.base is None)
    except InvalidInput as error:
        unused = error
        return lambda: unused
    return partial(_merge_conflict, at, objects, target, outcome) if outcome.conflicts else None


def _merge_conflict(
    at: StoreSnapshot, objects: Objects, target: MergeTarget, outcome: Outcome
) -> MergeConflict:
    """Returns the error for the conflicts of a merge, with the commits that caused them."""
    conflicts = describe(
        objects,
        outcome.conflicts,
        lambda key: at.last_change(objects, target.source, key),
        lambda key: at.last_change(objects, target.branch.target, key),
        shows_contents=target.shows_contents,
    )
    contents = {
        record: content
        for stored, shown in zip(outcome.conflicts, conflicts, strict=True)
        for record, content in (
            (stored.expected, shown.expected),
            (stored.actual, shown.actual),
            (stored.proposed, shown.proposed),
        )
        if content is not None
    }
    result = answer(
        objects, target, outcome.details, None, conflicts=conflicts, conflicting=contents
    )
    if outcome.effect is not None:
        result = structs.replace(result, decided=option_of(outcome.effect))
    return MergeConflict(merge_message(conflicts), conflicts, result)


def answer(
    objects: Objects,
    target: MergeTarget,
    details: Mapping[bytes, Detail],
    head: Id | None,
    *,
    applied: bool = False,
    conflicts: Sequence[Conflict] = (),
    conflicting: Mapping[bytes | None, Content] = {},
    skipped: Sequence[Id] = (),
) -> MergeResult:
    """Returns the answer for these decisions, with the contents of both sides if they are shown.

    `head` is the new HEAD or None. `conflicting` are the contents of the conflicts, which were read
    for these.
    """
    by_key = {conflict.key: conflict for conflict in conflicts}
    contents: Mapping[bytes | None, Content] = {}
    if target.shows_contents:
        records = [r for d in details.values() for r in (d.source, d.target, d.result) if r]
        others = [record for record in records if record not in conflicting]
        contents = {**conflicting, **objects.contents_by_record(others, target.progress)}
    return MergeResult(
        target_branch=target.branch.name,
        effective_target_hash=target.branch.target.hex(),
        resultant_hash=head.hex() if head is not None else None,
        common_ancestor=target.base.hex() if target.base is not None else None,
        expected_hash=target.expected_hash,
        applied=applied,
        successful=not conflicts,
        details=tuple(
            MergeDetail(
                key := decode_key(raw),
                detail.behavior,
                by_key.get(key),
                contents.get(detail.source),
                contents.get(detail.target),
                contents.get(detail.result),
                place_of(detail.source_at),
                place_of(detail.result_at),
                is_resolved=detail.is_resolved,
            )
            for raw, detail in details.items()
        ),
        skipped=tuple(commit.hex() for commit in skipped),
        has_several_bases=len(target.bases) > 1,
    )
