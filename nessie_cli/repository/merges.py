"""The verbs merge and transplant of the embedded repository."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nessie_cli.errors import CommitNotFound, InvalidInput, MergeConflict
from nessie_cli.kernel import history, tree
from nessie_cli.kernel.conflicts import describe, merge_message
from nessie_cli.kernel.decisions import Detail, Outcome, Triple
from nessie_cli.kernel.drafting import check_client_meta, draft_commit, meta_of, operations_of, root_of
from nessie_cli.kernel.keys import decode_key
from nessie_cli.kernel.merging import Wishes, combine
from nessie_cli.kernel.objects import NO_COMMIT, Id, Objects
from nessie_cli.kernel.renames import Renames
from nessie_cli.model import CommitMeta, Conflict, Content, MergeDetail, MergeResult, Reference
from nessie_cli.repository.base import MergeOptions
from nessie_cli.repository.commits import conflict_error
from nessie_cli.repository.reading import last_change
from nessie_cli.repository.writing import Branch, Circumstances, as_branch
from nessie_cli.store.base import StoredReference


class _Place(NamedTuple):
    """Where a merge or transplant happens: the branch as found, the expected hash of the caller, the merge base (None: transplant)."""

    branch: StoredReference
    expected_hash: str | None
    base: Id | None


def merge(branches: Branch, circumstances: Circumstances, name: str, source: Reference, options: MergeOptions) -> MergeResult:
    """Bring the net changes of `source` onto a branch as one commit with two parents."""
    objects = branches.objects()
    from_ = bytes.fromhex(source.hash)
    if options.meta is not None:
        check_client_meta(options.meta)

    def attempt(branch: StoredReference) -> tuple[Id | None, MergeResult]:
        expected = branches.expected(objects, branch, options.expected_hash)
        base = _base(objects, branch, from_, unrelated=options.unrelated)
        place = _Place(branch, options.expected_hash, base)
        if base == from_:
            return None, _result(objects, place, {}, branch.target)
        wishes = Wishes(objects, options.behaviors, options.default_behavior)
        outcome = _combine_merge(objects, branch.target, from_, base, wishes, follow_renames=options.follow_renames)
        _raise_conflicts(objects, place, outcome, from_)
        wishes.check_all_used()
        at_target = tree.get(objects, root_of(objects, branch.target), outcome.edits)
        if all(at_target.get(key) == record for key, record in outcome.edits.items()):
            return None, _result(objects, place, outcome.details, branch.target)
        if options.dry_run:
            return None, _result(objects, place, outcome.details, None)
        meta = options.meta or CommitMeta(f"Merged {source.name or 'DETACHED'} at {source.hash} into {branch.name} at {expected.hex()}")
        root = tree_after(objects, branch.target, outcome)
        new = draft_commit(objects, [branch.target, from_], root, outcome.operations(at_target), meta=meta, stamp=circumstances.stamp())
        return new, _result(objects, place, outcome.details, new, applied=True)

    return branches.advance(name, "merge", objects, attempt, request_id=options.request_id)


def _base(objects: Objects, branch: StoredReference, source: Id, *, unrelated: bool) -> Id:
    if source == NO_COMMIT != branch.target:
        return NO_COMMIT
    base = history.merge_base(objects, branch.target, source)
    if base == NO_COMMIT and not unrelated:
        raise CommitNotFound(f"No common ancestor in parents of {branch.target.hex()} and {source.hex()}", source.hex())
    return base


def _combine_merge(objects: Objects, head: Id, source: Id, base: Id, wishes: Wishes, *, follow_renames: bool) -> Outcome:
    roots = [root_of(objects, commit) for commit in (base, head, source)]
    triples = [Triple(*found) for found in tree.three_way(objects, *roots)]
    renames = Renames(objects, triples, roots[0], roots[1])
    return combine(objects, triples, roots[1], wishes, renames, follow_renames=follow_renames)


def tree_after(objects: Objects, head: Id, outcome: Outcome) -> Id:
    """The root of a branch's state after an outcome."""
    from nessie_cli.kernel.edit import edit

    return edit(objects, root_of(objects, head), outcome.edits)


def _raise_conflicts(objects: Objects, place: _Place, outcome: Outcome, source: Id) -> None:
    if outcome.namespace_conflicts:
        raise conflict_error(objects, place.branch, place.base or NO_COMMIT, outcome.namespace_conflicts)
    if not outcome.conflicts:
        return
    conflicts = describe(
        objects,
        outcome.conflicts,
        lambda key: last_change(objects, source, key),
        lambda key: last_change(objects, place.branch.target, key),
    )
    result = _result(objects, place, outcome.details, None, conflicts=conflicts)
    raise MergeConflict(merge_message(conflicts), conflicts, result)


def _result(
    objects: Objects,
    place: _Place,
    details: Mapping[bytes, Detail],
    head: Id | None,
    *,
    applied: bool = False,
    conflicts: Sequence[Conflict] = (),
) -> MergeResult:
    by_key = {conflict.key: conflict for conflict in conflicts}
    records = [r for d in details.values() for r in (d.source, d.target) if r]
    contents: dict[bytes | None, Content] = dict(zip(records, objects.contents(records), strict=True)) if records else {}
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


def transplant(branches: Branch, circumstances: Circumstances, name: str, commits: Sequence[Id], options: MergeOptions) -> MergeResult:
    """Apply commits one by one onto a branch; each keeps its message, authors, author time and properties."""
    objects = branches.objects()
    _check_contiguous(objects, commits)
    if options.meta is not None:
        check_client_meta(options.meta)

    def attempt(branch: StoredReference) -> tuple[Id | None, MergeResult]:
        branches.expected(objects, branch, options.expected_hash)
        place = _Place(branch, options.expected_hash, None)
        replay = _Replay(objects, branch.target, options, circumstances)
        for commit in commits:
            replay.apply(commit, alone=len(commits) == 1)
        _raise_conflicts(objects, place, replay.total, commits[-1])
        replay.wishes.check_resolutions_used()
        written = replay.head != branch.target
        if options.dry_run and written:
            return None, _result(objects, place, replay.total.details, None)
        return (replay.head if written else None), _result(objects, place, replay.total.details, replay.head, applied=written)

    return branches.advance(name, "transplant", objects, attempt, request_id=options.request_id)


def _check_contiguous(objects: Objects, commits: Sequence[Id]) -> None:
    if not commits:
        raise InvalidInput("No hashes given to transplant.")
    for parent, child in itertools.pairwise(commits):
        if objects.commit(child).parents[0] != parent:
            raise InvalidInput("Sequence of hashes is not contiguous.")


class _Replay:
    """Applies commits onto a chain of drafts, collecting what happened to each key."""

    def __init__(self, objects: Objects, head: Id, options: MergeOptions, circumstances: Circumstances) -> None:
        self._objects = objects
        self._options = options
        self._circumstances = circumstances
        self.head = head
        self.wishes = Wishes(objects, options.behaviors, options.default_behavior)
        self.total = Outcome({}, {}, [])

    def apply(self, id_: Id, *, alone: bool) -> None:
        objects = self._objects
        commit = objects.commit(id_)
        roots = [root_of(objects, commit.parents[0]), root_of(objects, self.head), commit.root]
        keys = [key for key, _ in operations_of(objects, commit)]
        before, target, after = (tree.get(objects, root, keys) for root in roots)
        triples = [Triple(key, before.get(key), target.get(key), after.get(key)) for key in keys]
        renames = Renames(objects, triples, roots[0], roots[1])
        outcome = combine(objects, triples, roots[1], self.wishes, renames, follow_renames=self._options.follow_renames, drop_only_conflicts=True)
        self._note(outcome)
        if not outcome.edits or self.total.conflicts or self.total.namespace_conflicts:
            return
        original = meta_of(id_, commit)
        given = self._options.meta if alone else None
        meta = given or CommitMeta(original.message, original.authors, original.signed_off_by, original.author_time, original.properties)
        root = tree_after(objects, self.head, outcome)
        at_target = tree.get(objects, roots[1], outcome.edits)
        self.head = draft_commit(objects, [self.head], root, outcome.operations(at_target), meta=meta, stamp=self._circumstances.stamp())

    def _note(self, outcome: Outcome) -> None:
        for key, detail in outcome.details.items():
            known = self.total.details.get(key)
            self.total.details[key] = known if known and known.conflict else detail
        self.total.namespace_conflicts += outcome.namespace_conflicts


__all__ = ["as_branch", "merge", "transplant"]
