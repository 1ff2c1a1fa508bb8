"""Commits to `nessie serve`, which checks the rules."""

from __future__ import annotations

from msgspec import structs

from nessie_cli.errors import InvalidInput, ReferenceConflict
from nessie_cli.model import CommitResult, check_reference_name
from nessie_cli.repository.changes import Commit
from nessie_cli.repository.remote.bodies import commit_body, commit_result
from nessie_cli.repository.remote.conflicts import diagnosed
from nessie_cli.repository.remote.extended.idempotent import send_idempotent
from nessie_cli.repository.remote.references import full_name
from nessie_cli.repository.remote.revisions import is_hash
from nessie_cli.repository.remote.server import Server
from nessie_cli.repository.remote.session import RestSession
from nessie_cli.repository.remote.transport import segment
from nessie_cli.repository.remote.write_request import WriteRequest


def commit(server: Server, change: Commit, request_id: str | None) -> CommitResult:
    """Commits operations, or checks them in a dry run. Raises conflicts with their details."""
    session, operations = server.session, list(change.operations)
    body = commit_body(change.meta, operations) | ({"isDryRun": True} if change.dry_run else {})
    path = f"{path_expecting(session, change.branch, change.expected_hash)}/history/commit"
    try:
        return send_idempotent(
            session,
            WriteRequest("POST", path, body),
            request_id,
            commit_result,
            safe=change.dry_run,
        )
    except ReferenceConflict as conflict:
        branch = full_name(session, change.branch)
        raise diagnosed(
            server, conflict, structs.replace(change, branch=branch, operations=operations)
        ) from None


def path_expecting(session: RestSession, branch: str, hash_: str | None) -> str:
    """Returns the path of a branch to write to, with the expected hash if there is one."""
    if hash_ is not None and not is_hash(hash_):
        raise InvalidInput(f"Hash must consist of the hex representation of 4-32 bytes: {hash_!r}")
    name = check_reference_name(full_name(session, branch))
    return f"trees/{segment(name if hash_ is None else f'{name}@{hash_}')}"
