"""The simplest catalog: every commit is a dictionary, and every question is answered by a
walk.

The state machine compares real repositories with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tests.repository.vocabulary import EMPTY


class Thing(NamedTuple):
    """A content in the model: its content id, type and number."""

    id: str
    kind: str
    number: int


State = dict[str, Thing]


class Op(NamedTuple):
    """`put`, `delete`, `unchanged`, or `again` (deleted and created in one commit)."""

    word: str
    key: str
    kind: str = "table"
    number: int = 0


@dataclass
class Verdict:
    """The expected result of a commit or merge."""

    conflicts: set[tuple[str, str]] = field(default_factory=set)
    namespace_trouble: bool = False
    edits: dict[str, Thing | None] = field(default_factory=dict)
    details: set[str] = field(default_factory=set)


def parent_of(key: str) -> str | None:
    return key.rpartition(".")[0] or None


def difference(
    old: Thing | None, new: Thing | None, *, gone: str = "KEY_DOES_NOT_EXIST"
) -> str | None:
    """Returns the conflict type of a key whose expected and current contents differ."""
    if old == new:
        return None
    if new is None:
        return gone
    if old is None:
        return "KEY_EXISTS"
    if old.kind != new.kind:
        return "PAYLOAD_DIFFERS"
    return "CONTENT_ID_DIFFERS" if old.id != new.id else "VALUE_DIFFERS"


def apply(state: State, edits: dict[str, Thing | None]) -> State:
    merged = {**state, **edits}
    return {key: thing for key, thing in merged.items() if thing is not None}


def namespaces_wrong(before: State, edits: dict[str, Thing | None], created: set[str]) -> bool:
    """Returns whether edits would leave a new key without its namespace, or delete a namespace
    that contains keys."""
    after = apply(before, edits)
    for key in created:
        parent = parent_of(key)
        if parent and (parent not in after or after[parent].kind != "namespace"):
            return True
    deleted = [
        k
        for k, thing in edits.items()
        if thing is None and k in before and before[k].kind == "namespace"
    ]
    return any(other.startswith(f"{k}.") for k in deleted for other in after)


class Naive:
    """Commits by hash, each with its whole state and its parents; branches and tags by name."""

    def __init__(self) -> None:
        self.states: dict[str, State] = {EMPTY: {}}
        self.parents: dict[str, list[str]] = {EMPTY: []}
        self.ops: dict[str, dict[str, Thing | None]] = {EMPTY: {}}
        self.branches: dict[str, str] = {"main": EMPTY}
        self.tags: dict[str, str] = {}
        self.next_id = 0

    # -- history --

    def line(self, hash_: str) -> list[str]:
        """Returns the first parents, newest first, without the empty history."""
        found = []
        while hash_ != EMPTY:
            found.append(hash_)
            hash_ = self.parents[hash_][0]
        return found

    def ancestors(self, hash_: str) -> set[str]:
        found, waiting = {hash_}, [hash_]
        while waiting:
            for parent in self.parents[waiting.pop()]:
                if parent not in found:
                    found.add(parent)
                    waiting.append(parent)
        return found

    def best_bases(self, a: str, b: str) -> set[str]:
        """Returns common ancestors that are not ancestors of another common one."""
        common = self.ancestors(a) & self.ancestors(b)
        return {
            c
            for c in common
            if not any(c != other and c in self.ancestors(other) for other in common)
        }

    def add(
        self, hash_: str, parents: list[str], state: State, ops: dict[str, Thing | None]
    ) -> None:
        assert hash_ not in self.states
        self.states[hash_], self.parents[hash_], self.ops[hash_] = state, parents, ops

    # -- rules --

    def judge_commit(self, expected: State, head: State, ops: list[Op]) -> Verdict:
        verdict = Verdict()
        created = set()
        for op in ops:
            before, now = expected.get(op.key), head.get(op.key)
            if op.word == "put" and before is None:
                self._conflict(verdict, op.key, "KEY_EXISTS" if now else None)
                created.add(op.key)
                verdict.edits[op.key] = Thing("new", op.kind, op.number)
                continue
            missing = "PAYLOAD_DIFFERS" if now else "KEY_DOES_NOT_EXIST"
            self._conflict(verdict, op.key, missing if before is None else difference(before, now))
            if op.word == "put":
                assert before is not None
                verdict.edits[op.key] = Thing(before.id, before.kind, op.number)
            elif op.word == "delete":
                verdict.edits[op.key] = None
            elif op.word == "again":
                created.add(op.key)
                verdict.edits[op.key] = Thing("new", op.kind, op.number)
        again = {op.key for op in ops if op.word == "again"}
        verdict.namespace_trouble = namespaces_wrong(
            head, verdict.edits, created
        ) or self._made_again_around_children(head, verdict.edits, again)
        return verdict

    @staticmethod
    def _made_again_around_children(
        head: State, edits: dict[str, Thing | None], again: set[str]
    ) -> bool:
        """Returns whether a namespace is deleted and created while a key below it stays."""
        gone = again | {key for key, thing in edits.items() if thing is None}
        spaces = [key for key in again if key in head and head[key].kind == "namespace"]
        return any(
            key.startswith(f"{space}.") and key not in gone for space in spaces for key in head
        )

    @staticmethod
    def _conflict(verdict: Verdict, key: str, type_: str | None) -> None:
        if type_:
            verdict.conflicts.add((type_, key))

    def judge_merge(
        self,
        base: State,
        source: State,
        target: State,
        behavior: str,
        keys: set[str] | None = None,
        *,
        transplant: bool = False,
    ) -> Verdict:
        """Merges every key that the source changed (or, for a transplant, that its commit
        names)."""
        verdict = Verdict()
        created = set()
        dropped: dict[str, Thing | None] = {}
        changed = (
            {k for k in base.keys() | source.keys() if base.get(k) != source.get(k)}
            if keys is None
            else keys
        )
        for key in changed:
            before, after, there = base.get(key), source.get(key), target.get(key)
            if transplant and before is None and after is None:
                # The commit deleted a key that was absent.
                continue
            conflict = difference(before, there)
            if transplant and before and after and before.id != after.id:
                # A key that was deleted and created again is handled as an update with another
                # content id.
                conflict = (
                    difference(Thing(after.id, after.kind, before.number), there) or "VALUE_DIFFERS"
                )
            if before is None and after is not None and after == there:
                continue
            if behavior == "NORMAL" and not transplant and after == there != before:
                continue
            spaces = (
                before is None
                and after is not None
                and there is not None
                and after.kind == there.kind == "namespace"
            )
            conflict = None if spaces else conflict
            if behavior == "DROP" and (conflict or not transplant):
                verdict.details.add(key)
                dropped[key] = after
                continue
            if not spaces:
                verdict.details.add(key)
            if conflict and behavior != "FORCE":
                verdict.conflicts.add((conflict, key))
            verdict.edits[key] = after
            if after is not None and (there is None or there.id != after.id):
                created.add(key)
        verdict.namespace_trouble = namespaces_wrong(target, verdict.edits, created)
        if transplant:
            # Dropped changes are checked as if they were applied.
            new = {key for key, thing in dropped.items() if thing and key not in target}
            verdict.namespace_trouble |= namespaces_wrong(
                target, verdict.edits | dropped, created | new
            )
        return verdict
