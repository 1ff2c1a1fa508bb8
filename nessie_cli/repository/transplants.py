"""The verb transplant of the embedded repository."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from nessie_cli.errors import CommitNotFound, InvalidInput
from nessie_cli.kernel import tree
from nessie_cli.kernel.commits import meta_of, operations_of, root_of
from nessie_cli.kernel.decisions import Outcome, ThreeWay
from nessie_cli.kernel.drafting import Stamp, check_client_meta, draft_commit
from nessie_cli.kernel.edit import edit
from nessie_cli.kernel.forms import NO_COMMIT, Id
from nessie_cli.kernel.merging import KeyChoices, combine
from nessie_cli.kernel.objects import Objects
from nessie_cli.kernel.renames import Renames
from nessie_cli.model import CommitMeta, MergeResult
from nessie_cli.repository.base import MergeOptions
from nessie_cli.repository.context import Context
from nessie_cli.repository.judging import ask
from nessie_cli.repository.merges import Place, answer, answer_again, raise_conflicts
from nessie_cli.repository.writing import Branch
from nessie_cli.store.base import Move, StoredReference


def transplant(
    branches: Branch, context: Context, name: str, commits: Sequence[Id], options: MergeOptions, *, done: Move | None = None
) -> MergeResult:
    """Apply commits one by one onto a branch; each keeps its message, authors, author time and properties. `done` as in `merge`."""
    objects = branches.objects()
    _check_contiguous(objects, commits)
    if options.meta is not None:
        check_client_meta(options.meta)

    def attempt(branch: StoredReference) -> tuple[Id | None, MergeResult]:
        branches.expected(objects, branch, options.expected_hash)
        place = Place(branch, options.expected_hash, None, context.progress)
        replay = _Replay(objects, branch, options, context)
        for number, commit in enumerate(commits):
            if context.progress is not None:
                context.progress(number, len(commits))
            replay.apply(commit, alone=len(commits) == 1)
        raise_conflicts(branches, objects, place, replay.total, commits[-1])
        replay.choices.check_resolutions_used()
        written = replay.head != branch.target
        if options.dry_run:
            return None, answer(objects, place, replay.total.details, None)
        return (replay.head if written else None), answer(objects, place, replay.total.details, replay.head, applied=written)

    if done is not None:
        return answer_again(attempt, done)
    return branches.advance(name, "transplant", objects, attempt, request_id=options.request_id)


def _check_contiguous(objects: Objects, commits: Sequence[Id]) -> None:
    if not commits:
        raise InvalidInput("No hashes given to transplant.")
    if NO_COMMIT in commits:
        raise CommitNotFound(f"Commit '{NO_COMMIT.hex()}' not found", NO_COMMIT.hex())
    for parent, child in itertools.pairwise(commits):
        if objects.commit(child).parents[0] != parent:
            raise InvalidInput("Sequence of hashes is not contiguous.")


class _Replay:
    """Applies commits onto a chain of drafts, collecting what happened to each key."""

    def __init__(self, objects: Objects, branch: StoredReference, options: MergeOptions, context: Context) -> None:
        self._objects = objects
        self._branch = branch.name
        self._options = options
        self._context = context
        self.head = branch.target
        self.choices = KeyChoices(objects, options.behaviors, options.default_behavior)
        self.total = Outcome()

    def apply(self, id_: Id, *, alone: bool) -> None:
        objects = self._objects
        commit = objects.commit(id_)
        roots = [root_of(objects, commit.parents[0]), root_of(objects, self.head), commit.root]
        keys = [key for key, _ in operations_of(objects, commit)]
        before, target, after = (tree.get(objects, root, keys) for root in roots)
        changes = [ThreeWay(key, before.get(key), target.get(key), after.get(key)) for key in keys]
        renames = Renames(objects, changes, roots[0], roots[1])
        outcome = combine(objects, changes, roots[1], self.choices, renames, follow_renames=self._options.follow_renames, transplant=True)
        self._note(outcome)
        edits = outcome.edits_if_source_wins()
        if not edits:
            return
        ask(self._context.judge, objects, self._branch, roots[1], edits)
        original = meta_of(id_, commit)
        given = self._options.meta if alone else None
        meta = given or CommitMeta(original.message, original.authors, original.signed_off_by, original.author_time, original.properties)
        root = edit(objects, roots[1], edits)
        at_target = tree.get(objects, roots[1], edits)
        stamp = Stamp(self._context.who, self._context.clock())
        self.head = draft_commit(objects, [self.head], root, outcome.operations(at_target), meta=meta, stamp=stamp)

    def _note(self, outcome: Outcome) -> None:
        for key, detail in outcome.details.items():
            known = self.total.details.get(key)
            self.total.details[key] = known if known and known.conflict else detail
        known_conflicts = {(conflict.type, conflict.key) for conflict in self.total.namespace_conflicts}
        self.total.namespace_conflicts += [c for c in outcome.namespace_conflicts if (c.type, c.key) not in known_conflicts]
