"""API v1: commit, merge, transplant (reference 15)."""

from __future__ import annotations

from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.model import CommitMeta
from nessie_cli.server.call import Answer, Call
from nessie_cli.server.targets import Target, plain_hash
from nessie_cli.server.v1_references import check_name_v1
from nessie_cli.server.v2_writing import branch_of, merge, merge_body, transplant
from nessie_cli.wire import encode_v1
from nessie_cli.wire.bodies import decode_merge, decode_transplant
from nessie_cli.wire.decode import decode_operations
from nessie_cli.wire.encode import encode_reference


def _target(call: Call, verb: str) -> Target:
    hash_ = plain_hash(call.text("expectedHash"), f"{verb}.expectedHash")
    return Target(check_name_v1(call.segments["ref"], f"{verb}.branchName"), hash_)


def post_commit(call: Call) -> Answer:
    """One commit; answers the branch."""
    target = _target(call, "commitMultipleOperations")
    meta, operations = decode_operations(call.needed_json("commitMultipleOperations.operations"))
    branch = branch_of(call, target, "commit")
    result = call.repository.commit(branch.name, operations, meta, expected_hash=target.hash)
    return Answer(encode_reference(result.reference))


def _without(body: Any, *v2_attributes: str) -> Any:
    """A body as v1 knows it: attributes of v2 mean nothing there."""
    return {name: value for name, value in body.items() if name not in v2_attributes} if isinstance(body, dict) else body


def _check_kept(body: Any, allowed: bool, rule: str) -> None:
    kept = body.get("keepIndividualCommits") if isinstance(body, dict) else None
    if kept is not None and kept is not allowed:
        raise InvalidInput(f"The parameter 'keepIndividualCommits' is deprecated. {rule}")


def post_merge(call: Call) -> Answer:
    """One merge."""
    target = _target(call, "mergeRefIntoBranch")
    body = call.needed_json("mergeRefIntoBranch.merge")
    _check_kept(body, False, "Merge operations only support squashed now.")
    found = decode_merge(merge_body(_without(body, "message", "commitMeta")))
    plain_hash(found.source_hash, "fromHash")
    return Answer(encode_v1.merge_result(merge(call, target, found, None)))


def post_transplant(call: Call) -> Answer:
    """One transplant; the message is in the query."""
    target = _target(call, "transplantCommitsIntoBranch")
    body = call.needed_json("transplantCommitsIntoBranch.transplant")
    _check_kept(body, True, "Transplant operations only support unsquashed now.")
    found = decode_transplant(merge_body(_without(body, "message")))
    for hash_ in found.hashes:
        plain_hash(hash_, "hashesToTransplant")
    message = call.text("message")
    return Answer(encode_v1.merge_result(transplant(call, target, found, CommitMeta(message) if message else None)))
