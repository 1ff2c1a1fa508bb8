"""The verb commit of the embedded repository."""

from __future__ import annotations

from collections.abc import Iterable

from nessie_cli.errors import ReferenceConflict
from nessie_cli.kernel import tree
from nessie_cli.kernel.commits import is_deletion, operations_of, root_of
from nessie_cli.kernel.committing import Batch, apply_batch
from nessie_cli.kernel.conflicts import KeyConflict, commit_message, describe
from nessie_cli.kernel.drafting import Stamp, check_client_meta, draft_commit
from nessie_cli.kernel.forms import Id, content_id_of
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import CommitMeta, CommitResult, Operation
from nessie_cli.repository.context import Context
from nessie_cli.repository.judging import ask
from nessie_cli.repository.writing import AddedIds, Branch, as_branch, as_found
from nessie_cli.store.base import StoredReference


class Committer:
    """Puts commits on branches in one caller's name."""

    def __init__(self, branches: Branch, context: Context) -> None:
        self._branches = branches
        self._at = context

    def commit(
        self,
        name: str,
        found: StoredReference | None,
        operations: Iterable[Operation],
        meta: CommitMeta,
        *,
        expected_hash: str | None,
        request_id: str | None,
        dry_run: bool,
        demand_expected: bool,
    ) -> CommitResult:
        """Put one commit on a branch, or raise with every conflict. `found` is what was seen under its name."""
        check_client_meta(meta)
        branches, at = self._branches, self._at
        objects = branches.objects(spill=not dry_run)
        first = as_found(name, found, "commit")
        seen = branches.expected(objects, first, expected_hash)
        batch = Batch(objects, operations, at.progress)

        def attempt(branch: StoredReference) -> tuple[Id | None, CommitResult]:
            # The expected commit stays an ancestor unless somebody assigned the branch elsewhere.
            expected = seen if branch is first else branches.expected(objects, branch, seen.hex())
            head = branch.target
            root = root_of(objects, head)
            seen_root = root if expected == head else root_of(objects, expected)
            applied = apply_batch(objects, batch, seen_root, root, at.new_content_id, demand_expected=demand_expected, progress=at.progress)
            if applied.conflicts:
                raise conflict_error(branches, objects, branch, expected, applied.conflicts)
            ask(at.judge, objects, name, root, applied.operations)
            new = draft_commit(objects, [head], applied.root, applied.operations, meta=meta, stamp=Stamp(at.who, at.clock()))
            result = CommitResult(as_branch(name, head if dry_run else new), AddedIds(applied.added), applied=not dry_run)
            return (None if dry_run else new), result

        return branches.advance(name, "commit", objects, attempt, first=first, request_id=request_id)


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
    known = set(map(content_id_of, before.values()))
    put = {key: content_id_of(record) for key, record in operations if not is_deletion(record)}
    return {key: content_id for key, content_id in put.items() if content_id not in known}
