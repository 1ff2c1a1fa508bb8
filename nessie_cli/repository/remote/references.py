"""Branches and tags over REST v2: functions that read them, and requests that write them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nessie_cli.errors import InvalidInput, ReferenceMoved, ReferenceNotFound
from nessie_cli.model import (
    Reference,
    ReferenceType,
    check_new_reference_name,
    check_reference_name,
)
from nessie_cli.repository.changes import AssignReference, CreateReference, DeleteReference
from nessie_cli.repository.remote.cel import cel_text
from nessie_cli.repository.remote.session import RestSession
from nessie_cli.repository.remote.transport import Query, segment
from nessie_cli.repository.remote.write_request import WriteRequest
from nessie_cli.wire import answers
from nessie_cli.wire.extensions import MESSAGE


def full_name(session: RestSession, name: str) -> str:
    """Returns the name of a reference. `-` stands for the default branch."""
    return session.configuration.default_branch if name == "-" else name


def get(session: RestSession, name: str, *, metadata: bool = False) -> Reference:
    """Returns a branch or tag. Raises `ReferenceNotFound`."""
    name = full_name(session, name)
    try:
        check_reference_name(name)
    except InvalidInput:
        raise ReferenceNotFound(f"Named reference '{name}' not found", name) from None
    return session.reference(
        session.transport.get(f"trees/{segment(name)}", {"fetch": "ALL" if metadata else None})
    )


def find(session: RestSession, name: str) -> Reference | None:
    """Returns a branch or tag, or None."""
    try:
        return get(session, name)
    except ReferenceNotFound:
        return None


def list_all(
    session: RestSession,
    type: ReferenceType | None = None,
    *,
    prefix: str = "",
    start: str = "",
    metadata: bool = False,
) -> Iterator[Reference]:
    """Yields branches, then tags, each by name, beginning with the name `start`."""
    kinds = [type] if type else [ReferenceType.BRANCH, ReferenceType.TAG]
    if start and type is None:
        first = find(session, start)
        if first and first.type is ReferenceType.TAG:
            kinds = [ReferenceType.TAG]
    filters = [f"ref.name.startsWith({cel_text(prefix)})"] if prefix else []
    filters += [f"refType == {cel_text(kinds[0].value)}"] if len(kinds) == 1 else []
    query: Query = {"fetch": "ALL" if metadata else None, "filter": " && ".join(filters) or None}
    for reference in session.pages("trees", "references", query, answers.decode_reference):
        if (
            reference.type in kinds
            and reference.name.startswith(prefix)
            and (reference.type is not kinds[0] or reference.name >= start)
        ):
            session.named(reference.hash)
            yield reference


def path_at(session: RestSession, name: str, hash_: str) -> str:
    """Returns the path of a reference with its expected hash."""
    return f"trees/{segment(f'{check_reference_name(full_name(session, name))}@{hash_}')}"


# -- writing -------------------------------------------------------------------------------------


def creation(change: CreateReference) -> WriteRequest:
    """Returns the request that creates a branch or tag at a complete hash."""
    check_new_reference_name(change.name)
    if change.type not in (ReferenceType.BRANCH, ReferenceType.TAG):
        raise InvalidInput("Reference type name must be either 'branch' or 'tag'")
    body = {"type": "DETACHED", "hash": change.target}
    if change.message:
        body[MESSAGE] = change.message
    return WriteRequest("POST", "trees", body, {"name": change.name, "type": change.type.value})


def assignment(
    session: RestSession, change: AssignReference, query: Query | None = None
) -> WriteRequest:
    """Returns the request that moves a reference to a complete hash."""
    path = path_at(session, change.name, change.expected_hash)
    return WriteRequest("PUT", path, {"type": "DETACHED", "hash": change.target}, query)


def deletion(session: RestSession, change: DeleteReference) -> WriteRequest:
    """Returns the request that deletes a reference."""
    return WriteRequest("DELETE", path_at(session, change.name, change.expected_hash))


@contextmanager
def current_position(session: RestSession, name: str, expected_hash: str) -> Iterator[None]:
    """Adds the current hash to a `ReferenceMoved`. The server sends it only in a sentence."""
    try:
        yield
    except ReferenceMoved as moved:
        moved.reference, moved.expected_hash = name, expected_hash
        current = find(session, name)
        moved.head = current.hash if current else None
        raise
