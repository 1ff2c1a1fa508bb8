"""The verb transplant of the embedded repository."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from msgspec import UnsetType, structs

from nessie_cli.errors import CommitNotFound, InvalidInput
from nessie_cli.kernel import tree
from nessie_cli.kernel.commits import (
    Stamp,
    check_client_meta,
    draft_commit,
    meta_of,
    operations_of,
    root_of,
)
from nessie_cli.kernel.content_changes import MergeSides, ThreeWay
from nessie_cli.kernel.content_rules import ContentRules
from nessie_cli.kernel.edit import edit
from nessie_cli.kernel.forms import NO_COMMIT, Id, StoredCommit, content_id_of
from nessie_cli.kernel.objects import Objects
from nessie_cli.kernel.outcome import Detail, Outcome, Place, joined
from nessie_cli.model import CommitMeta, MergeBehavior, MergeResult
from nessie_cli.repository.changes import MergeOptions, Transplant
from nessie_cli.repository.draft import ChangeSubmission, Draft, DraftEffect
from nessie_cli.repository.merges import (
    MergeTarget,
    answer,
    as_recorded,
    refusal,
    rules_of,
    was_at,
)
from nessie_cli.repository.requests import Recorded, digest
from nessie_cli.repository.snapshot import Context, StoreSnapshot
from nessie_cli.repository.writes import (
    UNVALIDATED,
    BranchDrafts,
    existing_branch,
    expected_commit,
    repeated_draft,
)
from nessie_cli.revisions import Revision
from nessie_cli.store.records import StoredReference

MOST_TEXT = 64 << 20
"""The most text of several commits that are transplanted: it is in memory until the end."""
MOST_CHANGES = 200_000
"""The most changes of several commits: each may store nodes of 600 bytes."""


def transplant(
    at: StoreSnapshot, change: Transplant, submission: ChangeSubmission
) -> Draft[MergeResult]:
    """Drafts commits applied one by one onto a branch.

    Each keeps its message, authors, author time and properties.
    """
    options = change.options
    name = at.branch_name(change.branch)
    commits = [bytes.fromhex(at.resolve(Revision(None, text)).hash) for text in change.commits]
    _check_commits(at.objects, commits, any_order=options.any_order)
    if options.meta is not None:
        check_client_meta(options.meta)
    basis = at.view.basis(name, submission.request_id)
    if basis.request is not None:

        def recorded_answer(done: Recorded) -> MergeResult:
            drafts = BranchDrafts(at, change, was_at(done), UNVALIDATED)
            draft = _transplant(drafts, change, submission.repetition(), commits)
            return as_recorded(draft.answer(), done)

        asked = submission.digest or digest(change)
        return repeated_draft(at, change, basis.request, asked, recorded_answer)
    branch = existing_branch(name, basis.reference, "transplant")
    drafts = BranchDrafts(at, change, branch, basis.settings)
    return _transplant(drafts, change, submission, commits)


def _transplant(
    drafts: BranchDrafts[MergeResult],
    change: Transplant,
    submission: ChangeSubmission,
    commits: Sequence[Id],
) -> Draft[MergeResult]:
    at, branch = drafts.at, drafts.branch
    options, context, objects = change.options, at.context, at.drafting_objects()
    expected = expected_commit(objects, branch, options.expected_hash)
    target = MergeTarget(
        branch,
        options.expected_hash,
        expected,
        (),
        commits[-1],
        submission.shows_contents,
        context.progress,
    )
    replay = CommitReplay(
        objects,
        branch,
        options,
        context,
        submission,
        validate_namespaces=drafts.validates_namespaces,
    )
    for number, commit in enumerate(commits):
        if context.progress is not None:
            context.progress(number, len(commits))
        replay.apply(commit, alone=len(commits) == 1)
        if replay.is_stopped:
            break
    effect = DraftEffect(objects, root_of(objects, branch.target), replay.edits, [branch.target])
    rules = replay.rules
    if replay.is_stopped and isinstance(rules, ContentRules):
        # After a conflict, the decisions about later commits are not used yet.
        on_target = tree.get(objects, root_of(objects, branch.target), rules.keys)
        changed = {id_: _changed(objects, id_) for id_ in commits}
        replay.total.used |= rules.possible(on_target, changed)
    keys = () if options.per_key else replay.edits.keys() | replay.total.judged_keys
    total = structs.replace(replay.total, details=replay.details())
    refuse = refusal(at, objects, target, total, rules, changed=keys, decided=total.decided_ids)
    if refuse is not None:
        return drafts.refused(refuse, effect)
    skipped = () if options.per_key else replay.skipped
    if options.dry_run or replay.head == branch.target:
        head = None if options.dry_run else replay.head
        result = answer(objects, target, total.details, head, skipped=skipped)
        return drafts.unchanged(result, effect)
    return drafts.moved(
        submission,
        "transplant",
        replay.head,
        answer=answer(objects, target, total.details, replay.head, applied=True, skipped=skipped),
        effect=effect,
        digest=lambda: submission.digest or digest(change),
        required=commits,
    )


def _check_commits(objects: Objects, commits: Sequence[Id], *, any_order: bool) -> None:
    if not commits:
        raise InvalidInput("No hashes given to transplant.")
    if NO_COMMIT in commits:
        raise CommitNotFound(f"Commit '{NO_COMMIT.hex()}' not found", NO_COMMIT.hex())
    for parent, child in itertools.pairwise(commits):
        if not any_order and objects.commit(child).parents[0] != parent:
            raise InvalidInput("Sequence of hashes is not contiguous.")


def _changed(objects: Objects, id_: Id) -> list[tuple[bytes, bytes]]:
    """Returns the keys that a commit changed, with their records before and after."""
    commit = objects.commit(id_)
    operations = operations_of(objects, commit)
    before = tree.get(objects, root_of(objects, commit.parents[0]), [key for key, _ in operations])
    return [*before.items(), *operations]


class CommitReplay:
    """Applies commits to a chain of drafts, and collects the decisions for each key."""

    def __init__(
        self,
        objects: Objects,
        branch: StoredReference,
        options: MergeOptions,
        context: Context,
        submission: ChangeSubmission,
        *,
        validate_namespaces: bool,
    ) -> None:
        self._objects = objects
        self._submission = submission
        self._changes = 0
        self._text = 0
        self._validate_namespaces = validate_namespaces
        self._options = options
        self._context = context
        self._start = self.head = branch.target
        self.edits: dict[bytes, bytes | None] = {}
        self.rules = rules_of(objects, options)
        self.total = Outcome()
        self.skipped: list[Id] = []
        self._first_keys: dict[bytes, bytes | None] = {}
        self._settled: dict[bytes, bytes | None] = {}
        self._places: dict[bytes, Place | None] = {}

    @property
    def is_stopped(self) -> bool:
        """Whether the next commit cannot be applied.

        Per content, a conflict must be decided first: later commits are merged with its result.
        """
        conflicts = self.total.namespace_conflicts or (
            not self._options.per_key and self.total.conflicts
        )
        return bool(conflicts)

    def apply(self, id_: Id, *, alone: bool) -> None:
        """Applies a commit to the newest draft. `alone` says that it is the only one."""
        objects = self._objects
        commit = objects.commit(id_)
        roots = [root_of(objects, commit.parents[0]), root_of(objects, self.head), commit.root]
        most = self._submission.most_changes
        operations = operations_of(objects, commit, None if most is None else most + 1)
        keys = [key for key, _ in operations]
        self._check_size(commit, len(keys), alone=alone)
        before, target, after = (tree.get(objects, root, keys) for root in roots)
        # A deletion of an absent key changes nothing.
        changes = [
            ThreeWay(key, before.get(key), target.get(key), after.get(key))
            for key in keys
            if key in before or key in after
        ]
        outcome = self.rules.apply(
            objects,
            MergeSides(roots[0], roots[1], changes, self.head, id_, is_transplant=True),
            validate_namespaces=self._validate_namespaces,
        )
        self._note(outcome, alone=alone)
        edits = outcome.edits_if_source_wins()
        if not edits:
            self.skipped.append(id_)
            return
        self.edits |= edits
        original = meta_of(id_, commit)
        given = self._options.meta if alone else None
        meta = given or CommitMeta(
            original.message,
            original.authors,
            original.signed_off_by,
            original.author_time,
            original.properties,
        )
        root = edit(objects, roots[1], edits)
        at_target = tree.get(objects, roots[1], edits)
        for key, record in at_target.items():
            self._first_keys.setdefault(content_id_of(record), key)
        for new in edits.values():
            if new is not None:
                self._first_keys.setdefault(content_id_of(new), None)
        stamp = Stamp(self._context.who, self._context.clock())
        self.head = draft_commit(
            objects, [self.head], root, outcome.operations(at_target), meta=meta, stamp=stamp
        )

    def _check_size(self, commit: StoredCommit, changes: int, *, alone: bool) -> None:
        # A commit without changes takes time as well.
        self._changes += max(1, changes)
        self._text += commit.weight()
        self._submission.check_size(self._changes)
        if not alone and (self._changes > MOST_CHANGES or self._text > MOST_TEXT):
            raise InvalidInput(
                f"the commits of the transplant have more than {MOST_CHANGES:,} changes or"
                f" {MOST_TEXT >> 20} MiB of text; transplant fewer commits at once"
            )

    def _note(self, outcome: Outcome, *, alone: bool) -> None:
        """Keeps the last conflict of each key, and where each result can be read."""
        for key, detail in outcome.details.items():
            if detail.result is not None and detail.result not in self._places:
                at = detail.result_at
                # What no commit before has changed is in the branch itself.
                self._places[detail.result] = (
                    (self._start, at[1]) if at is not None and at[0] == self.head else at
                )
            earlier = self.total.details.get(key)
            if detail.conflict or not (earlier and earlier.conflict):
                placed = detail if self._options.per_key else self._placed(detail)
                self.total.details[key] = placed if alone else _named_by_id(placed)
        self.total.namespace_conflicts = outcome.namespace_conflicts
        self.total.decided |= outcome.decided
        self.total.decided_ids |= outcome.decided_ids
        self.total.effect = joined(self.total.effect, outcome.effect)
        self.total.used |= outcome.used
        self.total.resolved |= outcome.resolved
        self._settled |= outcome.edits

    def _placed(self, detail: Detail) -> Detail:
        """Returns a detail whose conflict has places and a changed key outside of the draft."""
        conflict = detail.conflict
        if conflict is None:
            return detail
        moved = conflict.content_id if conflict.actual is None else content_id_of(conflict.actual)
        changed = conflict.changed_key
        placed = structs.replace(
            conflict,
            actual_at=self._outside(conflict.actual_at, conflict.actual),
            proposed_at=self._outside(conflict.proposed_at, conflict.proposed),
            changed_key=changed if moved is None else self._first_keys.get(moved, changed),
        )
        return structs.replace(detail, conflict=placed)

    def _outside(
        self, at: Place | UnsetType | None, record: bytes | None
    ) -> Place | UnsetType | None:
        """Returns the place of a record in the branch or in a commit that was applied before."""
        if not at or record is None or at[0] != self.head:
            return at
        return self._places.get(record, (self._start, at[1]))

    def details(self) -> dict[bytes, Detail]:
        """Returns the keys of the answer. Per content, they compare the branch before and after.

        After a conflict, they compare it with what was settled before.
        """
        if self._options.per_key:
            return self.total.details
        keys = self.total.details
        before = tree.get(self._objects, root_of(self._objects, self._start), keys)
        return dict(_compared(keys, before, before | self._settled, self._places))


def _named_by_id(detail: Detail) -> Detail:
    """Returns a detail whose conflict is named by the content id.

    In another commit, the key can be that of another content.
    """
    if detail.conflict is None or detail.conflict.content_id is None:
        return detail
    return structs.replace(detail, conflict=structs.replace(detail.conflict, is_ambiguous=True))


def _compared(
    details: Mapping[bytes, Detail],
    before: Mapping[bytes, bytes],
    after: Mapping[bytes, bytes | None],
    places: Mapping[bytes, Place | None],
) -> Iterator[tuple[bytes, Detail]]:
    """Yields the keys that change, those that a decision keeps, and those in conflict."""
    for key, detail in details.items():
        target, result = before.get(key), after.get(key)
        behavior = detail.behavior
        if detail.conflict:
            yield key, structs.replace(detail, target=target)
            continue
        if target != result and behavior is MergeBehavior.DROP:
            behavior = MergeBehavior.NORMAL
        if target != result or behavior is MergeBehavior.DROP:
            result_at = places.get(result) if result is not None else None
            yield (
                key,
                structs.replace(
                    detail,
                    behavior=behavior,
                    target=target,
                    result=result,
                    result_at=result_at,
                    is_resolved=result is not None and result_at is None,
                ),
            )
