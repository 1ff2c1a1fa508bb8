"""The verb commit of the embedded repository."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from nessie_cli.errors import ReferenceConflict
from nessie_cli.kernel import tree
from nessie_cli.kernel.commits import (
    Stamp,
    check_client_meta,
    draft_commit,
    is_deletion,
    operations_of,
    root_of,
)
from nessie_cli.kernel.committing import OperationBatch, apply_batch
from nessie_cli.kernel.forms import Id, content_id_of, decode_key, encode_key, format_content_id
from nessie_cli.kernel.objects import Objects
from nessie_cli.kernel.outcome import KeyConflict, describe
from nessie_cli.model import CommitMeta, CommitResult, ContentKey
from nessie_cli.model.conflicts import MOST_REPORTED, ConflictType, commit_message
from nessie_cli.repository.changes import Commit
from nessie_cli.repository.draft import ChangeSubmission, Draft, DraftEffect
from nessie_cli.repository.requests import Recorded, digest_of_batch, reference_of
from nessie_cli.repository.snapshot import StoreSnapshot
from nessie_cli.repository.writes import (
    BranchDrafts,
    branch_at,
    existing_branch,
    expected_commit,
    repeated_draft,
)
from nessie_cli.store.records import StoredReference

REQUIRE_EXPECTED = "require-expected-content"
"""The setting that makes every update name the content that it replaces."""


class AddedIds(Mapping[ContentKey, str]):
    """The content ids that a commit assigned, decoded on access, because a load has a million."""

    def __init__(self, added: Mapping[bytes, bytes]) -> None:
        self._added = added

    def __getitem__(self, key: ContentKey) -> str:
        return format_content_id(self._added[encode_key(key)])

    def __iter__(self) -> Iterator[ContentKey]:
        return map(decode_key, self._added)

    def __len__(self) -> int:
        return len(self._added)


def commit(at: StoreSnapshot, change: Commit, submission: ChangeSubmission) -> Draft[CommitResult]:
    """Drafts one commit on a branch."""
    check_client_meta(change.meta)
    context = at.context
    name = at.branch_name(change.branch)
    basis = at.view.basis(name, submission.request_id)
    objects = at.drafting_objects(spill=not change.dry_run)
    if basis.request is not None:
        batch = submission.batch(objects, change.operations, context.progress)
        return repeated_draft(
            at,
            change,
            basis.request,
            _digest(name, change, batch, submission),
            lambda done: result_of(at.objects, done, batch),
        )
    branch = existing_branch(name, basis.reference, "commit")
    drafts = BranchDrafts(at, change, branch, basis.settings)
    at.read_near(branch.target)
    expected = expected_commit(objects, branch, change.expected_hash)
    batch = submission.batch(objects, change.operations, context.progress)
    root = root_of(objects, branch.target)
    applied = apply_batch(
        objects,
        batch,
        root if expected == branch.target else root_of(objects, expected),
        root,
        submission.content_ids(context),
        demand_expected=basis.settings.values.get(REQUIRE_EXPECTED) == "true",
        validate_namespaces=drafts.validates_namespaces,
        progress=context.progress,
    )
    submission.remember_content_ids(applied.added)
    conflicts = applied.conflicts or _changed_meanwhile(
        at, objects, (expected, branch.target), submission.chosen
    )
    if conflicts:
        return drafts.refused(
            partial(
                conflict_error,
                at,
                objects,
                branch,
                expected,
                conflicts,
                shows_contents=submission.shows_contents,
            ),
            DraftEffect(objects, root, applied.operations),
        )
    stamp = Stamp(context.who, context.clock())
    new = draft_commit(
        objects, [branch.target], applied.root, applied.operations, meta=change.meta, stamp=stamp
    )
    effect = DraftEffect(objects, root, applied.operations, [branch.target])
    if change.dry_run:
        result = CommitResult(
            branch_at(name, branch.target), AddedIds(applied.added), applied=False
        )
        return drafts.unchanged(result, effect)
    return drafts.moved(
        submission,
        "commit",
        new,
        answer=CommitResult(branch_at(name, new), AddedIds(applied.added)),
        effect=effect,
        digest=lambda: _digest(name, change, batch, submission),
    )


def _changed_meanwhile(
    at: StoreSnapshot, objects: Objects, since: tuple[Id, Id], chosen: Iterable[bytes]
) -> list[KeyConflict]:
    """Returns a conflict for each key with a chosen content id that another commit has changed.

    It may have had a content with this id, which has another key now. Costs nothing if `since`, the
    expected commit and HEAD, is one commit.
    """
    if len({*since}) == 1:
        return []
    return [
        KeyConflict(ConflictType.VALUE_DIFFERS, key)
        for key in chosen
        if len({_hash_of(at.last_change(objects, commit, key)) for commit in since}) > 1
    ]


def _hash_of(meta: CommitMeta | None) -> str | None:
    return meta.hash if meta is not None else None


def _digest(
    name: str, change: Commit, batch: OperationBatch, submission: ChangeSubmission
) -> bytes:
    return submission.digest or digest_of_batch(
        name, (change.expected_hash, change.meta, change.dry_run), batch
    )


def result_of(
    objects: Objects, done: Recorded, batch: OperationBatch | None = None
) -> CommitResult:
    """Returns the result of a recorded request.

    Its content ids are in the order of the first answer if the repeated operations are given.
    """
    reference = reference_of(done)
    is_commit = done.operation == "commit"
    added = added_by(objects, bytes.fromhex(reference.hash)) if is_commit else {}
    if batch is not None:
        added = {key: added[key] for key, _ in batch.in_order() if key in added} | added
    return CommitResult(reference, AddedIds(added))


def conflict_error(
    at: StoreSnapshot,
    objects: Objects,
    branch: StoredReference,
    expected: Id,
    conflicts: list[KeyConflict],
    *,
    shows_contents: bool,
) -> ReferenceConflict:
    """Returns the error for the conflicts of a commit, with the commits that caused them.

    It has the first `MOST_REPORTED` conflicts, so that a refused commit takes no longer than
    another one. Their contents are read if `shows_contents`.
    """

    def changed_by(key: bytes) -> CommitMeta | None:
        return at.last_change(objects, branch.target, key)

    described = describe(
        objects,
        conflicts[:MOST_REPORTED],
        changed_by,
        changed_by,
        shows_contents=shows_contents,
    )
    more = len(conflicts) - len(described)
    return ReferenceConflict(
        commit_message(described, more),
        described,
        reference=branch.name,
        head=branch.target.hex(),
        expected_hash=expected.hex(),
        more=more,
    )


def added_by(objects: Objects, id_: Id) -> dict[bytes, bytes]:
    """Returns the content ids that a stored commit assigned.

    Those are the ids of its Puts that neither existed before nor came from another key.
    """
    commit = objects.commit(id_)
    operations = operations_of(objects, commit)
    before = tree.get(objects, root_of(objects, commit.parents[0]), [key for key, _ in operations])
    ids_before = set(map(content_id_of, before.values()))
    put = {key: content_id_of(record) for key, record in operations if not is_deletion(record)}
    return {key: content_id for key, content_id in put.items() if content_id not in ids_before}
