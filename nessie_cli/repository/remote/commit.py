"""Commits to our own servers, which look request ids up so that a write happens once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nessie_cli.errors import InvalidInput, ReferenceConflict
from nessie_cli.model import CommitMeta, CommitResult, Operation, check_reference_name
from nessie_cli.repository.remote.bodies import commit_body
from nessie_cli.repository.remote.diagnosis import diagnosed
from nessie_cli.repository.remote.once import Sent, happened, send_once
from nessie_cli.repository.remote.references import full_name
from nessie_cli.repository.remote.revisions import is_hash
from nessie_cli.repository.remote.session import Session, understood
from nessie_cli.repository.remote.transport import segment
from nessie_cli.wire import answers


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
    body = commit_body(request.meta, request.operations) | (
        {"isDryRun": True} if request.dry_run else {}
    )
    path = f"{path_expecting(session, request.branch, request.expected_hash)}/history/commit"
    try:
        return send_once(
            session,
            Sent("POST", path, body),
            request.request_id,
            _checked_result,
            safe=request.dry_run,
        )
    except ReferenceConflict as conflict:
        branch = full_name(session, request.branch)
        raise diagnosed(
            session, conflict, branch, request.operations, request.expected_hash
        ) from None


def find_request(session: Session, request_id: str) -> CommitResult | None:
    """See `Repository`; the server looks requests up by their ids."""
    found = happened(session, request_id)
    return None if found is None else understood(found, commit_result, "request")


def path_expecting(session: Session, branch: str, hash_: str | None) -> str:
    """The path of a branch to write to, with the expected hash if there is one."""
    if hash_ is not None and not is_hash(hash_):
        raise InvalidInput(f"Hash must consist of the hex representation of 4-32 bytes: {hash_!r}")
    name = check_reference_name(full_name(session, branch))
    return f"trees/{segment(name if hash_ is None else f'{name}@{hash_}')}"


def commit_result(data: Any) -> CommitResult:
    """The answer to a commit."""
    added = {
        answers.decode_key(item["key"]): str(item["contentId"])
        for item in data.get("addedContents") or ()
    }
    return CommitResult(answers.decode_reference(data["targetBranch"]), added)


def _checked_result(data: Any) -> CommitResult:
    """The answer to a commit, or to its dry run."""
    found = commit_result(data)
    return CommitResult(found.reference, found.added, applied=bool(data.get("wasApplied", True)))
