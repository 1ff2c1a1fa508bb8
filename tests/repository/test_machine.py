"""A state machine that runs random operations on a real repository and on the naive one, and
compares both after every step."""

from __future__ import annotations

import itertools
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from nessie_cli.errors import (
    AlreadyExists,
    CommitNotFound,
    MergeConflict,
    ReferenceConflict,
    ReferenceMoved,
)
from nessie_cli.model import (
    CommitMeta,
    Content,
    IcebergTable,
    IcebergView,
    MergeBehavior,
    MergeResult,
    Namespace,
    Operation,
    ReferenceType,
)
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.repository.opening import connect, create
from tests.repository.naive import Naive, Op, State, Thing, Verdict, apply
from tests.repository.vocabulary import (
    EMPTY,
    NOBODY,
    delete,
    key,
    namespace,
    put,
    table,
    types_and_keys,
    unchanged,
    view,
)

pytestmark = pytest.mark.slow

KEYS = ["a", "b", "c", "n", "n.x", "n.y"]
NAMES = ["main", "dev", "fix", "v1"]
NUMBERS = st.integers(1, 4)
WORDS = st.sampled_from(["put", "put", "delete", "unchanged", "again"])
PICK = st.integers(0, 10_000)
WISHES = st.dictionaries(
    st.sampled_from(["a", "b", "c", "n", "n.x", "n.y"]),
    st.tuples(WORDS, st.integers(1, 4), st.booleans()),
    min_size=1,
    max_size=3,
)
Wishes = dict[str, tuple[str, int, bool]]
BEHAVIORS = st.sampled_from(["NORMAL", "NORMAL", "NORMAL", "FORCE", "DROP"])


def thing(content: Content) -> Thing:
    match content:
        case IcebergTable():
            return Thing(content.id or "", "table", content.snapshot_id)
        case IcebergView():
            return Thing(content.id or "", "view", content.version_id)
        case Namespace():
            return Thing(content.id or "", "namespace", int(content.properties["number"]))
    raise AssertionError(content)


def content(key_: str, wanted: Thing, content_id: str | None) -> Content:
    match wanted.kind:
        case "table":
            return table(wanted.number, content_id)
        case "view":
            return view(wanted.number, content_id)
    return namespace(key_, content_id, number=str(wanted.number))


def pick(choices: Any, number: int) -> Any:
    return choices[number % len(choices)]


class Machine(RuleBasedStateMachine):
    """A state machine without renames, whose rules are tested in the contract."""

    def __init__(self) -> None:
        super().__init__()
        self.naive = Naive()
        ticks = itertools.count(1_700_000_000_000_000, 1_000)
        # Equal steps must produce equal hashes so that Hypothesis can shrink examples.
        self.fixed: dict[str, Any] = {
            "clock": lambda: next(ticks),
            "random": random.Random(7).randbytes,
        }
        self.repository = self.open()

    def open(self) -> Repository:
        return create("memory:", **self.fixed)

    def teardown(self) -> None:
        assert list(self.repository.check()) == []
        self.repository.close()

    # -- helpers --

    def state(self, revision: str) -> State:
        return {
            e.key.plain: thing(e.content)
            for e in self.repository.entries(revision, content=True)
            if e.content
        }

    def heads(self) -> dict[str, str]:
        return {r.name: r.hash for r in self.repository.references()}

    def refuses(
        self, error: type[Exception], call: Callable[[], object]
    ) -> pytest.ExceptionInfo[Any]:
        """Asserts that the call raises the error and changes nothing."""
        before = self.heads()
        with pytest.raises(error) as refused:
            call()
        assert self.heads() == before
        return refused

    # -- commits --

    @initialize(number=NUMBERS)
    def begin(self, number: int) -> None:
        """Creates a base that branches have in common, so that they can be merged."""
        ops = [
            Op("put", k, "namespace" if k == "n" else "table", number)
            for k in ("a", "b", "n", "n.x")
        ]
        self.submit("main", EMPTY, ops, dry=False)
        for name in ("dev", "fix"):
            self.repository.create_reference(
                ReferenceType.BRANCH, name, self.naive.branches["main"]
            )
            self.naive.branches[name] = self.naive.branches["main"]

    @rule(
        branch=PICK,
        several=st.lists(
            st.tuples(
                WISHES, st.sampled_from([0, 0, 0, 1, 2, 5]), st.integers(0, 9), st.integers(0, 9)
            ),
            min_size=1,
            max_size=4,
        ),
    )
    def commit(self, branch: int, several: list[tuple[Wishes, int, int, int]]) -> None:
        for number, (wishes, stale, rude, dry) in enumerate(several):
            self.commit_one(
                pick(sorted(self.naive.branches), branch + number // 2), wishes, stale, rude, dry
            )

    def commit_one(self, name: str, wishes: Wishes, stale: int, rude: int, dry: int) -> None:
        line = [*self.naive.line(self.naive.branches[name]), EMPTY]
        expected = line[min(stale, len(line) - 1)]
        seen = self.naive.states[expected]
        ops = [self.op(k, *wish, seen, rude=rude == 0) for k, wish in wishes.items()]
        if (
            rude
            and "n" not in seen
            and "n" not in wishes
            and any(k.startswith("n.") for k in wishes)
        ):
            ops.append(Op("put", "n", "namespace", 1))
        self.submit(name, expected, ops, dry=dry == 0)

    def submit(self, name: str, expected: str, ops: list[Op], *, dry: bool) -> None:
        head = self.naive.branches[name]
        seen = self.naive.states[expected]
        verdict = self.naive.judge_commit(seen, self.naive.states[head], ops)
        operations = [o for op in ops for o in self.operations(op, seen)]

        def submit() -> Any:
            return self.repository.commit(
                name, operations, CommitMeta("work"), expected_hash=expected, dry_run=dry
            )

        if verdict.conflicts or verdict.namespace_trouble:
            refused = self.refuses(ReferenceConflict, submit)
            if not verdict.namespace_trouble:
                assert set(types_and_keys(refused.value.conflicts)) == verdict.conflicts
            return
        result = submit()
        assert result.applied is not dry
        if dry:
            return
        ids = {k.plain: v for k, v in result.added.items()}
        edits = {
            k: t and (t._replace(id=ids.pop(k)) if t.id == "new" else t)
            for k, t in verdict.edits.items()
        }
        assert ids == {}
        self.moved(name, result.reference.hash, [head], edits)

    @staticmethod
    def op(name: str, word: str, number: int, other: bool, seen: State, *, rude: bool) -> Op:
        if name not in seen and (word == "again" or not rude):
            word = "put"
        if name == "n" and (
            word == "again"
            or (word == "delete" and not rude and any(k.startswith("n.") for k in seen))
        ):
            word = "put"
        kind = (
            "namespace"
            if name == "n"
            else "view"
            if other and (word == "again" or name not in seen)
            else "table"
        )
        return Op(word, name, seen[name].kind if word == "put" and name in seen else kind, number)

    @staticmethod
    def operations(op: Op, seen: State) -> list[Operation]:
        there = seen.get(op.key)
        wanted = Thing("", op.kind, op.number)
        match op.word:
            case "put":
                return [put(op.key, content(op.key, wanted, there.id if there else None))]
            case "delete":
                return [delete(op.key)]
            case "unchanged":
                return [unchanged(op.key)]
        return [delete(op.key), put(op.key, content(op.key, wanted, None))]

    def moved(
        self, name: str, hash_: str, parents: list[str], edits: dict[str, Thing | None]
    ) -> None:
        self.naive.add(hash_, parents, apply(self.naive.states[parents[0]], edits), edits)
        self.naive.branches[name] = hash_

    # -- merges --

    @rule(source=PICK, into=PICK, back=st.integers(0, 2), behavior=BEHAVIORS, dry=st.integers(0, 9))
    def merge(self, source: int, into: int, back: int, behavior: str, dry: int) -> None:
        self.merge_one(source, into, back, behavior, dry)

    @rule(into=PICK, ours=WISHES, theirs=WISHES, behavior=BEHAVIORS, again=st.booleans())
    def diverge_and_merge(
        self, into: int, ours: Wishes, theirs: Wishes, behavior: str, again: bool
    ) -> None:
        names = sorted(self.naive.branches)
        onto, from_ = pick(names, into), pick(names, into + 1)
        self.commit_one(onto, ours, 0, 1, 1)
        self.commit_one(from_, theirs, 0, 1, 1)
        everything = sorted(self.naive.branches | self.naive.tags)
        self.merge_one(everything.index(from_), into, 0, behavior, 1)
        if again:
            self.merge_one(everything.index(onto), into + 1, 0, "NORMAL", 1)

    def merge_one(self, source: int, into: int, back: int, behavior: str, dry: int) -> None:
        names = sorted(self.naive.branches | self.naive.tags)
        from_ = pick(names, source)
        line = [*self.naive.line((self.naive.branches | self.naive.tags)[from_]), EMPTY]
        commit = line[min(back, len(line) - 1)]
        onto = pick(sorted(self.naive.branches), into)
        head = self.naive.branches[onto]
        options = MergeOptions(
            per_key=True, default_behavior=MergeBehavior(behavior), dry_run=dry == 0
        )

        def submit() -> MergeResult:
            return self.repository.merge(onto, f"{from_}@{commit}", options)

        if commit == EMPTY and head != EMPTY:
            self.nothing_done(submit(), head)
            return
        bases = self.naive.best_bases(head, commit)
        if bases == {EMPTY}:
            self.refuses(CommitNotFound, submit)
            return
        base = self.repository.merge_base(onto, f"@{commit}")
        assert base in bases
        if base == commit:
            self.nothing_done(submit(), head)
            return
        verdict = self.naive.judge_merge(
            self.naive.states[base], self.naive.states[commit], self.naive.states[head], behavior
        )
        result = self.decide(submit, verdict, dry=dry == 0)
        if result is None:
            return
        assert result.common_ancestor == base
        if result.applied:
            assert result.resultant_hash is not None
            self.moved(onto, result.resultant_hash, [head, commit], verdict.edits)

    def nothing_done(self, result: MergeResult, head: str) -> None:
        assert (result.applied, result.successful, result.resultant_hash) == (False, True, head)

    def decide(
        self, submit: Callable[[], MergeResult], verdict: Verdict, *, dry: bool
    ) -> MergeResult | None:
        """Returns the answer, or None for an expected refusal."""
        if verdict.namespace_trouble:
            refused = self.refuses(ReferenceConflict, submit)
            assert not isinstance(refused.value, MergeConflict)
            return None
        if verdict.conflicts:
            refused = self.refuses(MergeConflict, submit)
            assert set(types_and_keys(refused.value.result.conflicts)) == verdict.conflicts
            return None
        before = self.heads()
        result = submit()
        assert result.successful
        if dry or not verdict.edits:
            assert not result.applied
        if not result.applied:
            assert self.heads() == before
        assert {d.key.plain for d in result.details} >= verdict.details
        return result

    @precondition(lambda self: len(self.naive.states) > 2)
    @rule(start=PICK, length=st.integers(1, 3), into=PICK, behavior=BEHAVIORS)
    def transplant(self, start: int, length: int, into: int, behavior: str) -> None:
        head = pick([h for h in self.naive.states if h != EMPTY], start)
        commits = self.naive.line(head)[:length][::-1]
        onto = pick(sorted(self.naive.branches), into)
        at = self.naive.branches[onto]
        state = self.naive.states[at]
        total, trouble = Verdict(), False
        for hash_ in commits:
            base, after = self.naive.states[self.naive.parents[hash_][0]], self.naive.states[hash_]
            verdict = self.naive.judge_merge(
                base, after, state, behavior, set(self.naive.ops[hash_]), transplant=True
            )
            total.conflicts |= {
                c for c in verdict.conflicts if c[1] not in {k for _, k in total.conflicts}
            }
            trouble = trouble or verdict.namespace_trouble
            in_conflict = {k for _, k in verdict.conflicts}
            edits = {k: t for k, t in verdict.edits.items() if k not in in_conflict}
            state = apply(state, edits)
        before = self.heads()

        def submit() -> MergeResult:
            return self.repository.transplant(
                onto,
                commits,
                MergeOptions(per_key=True, default_behavior=MergeBehavior(behavior)),
            )

        if trouble:
            self.refuses(ReferenceConflict, submit)
        elif total.conflicts:
            refused = self.refuses(MergeConflict, submit)
            assert {k for _, k in types_and_keys(refused.value.result.conflicts)} == {
                k for _, k in total.conflicts
            }
        else:
            result = submit()
            assert result.successful
            if not result.applied:
                assert self.heads() == before
                return
            self.learn_transplanted(onto, at)
            assert self.naive.states[self.naive.branches[onto]] == state

    def learn_transplanted(self, into: str, at: str) -> None:
        """Copies the commits of a transplant from the log; the invariant compares the states."""
        for entry in reversed(list(self.repository.log(into))):
            if entry.hash in self.naive.states:
                continue
            operations = self.repository.commit_at(entry.hash).operations or ()
            edits = {
                o.key.plain: thing(o.content) if hasattr(o, "content") else None for o in operations
            }
            self.naive.add(entry.hash, [at], apply(self.naive.states[at], edits), edits)
            at = entry.hash
        self.naive.branches[into] = at

    # -- references --

    @rule(
        action=st.sampled_from(["create", "create", "assign", "delete", "rename"]),
        name=PICK,
        new=st.sampled_from(NAMES),
        at=PICK,
        odd=st.integers(0, 4),
    )
    def move_a_reference(self, action: str, name: int, new: str, at: int, odd: int) -> None:
        everything = self.naive.branches | self.naive.tags
        chosen = pick(sorted(everything), name)
        holder = self.naive.branches if chosen in self.naive.branches else self.naive.tags
        hash_ = pick(list(self.naive.states), at)
        match action:
            case "create":
                self.create_reference(
                    ReferenceType.TAG if odd == 0 else ReferenceType.BRANCH, new, hash_
                )
            case "assign" if odd == 0:
                self.refuses(
                    ReferenceMoved,
                    lambda: self.repository.assign_reference(chosen, hash_, expected_hash=NOBODY),
                )
            case "assign":
                self.repository.assign_reference(chosen, hash_, expected_hash=holder[chosen])
                holder[chosen] = hash_
            case "delete" if chosen != "main":
                self.repository.delete_reference(chosen, expected_hash=holder.pop(chosen))
            case "rename" if chosen != "main" and new not in everything:
                self.repository.rename_reference(chosen, new, expected_hash=holder[chosen])
                holder[new] = holder.pop(chosen)

    def create_reference(self, kind: ReferenceType, name: str, hash_: str) -> None:
        if name in self.naive.branches or name in self.naive.tags:
            self.refuses(AlreadyExists, lambda: self.repository.create_reference(kind, name, hash_))
            return
        self.repository.create_reference(kind, name, hash_)
        (self.naive.branches if kind == ReferenceType.BRANCH else self.naive.tags)[name] = hash_

    # -- reading --

    @rule(a=PICK, b=PICK, back=st.integers(1, 12), name=st.sampled_from(KEYS))
    def read(self, a: int, b: int, back: int, name: str) -> None:
        left, right = (pick(list(self.naive.states), n) for n in (a, b))
        self.diff(left, right)
        self.history(left, back)
        assert self.repository.is_ancestor(f"@{left}", f"@{right}") == (
            left in self.naive.ancestors(right)
        )
        assert self.repository.merge_base(f"@{left}", f"@{right}") in self.naive.best_bases(
            left, right
        )
        newest = next((h for h in self.naive.line(left) if name in self.naive.ops[h]), None)
        meta = self.repository.last_change(f"@{left}", key(name))
        assert (meta.hash if meta else None) == newest

    def diff(self, left: str, right: str) -> None:
        before, after = self.naive.states[left], self.naive.states[right]
        found = [
            (e.key.plain, e.before and thing(e.before), e.after and thing(e.after))
            for e in self.repository.diff(f"@{left}", f"@{right}")
        ]
        keys = sorted(before.keys() | after.keys(), key=lambda k: k.split("."))
        assert found == [
            (k, before.get(k), after.get(k)) for k in keys if before.get(k) != after.get(k)
        ]

    def history(self, head: str, back: int) -> None:
        line = self.naive.line(head)
        assert [e.hash for e in self.repository.log(f"@{head}")] == line
        assert {
            e.hash for e in self.repository.log(f"@{head}", all_parents=True)
        } == self.naive.ancestors(head) - {EMPTY}
        assert self.repository.resolve(f"@{head}~{back}").hash == (
            line[back] if back < len(line) else EMPTY
        )

    @invariant()
    def every_reference_is_where_it_should_be_and_shows_its_state(self) -> None:
        assert self.heads() == self.naive.branches | self.naive.tags
        for name, hash_ in (self.naive.branches | self.naive.tags).items():
            assert self.state(name) == self.naive.states[hash_]


class SqliteMachine(Machine):
    """The same on a file that is closed and opened again."""

    def open(self) -> Repository:
        self.folder = Path(tempfile.mkdtemp(prefix="nessie-machine-"))
        return create(f"{self.folder}/store.sqlite", **self.fixed)

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            shutil.rmtree(self.folder)

    @rule()
    def reopen(self) -> None:
        self.repository.close()
        self.repository = connect(f"{self.folder}/store.sqlite", **self.fixed)


moderate = settings(deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
TestMachineInMemory = Machine.TestCase
TestMachineInMemory.settings = settings(moderate, max_examples=120, stateful_step_count=30)
TestMachineOnSqlite = SqliteMachine.TestCase
TestMachineOnSqlite.settings = settings(moderate, max_examples=15, stateful_step_count=25)
