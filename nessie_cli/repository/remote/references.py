"""Branches and tags over REST v2, and the reflog of our servers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from nessie_cli.errors import AlreadyExists, InvalidInput, ReferenceMoved, ReferenceNotFound
from nessie_cli.model import (
    Reference,
    ReferenceType,
    ReflogEntry,
    check_new_reference_name,
    check_reference_name,
)
from nessie_cli.repository.remote.key_history import cel_text
from nessie_cli.repository.remote.lost import look_up_outcome
from nessie_cli.repository.remote.once import Sent, send_once
from nessie_cli.repository.remote.session import Session, understood
from nessie_cli.repository.remote.transport import Lost, Query, segment
from nessie_cli.wire import answers
from nessie_cli.wire.extensions import MESSAGE

_LARGEST_REFLOG_PAGE = 16_000
"""The server finds a page of a reflog by reading those before it again, so pages grow."""


_MOST_NAMES = 100
"""Tags whose messages are requested together: all names have to fit into one address."""


def full_name(session: Session, name: str) -> str:
    """The name of a reference, `-` being the default branch."""
    return session.server.default_branch if name == "-" else name


def get(session: Session, name: str, *, metadata: bool = False) -> Reference:
    """One branch or tag; raises `ReferenceNotFound`."""
    name = full_name(session, name)
    try:
        check_reference_name(name)
    except InvalidInput:
        raise ReferenceNotFound(f"Named reference '{name}' not found", name) from None
    return session.reference(
        session.transport.get(f"trees/{segment(name)}", {"fetch": "ALL" if metadata else None})
    )


def find(session: Session, name: str) -> Reference | None:
    """One branch or tag, or None."""
    try:
        return get(session, name)
    except ReferenceNotFound:
        return None


def list_all(
    session: Session,
    type: ReferenceType | None = None,
    *,
    prefix: str = "",
    start: str = "",
    metadata: bool = False,
) -> Iterator[Reference]:
    """Branches, then tags, each by name; from the name `start` on."""
    kinds = [type] if type else [ReferenceType.BRANCH, ReferenceType.TAG]
    if start and type is None:
        found = find(session, start)
        if found and found.type is ReferenceType.TAG:
            kinds = [ReferenceType.TAG]
    filters = [f"ref.name.startsWith({cel_text(prefix)})"] if prefix else []
    filters += [f"refType == {cel_text(kinds[0].value)}"] if len(kinds) == 1 else []
    query: Query = {"fetch": "ALL" if metadata else None, "filter": " && ".join(filters) or None}
    for found in session.pages("trees", "references", query, answers.decode_reference):
        if (
            found.type in kinds
            and found.name.startswith(prefix)
            and (found.type is not kinds[0] or found.name >= start)
        ):
            session.named(found.hash)
            yield found


def path_at(session: Session, name: str, hash_: str) -> str:
    """The path of a reference with the hash that it is expected at."""
    return f"trees/{segment(f'{check_reference_name(full_name(session, name))}@{hash_}')}"


# -- moving --------------------------------------------------------------------------------------


def create(
    session: Session,
    type: ReferenceType,
    name: str,
    target: str,
    *,
    message: str = "",
    request_id: str | None = None,
) -> Reference:
    """Create a branch or tag at a whole hash; raises `AlreadyExists`.

    Only our servers keep a message; for others it raises `InvalidInput`.
    """
    check_message(session, message)
    check_new_reference_name(name)
    if type not in (ReferenceType.BRANCH, ReferenceType.TAG):
        raise InvalidInput("Reference type name must be either 'branch' or 'tag'")
    wanted = Reference(type, name, target)
    body = {"type": "DETACHED", "hash": target} | ({MESSAGE: message} if message else {})
    sent = Sent("POST", "trees", body, {"name": name, "type": type.value})
    if session.server.extensions:
        return send_once(session, sent, request_id, session.reference)
    _require_absent(session, name)
    return _send(session, sent, lambda: wanted if _is_there(session, wanted) else None)


def assign(
    session: Session, name: str, target: str, *, expected_hash: str, request_id: str | None = None
) -> Reference:
    """Move a reference to a whole hash; raises `ReferenceMoved` unless it is at `expected_hash`."""

    def assigned() -> Reference | None:
        found = find(session, name)
        return found if found and found.hash == target else None

    sent = Sent("PUT", path_at(session, name, expected_hash), {"type": "DETACHED", "hash": target})
    with _with_position(session, name, expected_hash):
        return (
            send_once(session, sent, request_id, session.reference)
            if session.server.extensions
            else _send(session, sent, assigned)
        )


def delete(
    session: Session, name: str, *, expected_hash: str, request_id: str | None = None
) -> Reference:
    """Delete a reference; raises `ReferenceMoved` unless it is at `expected_hash`."""
    sent = Sent("DELETE", path_at(session, name, expected_hash))
    with _with_position(session, name, expected_hash):
        if session.server.extensions:
            return send_once(session, sent, request_id, session.reference)
        before = get(session, name)
        deleted = Reference(before.type, before.name, expected_hash)
        return _send(session, sent, lambda: None if find(session, name) else deleted)


def rename(
    session: Session, old: str, new: str, *, expected_hash: str, request_id: str | None = None
) -> Reference:
    """Rename a reference in one step, by the extensions."""
    check_new_reference_name(new)
    sent = Sent("POST", f"{path_at(session, old, expected_hash)}/rename", None, {"name": new})
    with _with_position(session, old, expected_hash):
        return send_once(session, sent, request_id, session.reference)


def check_message(session: Session, message: str) -> None:
    """Raises `InvalidInput` for the message of a tag on a server that does not keep it."""
    if message and not session.server.extensions:
        raise InvalidInput(
            f"server {session.transport.url} keeps no message of a tag. Hint: create the tag"
            " without a message",
        )


def _require_absent(session: Session, name: str) -> None:
    """Checks that a reference is absent, because a lost answer would hide that it existed."""
    if find(session, name) is not None:
        raise AlreadyExists(f"Named reference '{name}' already exists.", name)


def _send(session: Session, sent: Sent, look: Callable[[], Reference | None]) -> Reference:
    """The answer to a change of a reference; if it was lost, what `look` finds."""
    try:
        return session.reference(
            session.transport.send(sent.method, sent.path, sent.query, sent.body)
        )
    except Lost as lost:
        return look_up_outcome(lost, look)


def _is_there(session: Session, wanted: Reference) -> bool:
    found = find(session, wanted.name)
    return found is not None and (found.type, found.hash) == (wanted.type, wanted.hash)


@contextmanager
def _with_position(session: Session, name: str, expected_hash: str) -> Iterator[None]:
    """Add the current hash to a `ReferenceMoved`: the answer has it only in a sentence."""
    try:
        yield
    except ReferenceMoved as moved:
        moved.reference, moved.expected_hash = name, expected_hash
        found = find(session, name)
        moved.head = found.hash if found else None
        raise


# -- messages ------------------------------------------------------------------------------------


def messages(session: Session, names: Collection[str]) -> dict[str, str]:
    """The messages of those tags that have one, by the extensions."""
    found: dict[str, str] = {}
    wanted = list(names)
    for start in range(0, len(wanted), _MOST_NAMES):
        answer = session.transport.get("messages", {"ref": wanted[start : start + _MOST_NAMES]})
        found |= understood(answer, lambda given: dict(given["messages"]), "messages")
    return found


# -- reflog --------------------------------------------------------------------------------------


def caller(session: Session) -> str | None:
    """The caller that the server authenticated, by the extensions; None if it does not."""
    found = session.optional(lambda: session.transport.get("caller"), "who the caller is")
    name: str | None = understood(found, lambda given: given["name"], "the caller")
    return name


def reflog(session: Session, name: str | None) -> Iterator[ReflogEntry]:
    """The moves of one reference or of all, newest first, by the extensions."""
    return session.pages(
        "reflog", "reflog", {"ref": name}, answers.decode_reflog_entry, most=_LARGEST_REFLOG_PAGE
    )
