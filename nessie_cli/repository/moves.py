"""The verbs that create, assign, rename and delete references of the embedded repository, each one compare-and-swap."""

from __future__ import annotations

from nessie_cli.errors import AlreadyExists, InvalidInput, ReferenceMoved
from nessie_cli.kernel.ancestry import AncestryIndex
from nessie_cli.kernel.forms import Id
from nessie_cli.model import Conflict, ConflictType, Reference, ReferenceType, check_new_reference_name
from nessie_cli.repository import protection
from nessie_cli.repository.context import Context
from nessie_cli.repository.revisions import Revisions, as_reference, reference_not_found
from nessie_cli.store.base import Move, Stale, Store, StoredReference, Write


class Moves:
    """Moves references of one store for one caller. Errors are those of `Repository`."""

    def __init__(self, store: Store, revisions: Revisions, ancestry: AncestryIndex, context: Context, default_branch: str) -> None:
        self._store = store
        self._revisions = revisions
        self._ancestry = ancestry
        self._at = context
        self._default_branch = default_branch

    def create(self, type_: ReferenceType, name: str, target: str) -> Reference:
        """Make a branch or tag at a hash."""
        check_new_reference_name(name)
        if type_ not in (ReferenceType.BRANCH, ReferenceType.TAG):
            raise InvalidInput("Reference type name must be either 'branch' or 'tag'")
        after = self._revisions.commit_id(target)
        self._write(self._move(StoredReference(name, type_, after), None, after, "create"))
        return Reference(type_, name, after.hex())

    def assign(self, name: str, target: str, expected_hash: str) -> Reference:
        """Point a reference that stands at `expected_hash` elsewhere."""
        found = self._at_expected(name, expected_hash)
        after = self._revisions.commit_id(target)
        settings = self._store.settings()
        protection.refuse(settings, found.name, protection.MERGE_ONLY, "it changes only by merges", found.kind)
        if not self._ancestry.is_ancestor(found.target, after):
            protection.refuse(settings, found.name, protection.NO_REWIND, "it is only assigned to descendants of its HEAD", found.kind)
        self._write(self._move(found, found.target, after, "assign"))
        return Reference(ReferenceType(found.kind), found.name, after.hex())

    def rename(self, old: str, new: str, expected_hash: str) -> Reference:
        """Give a reference another name, in one write."""
        check_new_reference_name(new)
        found = self._at_expected(old, expected_hash)
        self._refuse_default(found.name, "renamed")
        protection.refuse(self._store.settings(), found.name, protection.NO_DELETE, "it cannot be renamed", found.kind)
        renamed = StoredReference(new, found.kind, found.target)
        self._write(self._move(renamed, None, found.target, "rename"), self._move(found, found.target, None, "rename"))
        return as_reference(renamed)

    def delete(self, name: str, expected_hash: str) -> Reference:
        """Delete a reference; what it was."""
        found = self._revisions.reference(name)
        self._refuse_default(found.name, "deleted")
        protection.refuse(self._store.settings(), found.name, protection.NO_DELETE, "it cannot be deleted", found.kind)
        found = self._at_expected(name, expected_hash)
        self._write(self._move(found, found.target, None, "delete"))
        return as_reference(found)

    def _refuse_default(self, name: str, what: str) -> None:
        if name == self._default_branch:
            raise InvalidInput(f"Default branch '{name}' cannot be {what}.")

    def _at_expected(self, name: str, expected_hash: str) -> StoredReference:
        found = self._revisions.reference(name)
        if found.target.hex() != expected_hash.lower():
            raise _unexpected_hash(name, expected_hash, found.target)
        return found

    def _move(self, reference: StoredReference, before: Id | None, after: Id | None, operation: str) -> Move:
        at = self._at
        return Move(reference.name, reference.kind, before, after, at.clock(), at.who, operation, "", at.random(8).hex())

    def _write(self, *moves: Move) -> None:
        answer = self._store.write(Write(moves=moves))
        if isinstance(answer, Stale):
            wanted = next(move for move in moves if move.name == answer.name)
            if wanted.before is None:
                raise AlreadyExists(f"Named reference '{answer.name}' already exists.", answer.name)
            if answer.current is None:
                raise reference_not_found(answer.name)
            raise _unexpected_hash(answer.name, wanted.before.hex(), answer.current.target)


def _unexpected_hash(name: str, expected: str, actual: Id) -> ReferenceMoved:
    text = f"named-reference '{name}' is not at expected hash '{expected}', but at '{actual.hex()}'"
    conflict = Conflict(ConflictType.UNEXPECTED_HASH, None, text)
    return ReferenceMoved(f"N{text[1:]}.", [conflict], reference=name, head=actual.hex(), expected_hash=expected)
