"""Drafts the changes that create, assign, rename and delete references."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from nessie_cli.errors import AlreadyExists, InvalidInput, NessieError, ReferenceMoved
from nessie_cli.kernel.commits import MOST_BYTES
from nessie_cli.kernel.forms import NO_COMMIT, Id
from nessie_cli.model import (
    Conflict,
    ConflictType,
    Reference,
    ReferenceType,
    check_new_reference_name,
)
from nessie_cli.repository.changes import (
    AssignReference,
    Change,
    CreateReference,
    DeleteReference,
    RenameReference,
)
from nessie_cli.repository.draft import ChangeSubmission, Draft, DraftEffect
from nessie_cli.repository.requests import digest, reference_of
from nessie_cli.repository.snapshot import StoreSnapshot, as_reference, reference_not_found
from nessie_cli.repository.writes import WriteMaker, reference_changes, repeated_draft
from nessie_cli.store.base import View
from nessie_cli.store.records import Basis, StoredReference, Write

Refuse = Callable[[], NessieError] | None


def create(
    at: StoreSnapshot, change: CreateReference, submission: ChangeSubmission
) -> Draft[Reference]:
    """Drafts a new branch or tag at a hash."""
    check_new_reference_name(change.name)
    if change.type not in (ReferenceType.BRANCH, ReferenceType.TAG):
        raise InvalidInput("Reference type name must be either 'branch' or 'tag'")
    if change.message and change.type != ReferenceType.TAG:
        raise InvalidInput("only a tag has a message")
    if len(change.message.encode(errors="replace")) > MOST_BYTES:
        raise InvalidInput(f"the message of the tag has more than {MOST_BYTES:,} bytes")
    basis = at.view.basis(change.name, submission.request_id)
    if basis.request is not None:
        return repeated_draft(at, change, basis.request, digest(change), reference_of)
    target = at.commit_id(change.target)
    new = StoredReference(change.name, change.type, target)
    return _move(
        at,
        change,
        submission,
        [(new, None, target)],
        operation="create",
        answer=new,
        message=change.message,
        refuse=_taken(change.name, basis.reference),
    )


def assign(
    at: StoreSnapshot, change: AssignReference, submission: ChangeSubmission
) -> Draft[Reference]:
    """Drafts a move of a reference that is at `expected_hash` to another commit."""
    name = at.branch_name(change.name)
    basis = at.view.basis(name, submission.request_id)
    if basis.request is not None:
        return repeated_draft(at, change, basis.request, digest(change), reference_of)
    current = _existing(name, basis)
    _check_expected(current, change.expected_hash)
    target = at.commit_id(change.target)
    assigned = StoredReference(name, current.kind, target)
    moves = [(assigned, current.target, target)]
    message = _message(at, current)
    return _move(
        at,
        change,
        submission,
        moves,
        operation="assign",
        answer=assigned,
        basis=basis,
        message=message,
    )


def rename(
    at: StoreSnapshot, change: RenameReference, submission: ChangeSubmission
) -> Draft[Reference]:
    """Drafts a rename of a reference, as one write."""
    check_new_reference_name(change.new)
    name = at.branch_name(change.old)
    basis = at.view.basis(name, submission.request_id)
    if basis.request is not None:
        return repeated_draft(at, change, basis.request, digest(change), reference_of)
    current = _existing(name, basis)
    _check_expected(current, change.expected_hash)
    _refuse_default(at, name, "renamed")
    renamed = StoredReference(change.new, current.kind, current.target)
    moves = [(renamed, None, current.target), (current, current.target, None)]
    message = _message(at, current)
    return _move(
        at,
        change,
        submission,
        moves,
        operation="rename",
        answer=renamed,
        basis=basis,
        message=message,
        refuse=None
        if at.view.reference(change.new) is None
        else partial(already_exists, change.new),
    )


def delete(
    at: StoreSnapshot, change: DeleteReference, submission: ChangeSubmission
) -> Draft[Reference]:
    """Drafts the deletion of a reference that is at `expected_hash`, and returns it."""
    name = at.branch_name(change.name)
    basis = at.view.basis(name, submission.request_id)
    if basis.request is not None:
        return repeated_draft(at, change, basis.request, digest(change), reference_of)
    current = _existing(name, basis)
    _refuse_default(at, name, "deleted")
    _check_expected(current, change.expected_hash)
    return _move(
        at,
        change,
        submission,
        [(current, current.target, None)],
        operation="delete",
        answer=current,
        basis=basis,
    )


def _move(
    at: StoreSnapshot,
    change: Change[Reference],
    submission: ChangeSubmission,
    moves: Sequence[tuple[StoredReference, Id | None, Id | None]],
    *,
    operation: str,
    answer: StoredReference,
    basis: Basis | None = None,
    message: str = "",
    refuse: Refuse = None,
) -> Draft[Reference]:
    """Drafts moves. With `basis` they require its version of the settings.

    `message` is the message of the tag. With `refuse` the draft shows the moves and writes nothing.
    """
    maker = WriteMaker(at.context, submission, operation)
    made = [maker.move(*move, message="" if move[2] is None else message) for move in moves]
    targets = [move.after for move in made if move.after is not None and move.after != NO_COMMIT]
    write = Write(
        request=maker.request(lambda: digest(change), made),
        moves=made,
        required=targets,
        settings_version=None if basis is None else basis.settings.version,
    )
    effect = DraftEffect(at.objects, sources=targets)
    return Draft(
        change,
        reference_changes(made),
        answer=as_reference(answer),
        refuse=refuse,
        write=None if refuse else write,
        effect=effect,
        settings=None if basis is None else basis.settings,
    )


def messages(view: View, names: Collection[str]) -> dict[str, str]:
    """Returns the messages of those tags that have one.

    The newest move of a tag contains its message; each move repeats it.
    """
    newest = view.newest_moves(list(names)) if names else []
    return {
        row.move.name: row.move.message
        for row in newest
        if row.move.kind == ReferenceType.TAG and row.move.after is not None and row.move.message
    }


def _message(at: StoreSnapshot, current: StoredReference) -> str:
    return (
        messages(at.view, [current.name]).get(current.name, "")
        if current.kind == ReferenceType.TAG
        else ""
    )


def _taken(name: str, existing: StoredReference | None) -> Refuse:
    return None if existing is None else partial(already_exists, name)


def _existing(name: str, basis: Basis) -> StoredReference:
    if basis.reference is None:
        raise reference_not_found(name)
    return basis.reference


def _refuse_default(at: StoreSnapshot, name: str, participle: str) -> None:
    if name == at.default_branch:
        raise InvalidInput(f"Default branch '{name}' cannot be {participle}.")


def _check_expected(current: StoredReference, expected_hash: str) -> None:
    if current.target.hex() != expected_hash.lower():
        text = (
            f"named-reference '{current.name}' is not at expected hash '{expected_hash}',"
            f" but at '{current.target.hex()}'"
        )
        conflict = Conflict(ConflictType.UNEXPECTED_HASH, None, text)
        raise ReferenceMoved(
            f"N{text[1:]}.",
            [conflict],
            reference=current.name,
            head=current.target.hex(),
            expected_hash=expected_hash,
        )


def already_exists(name: str) -> AlreadyExists:
    """Returns the error for a new reference whose name already exists."""
    return AlreadyExists(f"Named reference '{name}' already exists.", name)
