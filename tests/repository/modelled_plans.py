"""Random plans for `commit_all`, each with a record of its reads and drafts, and a naive
model that checks its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from nessie_cli.errors import (
    AlreadyExists,
    CommitNotFound,
    MergeConflict,
    NotAllowed,
    ReferenceConflict,
)
from nessie_cli.model import CommitMeta, CommitResult, MergeBehavior, MergeResult, ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import (
    AssignReference,
    Change,
    Commit,
    CreateReference,
    DeleteReference,
    Merge,
    MergeOptions,
    PutSettings,
    RenameReference,
    Transplant,
)
from nessie_cli.repository.draft import ChangeSubmission, Draft
from nessie_cli.repository.group_commit import Planned
from tests.repository.naive import Naive, Op, State, Verdict, apply
from tests.repository.test_machine import Machine, pick, thing
from tests.repository.vocabulary import EMPTY, types_and_keys

Wishes = dict[str, tuple[str, int, bool]]


class Wish(NamedTuple):
    """The intended change of a plan; numbers select among the references that it finds."""

    verb: str
    name: int
    other: int
    new: str
    behavior: str
    wishes: Wishes
    back: int


class Seen(NamedTuple):
    """One call of a plan: the references and settings that it read, and the change that it
    chose."""

    heads: Mapping[str, str]
    settings: Mapping[str, str]
    change: Change
    ops: list[Op]


class ModelledPlan:
    """A plan.

    `interfere` is called between the draft and the commit, in the first `times` calls.
    """

    def __init__(
        self,
        wish: Wish,
        request_id: str,
        interfere: Callable[[], None] = lambda: None,
        times: int = 0,
    ) -> None:
        self._wish = wish
        self._submission = ChangeSubmission(request_id)
        self._interfere = interfere
        self._times = times
        self.request_id = request_id
        self.calls: list[Seen] = []
        self.drafts: list[Draft[Any]] = []
        self.answer: Any = None

    def __call__(self, at: Repository) -> Planned[Any]:
        heads = {one.name: one.hash for one in at.references()}
        change, ops = self._change(at, heads)
        self.calls.append(Seen(heads, at.config().settings, change, ops))
        draft = at.draft(change, self._submission)
        self.drafts.append(draft)
        if len(self.calls) <= self._times:
            self._interfere()
        return Planned(draft.answer(), draft)

    @property
    def last(self) -> Seen:
        """The call that produced the answer."""
        return self.calls[-1]

    @property
    def committed(self) -> Draft[Any] | None:
        """The committed draft; None if the answer is a refusal or changed nothing."""
        return (
            None
            if isinstance(self.answer, Exception) or self.drafts[-1].write is None
            else self.drafts[-1]
        )

    def _change(self, at: Repository, heads: Mapping[str, str]) -> tuple[Change, list[Op]]:  # noqa: PLR0911 - one for each verb
        wish = self._wish
        names = sorted(heads)
        name, other = pick(names, wish.name), pick(names, wish.other)
        mutable = [one for one in names if one != "main"]
        match wish.verb:
            case "commit":
                return self._commit(at, name)
            case "merge":
                return Merge(
                    name,
                    f"{other}@{heads[other]}",
                    MergeOptions(per_key=True, default_behavior=MergeBehavior(wish.behavior)),
                ), []
            case "transplant" if heads[other] != EMPTY:
                return Transplant(
                    name,
                    [heads[other]],
                    MergeOptions(per_key=True, default_behavior=MergeBehavior(wish.behavior)),
                ), []
            case "create":
                return CreateReference(ReferenceType.BRANCH, wish.new, heads[other]), []
            case "assign":
                return AssignReference(name, heads[other], heads[name]), []
            case "rename" if mutable:
                return RenameReference(
                    pick(mutable, wish.name), wish.new, heads[pick(mutable, wish.name)]
                ), []
            case "delete" if mutable:
                return DeleteReference(
                    pick(mutable, wish.name), heads[pick(mutable, wish.name)]
                ), []
            case "protect":
                return PutSettings({f"protect.{name}": "merge-only"}), []
            case "release":
                return PutSettings({f"protect.{name}": None}), []
        return self._commit(at, name)

    def _commit(self, at: Repository, name: str) -> tuple[Change, list[Op]]:
        expected = at.resolve(name + "~1" * self._wish.back).hash
        seen = {
            e.key.plain: thing(e.content)
            for e in at.entries(f"@{expected}", content=True)
            if e.content
        }
        ops = [Machine.op(key, *wish, seen, rude=False) for key, wish in self._wish.wishes.items()]
        if (
            "n" not in seen
            and "n" not in self._wish.wishes
            and any(op.key.startswith("n.") for op in ops)
        ):
            ops.append(Op("put", "n", "namespace", 1))
        operations = [one for op in ops for one in Machine.operations(op, seen)]
        return Commit(name, operations, CommitMeta("work"), expected), ops


class Judge:
    """Replays committed plans on the naive model, one after another, and compares every answer
    with the model's."""

    def __init__(self, repository: Repository) -> None:
        self.naive = Naive()
        self.heads = {"main": EMPTY}
        self.settings: list[dict[str, str]] = [{}]
        """The settings by version, counted from the first change."""
        self._repository = repository

    def done(self, plan: ModelledPlan) -> None:
        """Checks a plan that has written, in the order of commit, on the state that the one before
        has left."""
        self._judge(plan, self.heads, plan.last.settings)
        self.heads = {name: hash_ for name, hash_ in self._moved(plan).items() if hash_ is not None}

    def answered(self, plan: ModelledPlan) -> None:
        """Checks a plan that has written nothing on the state that it read, which must have been
        committed."""
        seen = plan.last
        assert set(seen.heads.values()) <= self.naive.states.keys(), (
            "an answer rests on a commit that was never made"
        )
        assert dict(seen.settings) in self.settings, "an answer rests on settings that never were"
        self._judge(plan, seen.heads, seen.settings)

    def set(self, plan: ModelledPlan) -> None:
        """Checks a plan that has changed settings, in the order of versions."""
        change, before = plan.last.change, self.settings[-1]
        assert isinstance(change, PutSettings)
        assert plan.last.settings == before, "settings were changed on others than it saw"
        assert plan.answer == {name: before.get(name) for name in change.values}
        after = {
            name: value for name, value in {**before, **change.values}.items() if value is not None
        }
        self.settings.append(after)

    def _moved(self, plan: ModelledPlan) -> dict[str, str | None]:
        assert plan.committed is not None
        changes = {one.name: one for one in plan.committed.references}
        for one in changes.values():
            assert self.heads.get(one.name) == one.before, (
                "a reference was moved from where it was not"
            )
        return {**self.heads, **{one.name: one.after for one in changes.values()}}

    def _judge(
        self, plan: ModelledPlan, heads: Mapping[str, str], settings: Mapping[str, str]
    ) -> None:
        change, answer = plan.last.change, plan.answer
        protected = (
            isinstance(change, Commit | Transplant | AssignReference)
            and f"protect.{_name(change)}" in settings
        )
        match change:
            case Commit() | Transplant() | AssignReference() if protected:
                if not isinstance(answer, NotAllowed):
                    # A transplant validates its input first; an assignment only needs the
                    # reference.
                    assert isinstance(change, Transplant), answer
                    assert isinstance(answer, ReferenceConflict), answer
            case Commit():
                self._commit(plan, change, heads[change.branch])
            case Merge():
                self._merge(plan, change, heads)
            case Transplant():
                self._transplant(plan, change, heads[change.branch])
            case CreateReference():
                assert isinstance(answer, AlreadyExists) == (change.name in heads)
            case RenameReference():
                assert isinstance(answer, AlreadyExists) == (change.new in heads)
            case _:
                assert not isinstance(answer, Exception), answer

    def _commit(self, plan: ModelledPlan, change: Commit, head: str) -> None:
        answer = plan.answer
        expected = self.naive.states[change.expected_hash or head]
        verdict = self.naive.judge_commit(expected, self.naive.states[head], plan.last.ops)
        if _is_conflict(answer, verdict):
            return
        assert isinstance(answer, CommitResult), answer
        ids = {key.plain: id_ for key, id_ in answer.added.items()}
        edits = {
            key: one and (one._replace(id=ids.pop(key)) if one.id == "new" else one)
            for key, one in verdict.edits.items()
        }
        assert ids == {}
        self._add(answer.reference.hash, [head], self.naive.states[head], edits)

    def _merge(self, plan: ModelledPlan, change: Merge, heads: Mapping[str, str]) -> None:
        answer, head = plan.answer, heads[change.branch]
        source = str(change.source).partition("@")[2]
        bases = self.naive.best_bases(head, source)
        if bases == {EMPTY} != {source}:
            assert isinstance(answer, CommitNotFound)
            return
        base = self._repository.merge_base(f"@{head}", f"@{source}")
        assert base in bases
        if base == source:
            assert (answer.applied, answer.successful, answer.resultant_hash) == (False, True, head)
            return
        states = self.naive.states
        verdict = self.naive.judge_merge(
            states[base], states[source], states[head], change.options.default_behavior.value
        )
        if verdict.namespace_trouble or verdict.conflicts:
            assert isinstance(answer, ReferenceConflict), answer
            assert isinstance(answer, MergeConflict) != verdict.namespace_trouble
            assert (
                verdict.namespace_trouble
                or set(types_and_keys(answer.conflicts)) == verdict.conflicts
            )
            return
        assert isinstance(answer, MergeResult), answer
        assert answer.common_ancestor == base
        if answer.applied:
            assert answer.resultant_hash
            self._add(answer.resultant_hash, [head, source], states[head], verdict.edits)
        else:
            assert plan.committed is None
            assert apply(states[head], verdict.edits) == states[head]

    def _transplant(self, plan: ModelledPlan, change: Transplant, head: str) -> None:
        answer, (source,) = plan.answer, change.commits
        before, after = self.naive.states[self.naive.parents[source][0]], self.naive.states[source]
        behavior, keys = change.options.default_behavior.value, set(self.naive.ops[source])
        verdict = self.naive.judge_merge(
            before, after, self.naive.states[head], behavior, keys, transplant=True
        )
        if verdict.namespace_trouble:
            assert isinstance(answer, ReferenceConflict)
        elif verdict.conflicts:
            assert isinstance(answer, MergeConflict)
            assert {key for _, key in types_and_keys(answer.conflicts)} == {
                key for _, key in verdict.conflicts
            }
        else:
            assert isinstance(answer, MergeResult), answer
            if answer.applied:
                assert answer.resultant_hash
                self._add(answer.resultant_hash, [head], self.naive.states[head], verdict.edits)
            else:
                assert plan.committed is None

    def _add(self, hash_: str, parents: list[str], state: State, edits: dict[str, Any]) -> None:
        self.naive.add(hash_, parents, apply(state, edits), edits)


def _name(change: Commit | Transplant | AssignReference) -> str:
    return change.name if isinstance(change, AssignReference) else change.branch


def _is_conflict(answer: Any, verdict: Verdict) -> bool:
    """Returns whether the model refuses a commit; the answer must then name the same conflicts."""
    if not verdict.conflicts and not verdict.namespace_trouble:
        return False
    assert isinstance(answer, ReferenceConflict), answer
    assert verdict.namespace_trouble or set(types_and_keys(answer.conflicts)) == verdict.conflicts
    return True
