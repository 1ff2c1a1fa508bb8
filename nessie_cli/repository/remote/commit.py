"""Commits to our own servers. A request id makes a write happen once: the server looks it up."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from nessie_cli.errors import InvalidInput, NotAllowed, OutcomeUnknown, ReferenceConflict, StoreUnavailable
from nessie_cli.model import CommitMeta, CommitResult, Operation, check_reference_name
from nessie_cli.repository.remote.bodies import commit_body
from nessie_cli.repository.remote.diagnosis import diagnosed
from nessie_cli.repository.remote.lost import FIRST_PAUSE, settled
from nessie_cli.repository.remote.references import full_name
from nessie_cli.repository.remote.revisions import is_hash
from nessie_cli.repository.remote.session import Session, understood
from nessie_cli.repository.remote.transport import Lost, segment
from nessie_cli.wire import answers
from nessie_cli.wire.decode import decode_key

_TRIES = 4
"""How often a write is sent whose answer is lost."""

T = TypeVar("T")


class CommitRequest(NamedTuple):
    """The arguments of `Repository.commit`."""

    branch: str
    operations: Sequence[Operation]
    meta: CommitMeta
    expected_hash: str | None = None
    request_id: str | None = None
    dry_run: bool = False


def commit(session: Session, request: CommitRequest) -> CommitResult:
    """See `Repository`; the server checks the rules and takes a missing expected hash for HEAD."""
    body = commit_body(request.meta, request.operations) | ({"isDryRun": True} if request.dry_run else {})
    path = f"{path_expecting(session, request.branch, request.expected_hash)}/history/commit"
    try:
        return send_once(session, path, body, request.request_id, _checked_result, dry_run=request.dry_run)
    except ReferenceConflict as conflict:
        branch = full_name(session, request.branch)
        raise diagnosed(session, conflict, branch, request.operations, request.expected_hash) from None


def find_request(session: Session, request_id: str) -> CommitResult | None:
    """See `Repository`; the server looks requests up by their ids."""
    found = session.transport.get(f"requests/{segment(request_id)}")
    return understood(found, lambda found: None if found["result"] is None else commit_result(found["result"]), "request")


def path_expecting(session: Session, branch: str, hash_: str | None) -> str:
    """The path of a branch to write to, with the expected hash if there is one."""
    if hash_ is not None and not is_hash(hash_):
        raise InvalidInput(f"Hash must consist of the hex representation of 4-32 bytes: {hash_!r}")
    name = check_reference_name(full_name(session, branch))
    return f"trees/{segment(name if hash_ is None else f'{name}@{hash_}')}"


def send_once(session: Session, path: str, body: Any, request_id: str | None, decode: Callable[[Any], T], *, dry_run: bool) -> T:
    """Send a write under a request id.

    If its answer is lost it is sent again, and the server looks it up first.

    Once an answer was lost, only an answer about this request says what became of it; that the
    server is away does not.
    """
    request_id = request_id or session.circumstances.random(16).hex()
    lost: Lost | None = None
    for number in range(_TRIES):
        try:
            return understood(session.transport.send("POST", path, None, body, request_id=request_id, safe=dry_run), decode, "write")
        except Lost as found:
            if found.ended:
                return settled(found, lambda: _earlier(session, path, body, request_id, decode))
            lost = found
        except (StoreUnavailable, NotAllowed) as error:
            if lost is None:
                raise
            raise OutcomeUnknown(f"{lost.message}; and then: {error.message}", request_id) from None
        if number < _TRIES - 1:
            time.sleep(FIRST_PAUSE * 3**number)
    assert lost is not None
    raise lost


def _earlier(session: Session, path: str, body: Any, request_id: str, decode: Callable[[Any], T]) -> T | None:
    """The answer to a request that has happened; None for one that has not."""
    if find_request(session, request_id) is None:
        return None
    return understood(session.transport.send("POST", path, None, body, request_id=request_id), decode, "write")


def commit_result(data: Any) -> CommitResult:
    """The answer to a commit."""
    added = {decode_key(item["key"]): str(item["contentId"]) for item in data.get("addedContents") or ()}
    return CommitResult(answers.decode_reference(data["targetBranch"]), added)


def _checked_result(data: Any) -> CommitResult:
    """The answer to a commit, or to its dry run."""
    found = commit_result(data)
    return CommitResult(found.reference, found.added, applied=bool(data.get("wasApplied", True)))
