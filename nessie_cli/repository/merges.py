"""The verb merge of the embedded repository, and what a transplant shares with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from nessie_cli.errors import CommitNotFound, MergeConflict
from nessie_cli.kernel import history, tree
from nessie_cli.kernel.commits import root_of
from nessie_cli.kernel.conflicts import describe, merge_message
from nessie_cli.kernel.decisions import Detail, Outcome, ThreeWay
from nessie_cli.kernel.drafting import Stamp, check_client_meta, draft_commit
from nessie_cli.kernel.edit import edit
from nessie_cli.kernel.forms import NO_COMMIT, Id
from nessie_cli.kernel.keys import decode_key
from nessie_cli.kernel.merging import KeyChoices, combine
from nessie_cli.kernel.objects import Objects
from nessie_cli.kernel.renames import Renames
from nessie_cli.model import CommitMeta, Conflict, Content, MergeDetail, MergeResult, Reference
from nessie_cli.model.progress import Progress, with_progress
from nessie_cli.repository.base import MergeOptions
from nessie_cli.repository.commits import conflict_error
from nessie_cli.repository.context import Context
from nessie_cli.repository.judging import ask
from nessie_cli.repository.reading import batched
from nessie_cli.repository.writing import Branch
from nessie_cli.store.base import Move, StoredReference

_AT_ONCE = 1000
"""Contents of the answer that are read together."""

Attempt = Callable[[StoredReference], tuple[Id | None, MergeResult]]
"""Drafts on a branch as it was found: the new HEAD (None: nothing to write) and the answer."""


class Place(NamedTuple):
    """Where a merge or transplant happens: the branch as found, the expected hash of the caller, the merge base (None: transplant).

    `progress` hears how far it is.
    """

    branch: StoredReference
    expected_hash: str | None
    base: Id | None
    progress: Progress | None = None


def merge(branches: Branch, context: Context, name: str, source: Reference, options: MergeOptions, *, done: Move | None = None) -> MergeResult:
    """Bring the net changes of `source` onto a branch as one commit with two parents.

    `done` is the move of an earlier request with the same id: then nothing is written and the answer is what it was.
    """
    objects = branches.objects()
    from_ = bytes.fromhex(source.hash)
    if options.meta is not None:
        check_client_meta(options.meta)

    def attempt(branch: StoredReference) -> tuple[Id | None, MergeResult]:
        expected = branches.expected(objects, branch, options.expected_hash)
        base = _base(objects, branch, from_, unrelated=options.unrelated)
        place = Place(branch, options.expected_hash, base, context.progress)
        if base == from_:
            return None, answer(objects, place, {}, branch.target)
        choices = KeyChoices(objects, options.behaviors, options.default_behavior)
        outcome = _combine_merge(objects, place, from_, choices, follow_renames=options.follow_renames)
        ask(context.judge, objects, branch.name, root_of(objects, branch.target), outcome.edits_if_source_wins())
        if not outcome.namespace_conflicts:
            choices.check_all_used()
        raise_conflicts(branches, objects, place, outcome, from_)
        choices.check_resolutions_used()
        if options.dry_run or not outcome.edits:
            return None, answer(objects, place, outcome.details, None if options.dry_run else branch.target)
        at_target = tree.get(objects, root_of(objects, branch.target), outcome.edits)
        made_up = f"Merged {source.name or 'DETACHED'} at {source.hash} into {branch.name} at {expected.hex()}"
        meta = options.meta or CommitMeta(made_up)
        meta = meta if meta.message else structs.replace(meta, message=made_up)
        root = edit(objects, root_of(objects, branch.target), outcome.edits)
        stamp = Stamp(context.who, context.clock())
        new = draft_commit(objects, [branch.target, from_], root, outcome.operations(at_target), meta=meta, stamp=stamp)
        return new, answer(objects, place, outcome.details, new, applied=True)

    if done is not None:
        return answer_again(attempt, done)
    return branches.advance(name, "merge", objects, attempt, request_id=options.request_id)


def answer_again(attempt: Attempt, done: Move) -> MergeResult:
    """What a merge or transplant answered when it was done: judged again where the branch was then, nothing is written."""
    assert done.before is not None
    assert done.after is not None
    _, result = attempt(StoredReference(done.name, done.kind, done.before))
    return structs.replace(result, resultant_hash=done.after.hex(), applied=True)


def _base(objects: Objects, branch: StoredReference, source: Id, *, unrelated: bool) -> Id:
    if source == NO_COMMIT != branch.target:
        return NO_COMMIT
    base = history.merge_base(objects, branch.target, source)
    if base == NO_COMMIT and not unrelated:
        raise CommitNotFound(f"No common ancestor in parents of {branch.target.hex()} and {source.hex()}", source.hex())
    return base


def _combine_merge(objects: Objects, place: Place, source: Id, choices: KeyChoices, *, follow_renames: bool) -> Outcome:
    roots = [root_of(objects, commit) for commit in (place.base or NO_COMMIT, place.branch.target, source)]
    changes = [ThreeWay(*found) for found in with_progress(tree.three_way(objects, *roots), place.progress, None)]
    renames = Renames(objects, changes, roots[0], roots[1])
    return combine(objects, changes, roots[1], choices, renames, follow_renames=follow_renames)


def raise_conflicts(branches: Branch, objects: Objects, place: Place, outcome: Outcome, source: Id) -> None:
    """Raise what prevents an outcome, with the commits on both sides that made it so."""
    if outcome.namespace_conflicts:
        raise conflict_error(branches, objects, place.branch, place.base or NO_COMMIT, outcome.namespace_conflicts)
    if not outcome.conflicts:
        return
    conflicts = describe(
        objects,
        outcome.conflicts,
        lambda key: branches.last_change(objects, source, key),
        lambda key: branches.last_change(objects, place.branch.target, key),
    )
    result = answer(objects, place, outcome.details, None, conflicts=conflicts)
    raise MergeConflict(merge_message(conflicts), conflicts, result)


def answer(
    objects: Objects,
    place: Place,
    details: Mapping[bytes, Detail],
    head: Id | None,
    *,
    applied: bool = False,
    conflicts: Sequence[Conflict] = (),
) -> MergeResult:
    """The answer for these decisions, with the contents of both sides; `head` is the new HEAD or None."""
    by_key = {conflict.key: conflict for conflict in conflicts}
    records = [r for d in details.values() for r in (d.source, d.target) if r]
    contents: dict[bytes | None, Content] = {}
    for some in batched(with_progress(records, place.progress, len(records)), _AT_ONCE):
        contents.update(zip(some, objects.contents(some), strict=True))
    return MergeResult(
        target_branch=place.branch.name,
        effective_target_hash=place.branch.target.hex(),
        resultant_hash=head.hex() if head is not None else None,
        common_ancestor=place.base.hex() if place.base is not None else None,
        expected_hash=place.expected_hash,
        applied=applied,
        successful=not conflicts,
        details=tuple(
            MergeDetail(
                key := decode_key(raw),
                detail.behavior,
                by_key.get(key),
                contents.get(detail.source),
                contents.get(detail.target),
            )
            for raw, detail in details.items()
        ),
    )
