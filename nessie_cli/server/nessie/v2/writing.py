"""API v2: commit, merge, transplant."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import Any

from msgspec import structs, to_builtins

from nessie_cli.errors import InvalidInput, MergeConflict, NotAllowed, NotFound
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    CommitResult,
    ContentKey,
    MergeBehavior,
    MergeDetail,
    MergeResult,
    Operation,
    Reference,
    ReferenceType,
)
from nessie_cli.repository.changes import Commit, Merge, MergeOptions, Transplant
from nessie_cli.revisions import Revision
from nessie_cli.server.http.streams import AT_ONCE, ListingBody
from nessie_cli.server.nessie.extensions import (
    accepts_any_order,
    expected_or_head,
    is_ours,
    merge_answer,
    wants_dry_run,
)
from nessie_cli.server.pipeline.call import Answer, Call, merged_with_headers
from nessie_cli.server.pipeline.targets import (
    DETACHED,
    Target,
    absolute,
    commit,
    named,
    parse_segment,
    parse_spec,
)
from nessie_cli.wire.bodies import MISSPELT
from nessie_cli.wire.decode import (
    MergeBody,
    TransplantBody,
    decode_merge,
    decode_operations,
    decode_transplant,
)
from nessie_cli.wire.references import AddedContent, BareCommit, CommitOutcome

Submit = Callable[[Merge | Transplant], MergeResult]
_ADDED = 500
"""The bytes that a key and the id of an added content need in memory."""


def branch_of(call: Call, target: Target, verb: str) -> Reference:
    """Returns the branch that a request writes to."""
    reference = (
        named(call.repository, target.name)
        if target.name is not None and target.name != DETACHED
        else None
    )
    if reference is None or reference.type is not ReferenceType.BRANCH:
        raise InvalidInput(f"Reference to {verb} into must be a branch.")
    return reference


def commit_to(call: Call, target: Target, write: Callable[[str], CommitResult]) -> CommitResult:
    """Writes to the branch of a request. If that fails, a missing branch is reported first."""
    name = target.name
    if name is None or name in (DETACHED, "-"):
        name = branch_of(call, target, "commit").name
    try:
        return write(name)
    # The verb looks the branch up. Doing so before would cost every commit one more read.
    except (InvalidInput, NotFound):
        branch_of(call, target, "commit")
        raise
    except NotAllowed:
        # A caller who may not view the branch gets all missing permissions reported.
        with suppress(NotAllowed):
            branch_of(call, target, "commit")
        raise


def merge_body(value: Any) -> Any:
    """Returns the body of a merge or transplant.

    Raises for misspelt flags of the original's examples, before something is merged for real.
    """
    for wrong in MISSPELT.keys() & value.keys() if isinstance(value, dict) else ():
        raise InvalidInput(f"{wrong}: is not an attribute; write {MISSPELT[wrong]}")
    return value


def post_commit(call: Call) -> Answer:
    """Commits."""
    body = call.decoded(partial(_decode_commit, call))
    if body is None:
        raise InvalidInput("commitMultipleOperations.operations: must not be null")
    meta, operations, dry_run = body
    target = parse_segment(call.segments["ref"], call.default_branch)

    def write(branch: str) -> CommitResult:
        where = expected_or_head(call, target)
        whole = merged_with_headers(call, meta) or meta
        committed: CommitResult = call.submit(Commit(branch, operations, whole, where, dry_run))
        return committed

    result = commit_to(call, target, write)
    outcome = CommitOutcome if is_ours(call) else BareCommit
    return Answer(outcome.of(result) if len(result.added) < AT_ONCE else _streamed(outcome, result))


def _streamed(outcome: type[BareCommit], result: CommitResult) -> ListingBody:
    """Returns the answer to a large commit, whose added contents are encoded as they are sent."""
    others = to_builtins(outcome.of(structs.replace(result, added={})))
    del others["addedContents"]
    added = (AddedContent.of(key, content_id) for key, content_id in result.added.items())
    held = _ADDED * len(result.added)
    return ListingBody("addedContents", added, lambda: others, held=lambda: held)


def _decode_commit(call: Call, body: Any) -> tuple[CommitMeta, list[Operation], bool]:
    meta, operations = decode_operations(body, allow_unknown=is_ours(call))
    return meta, operations, wants_dry_run(call, body)


def post_merge(call: Call) -> Answer:
    """Merges."""
    return answer_merge(call, call.needed_json("mergeRefIntoBranch.merge"))


def answer_merge(call: Call, document: Any, submit: Submit | None = None) -> Answer:
    """Merges according to a JSON body. `submit` is that of `merge`."""
    body = decode_merge(merge_body(document))
    target = parse_segment(call.segments["ref"], call.default_branch)
    result = merge(call, target, body, merged_with_headers(call, body.meta), submit)
    return merge_answer(call, result)


def merge(
    call: Call,
    target: Target,
    body: MergeBody,
    meta: CommitMeta | None,
    submit: Submit | None = None,
) -> MergeResult:
    """Merges according to a body. A conflict is a result if the body says so.

    `submit` carries out the merge; by default, its draft is committed after the handler.
    """
    submit = submit or call.submit
    if not body.per_content and _may_drop(body):
        # The answer may have all keys of both sides, however few the source changed.
        call.submission.check_size(sys.maxsize)
    if body.source != DETACHED:
        named(call.repository, body.source)
    branch = branch_of(call, target, "merge")
    where = expected_or_head(call, target)
    spec = Target(None) if body.source_hash is None else parse_spec(body.source_hash, "fromHash")
    source_hash = commit(call.repository, spec, "Source hash")
    source = "" if body.source == DETACHED else body.source
    options = MergeOptions(
        meta=meta,
        behaviors=body.behaviors,
        default_behavior=body.default_behavior,
        per_key=not body.per_content,
        unrelated=body.unrelated,
        allow_failed_run=body.allows_failed_run,
        expected_hash=where,
        dry_run=body.dry_run,
    )
    if unused := _unused_drops(call, body, branch, source_hash):
        # Conflicts of namespaces are reported first.
        with suppress(MergeConflict):
            call.submit(
                Merge(
                    branch.name, f"{source}@{source_hash}", structs.replace(options, dry_run=True)
                )
            )
        names = ", ".join(unused)
        raise InvalidInput(
            "Not all merge key behaviors specified in the request have been used. The following"
            f" keys were not used: [{names}]"
        )
    try:
        return _with_untouched(
            call,
            submit(Merge(branch.name, f"{source}@{source_hash}", options)),
            body,
            source_hash,
        )
    except MergeConflict as conflict:
        result = _with_untouched(call, conflict.result, body, source_hash)
        if body.conflict_as_result:
            return result
        raise MergeConflict(conflict.message, conflict.conflicts, result) from None


def _may_drop(body: MergeBody) -> bool:
    """Returns whether a merge per key drops keys of the source."""
    behaviors = [body.default_behavior, *(each.behavior for each in body.behaviors)]
    return MergeBehavior.DROP in behaviors


def _dropped(body: MergeBody) -> list[ContentKey]:
    """Returns the keys that a merge drops by their own behavior."""
    return [each.key for each in body.behaviors if each.behavior is MergeBehavior.DROP]


def _unused_drops(call: Call, body: MergeBody, branch: Reference, source_hash: str) -> list[str]:
    """Returns the keys to drop that neither the source nor the merge base has.

    A repository ignores them; for the API they are an error.
    """
    asked = _dropped(body)
    if not asked or body.per_content:
        return []
    base = call.repository.merge_base(Revision(None, branch.hash), Revision(None, source_hash))
    if base in (source_hash, NO_ANCESTOR):
        return []
    there = {
        key
        for at in (base, source_hash)
        for key, _ in call.repository.each_content(Revision(None, at), asked)
    }
    return [key.plain for key in asked if key not in there]


def _with_untouched(
    call: Call, result: MergeResult, body: MergeBody, source_hash: str
) -> MergeResult:
    """Returns the answer of a merge that drops keys, with each key of source or merge base."""
    base = result.common_ancestor
    if base is None or base == source_hash or body.per_content:
        return result
    reported = {detail.key for detail in result.details}
    sides = [Revision(None, at) for at in (base, source_hash)]
    dropped: list[Iterable[ContentKey]] = []
    if body.default_behavior is MergeBehavior.DROP:
        reported |= {each.key for each in body.behaviors}.difference(_dropped(body))
        dropped = [(entry.key for entry in call.repository.entries(at)) for at in sides]
    elif asked := _dropped(body):
        dropped = [(key for key, _ in call.repository.each_content(at, asked)) for at in sides]
    # Each side is ascending. Sorting both together would not let other threads run.
    missing = [key for key, _ in groupby(heapq.merge(*dropped)) if key not in reported]
    return structs.replace(
        result,
        details=(*result.details, *(MergeDetail(key, MergeBehavior.DROP) for key in missing)),
    )


def post_transplant(call: Call) -> Answer:
    """Transplants."""
    return answer_transplant(call, call.needed_json("transplantCommitsIntoBranch.transplant"))


def answer_transplant(call: Call, document: Any, submit: Submit | None = None) -> Answer:
    """Transplants according to a JSON body. `submit` is that of `merge`."""
    body = decode_transplant(merge_body(document))
    target = parse_segment(call.segments["ref"], call.default_branch)
    meta = merged_with_headers(
        call, body.meta or (None if body.message is None else CommitMeta(body.message))
    )
    any_order = accepts_any_order(call, document)
    result = transplant(call, target, body, meta, any_order=any_order, submit=submit)
    return merge_answer(call, result)


def transplant(
    call: Call,
    target: Target,
    body: TransplantBody,
    meta: CommitMeta | None,
    *,
    any_order: bool = False,
    submit: Submit | None = None,
) -> MergeResult:
    """Transplants according to a body. `submit` is that of `merge`."""
    if body.source != DETACHED:
        named(call.repository, body.source)
    branch = branch_of(call, target, "transplant")
    where = expected_or_head(call, target)
    specs = [parse_spec(text, "hashesToTransplant") for text in body.hashes]
    for spec in specs:
        absolute(spec, "Hash to transplant")
    hashes = [commit(call.repository, spec, "Hash to transplant") for spec in specs]
    options = MergeOptions(
        meta=_overridden(call, hashes[0], meta) if meta is not None and len(hashes) == 1 else None,
        behaviors=body.behaviors,
        default_behavior=body.default_behavior,
        per_key=not body.per_content,
        any_order=any_order,
        allow_failed_run=body.allows_failed_run,
        expected_hash=where,
        dry_run=body.dry_run,
    )
    try:
        result = (submit or call.submit)(Transplant(branch.name, hashes, options))
    except MergeConflict as conflict:
        if body.conflict_as_result:
            return conflict.result  # type: ignore[no-any-return]
        raise
    return result


def _overridden(call: Call, hash_: str, meta: CommitMeta) -> CommitMeta:
    """Returns the metadata of the only transplanted commit, with the changes of the request."""
    if is_ours(call):
        return meta
    original = (
        call.repository.commit_at(Revision(None, hash_)).meta if hash_ != NO_ANCESTOR else meta
    )
    return CommitMeta(
        message=meta.message or original.message,
        authors=meta.authors or original.authors,
        signed_off_by=meta.signed_off_by or original.signed_off_by,
        author_time=meta.author_time or original.author_time,
        properties=meta.properties or original.properties,
    )
