"""The verb commit of the embedded repository."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from nessie_cli.errors import ReferenceConflict
from nessie_cli.kernel import tree
from nessie_cli.kernel.commits import is_deletion, operations_of, root_of
from nessie_cli.kernel.committing import Applied, Batch, apply_batch
from nessie_cli.kernel.conflicts import KeyConflict, commit_message, describe
from nessie_cli.kernel.drafting import Stamp, check_client_meta, draft_commit
from nessie_cli.kernel.objects import Id, Objects
from nessie_cli.model import CommitMeta, CommitResult, Operation
from nessie_cli.repository.circumstances import Circumstances
from nessie_cli.repository.judging import ask
from nessie_cli.repository.writing import AddedIds, Branch, as_branch
from nessie_cli.store.base import StoredReference


class CommitRequest(NamedTuple):
    """Everything that a caller says about one commit."""

    branch: str
    meta: CommitMeta
    expected_hash: str | None
    request_id: str | None
    dry_run: bool


def commit(
    branches: Branch, circumstances: Circumstances, request: CommitRequest, operations: Iterable[Operation], *, demand_expected: bool
) -> CommitResult:
    """Put one commit on a branch, or raise with every conflict."""
    check_client_meta(request.meta)
    objects = branches.objects(spill=not request.dry_run)
    first = branches.find(request.branch, "commit")
    seen = branches.expected(objects, first, request.expected_hash)
    batch = Batch(objects, operations, circumstances.progress)

    def attempt(branch: StoredReference) -> tuple[Id | None, CommitResult]:
        # The expected commit stays an ancestor unless somebody assigned the branch elsewhere.
        expected = seen if branch is first else branches.expected(objects, branch, seen.hex())
        head = branch.target
        applied = apply_batch(
            objects,
            batch,
            root_of(objects, expected),
            root_of(objects, head),
            circumstances.new_content_id,
            demand_expected=demand_expected,
            progress=circumstances.progress,
        )
        if applied.conflicts:
            raise conflict_error(branches, objects, branch, expected, applied.conflicts)
        ask(circumstances.judge, objects, branch.name, root_of(objects, head), applied.operations)
        new = _draft(objects, head, applied, request.meta, circumstances)
        result = CommitResult(as_branch(branch.name, head if request.dry_run else new), AddedIds(applied.added), applied=not request.dry_run)
        return (None if request.dry_run else new), result

    return branches.advance(request.branch, "commit", objects, attempt, first=first, request_id=request.request_id)


def _draft(objects: Objects, head: Id, applied: Applied, meta: CommitMeta, circumstances: Circumstances) -> Id:
    return draft_commit(objects, [head], applied.root, applied.operations, meta=meta, stamp=Stamp(circumstances.who, circumstances.clock()))


def conflict_error(branches: Branch, objects: Objects, branch: StoredReference, expected: Id, conflicts: list[KeyConflict]) -> ReferenceConflict:
    """The error for the conflicts of a commit, with the commits that made them."""

    def changed_by(key: bytes) -> CommitMeta | None:
        return branches.last_change(objects, branch.target, key)

    described = describe(objects, conflicts, changed_by, changed_by)
    return ReferenceConflict(commit_message(described), described, reference=branch.name, head=branch.target.hex(), expected_hash=expected.hex())


def added_by(objects: Objects, id_: Id) -> dict[bytes, bytes]:
    """The content ids that a stored commit gave: of its Puts, those that neither were there before nor came from another key."""
    commit = objects.commit(id_)
    operations = operations_of(objects, commit)
    before = tree.get(objects, root_of(objects, commit.parents[0]), [key for key, _ in operations])
    known = {record[1:17] for record in before.values()}
    return {key: record[1:17] for key, record in operations if not is_deletion(record) and record[1:17] not in known}
