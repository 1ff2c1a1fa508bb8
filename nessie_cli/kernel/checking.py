"""Verification of a whole store: ids, links and derived fields of every object.

Memory grows with the number of objects (some dozens of bytes each), not with their size.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from nessie_cli.kernel import tree
from nessie_cli.kernel.commits import is_deletion, operations_of, root_of, terms_of
from nessie_cli.kernel.edit import edit
from nessie_cli.kernel.forms import (
    CHILD_SIZE,
    NO_COMMIT,
    RECORD_SIZE,
    UNDECODABLE,
    Id,
    Kind,
    Node,
    StoredCommit,
    decode_commit,
    decode_node,
    decode_value,
    jump_height,
    object_id,
    value_id_of,
)
from nessie_cli.kernel.objects import Cache, Fetch, Objects
from nessie_cli.model import Problem, ProblemKind
from nessie_cli.model.progress import Progress, with_progress

Scanned = tuple[Id, int, bytes | str]
"""An object's id, kind and raw bytes, or the reason (text) why the bytes cannot be read."""

Scan = Callable[[], Iterable[Scanned]]


class ReflogNumber(Struct, frozen=True):
    """An entry of the reflog: its number, and the name of its reference."""

    number: int
    name: str


class _CommitFacts(Struct):
    """The fields of a commit that the checks of other commits need."""

    height: int
    generation: int
    time: int
    jump: Id
    first_parent: Id


class _NodeFacts(Struct):
    """The fields of a node that the check of its parent needs."""

    level: int
    last: bytes
    count: int


class _ScannedFacts:
    """The objects that the first pass over the store finds."""

    def __init__(self) -> None:
        self.values: set[Id] = set()
        self.nodes: dict[Id, _NodeFacts] = {tree.EMPTY: _NodeFacts(0, b"", 0)}
        self.commits: dict[Id, _CommitFacts] = {
            NO_COMMIT: _CommitFacts(0, 0, -1, NO_COMMIT, NO_COMMIT)
        }
        self.bad: set[Id] = set()


def check(
    scan: Scan,
    fetch: Fetch,
    indexed: Container[bytes] | None,
    references: Sequence[tuple[str, Id]],
    positions: Mapping[Id, ReflogNumber] = {},
    *,
    progress: Progress | None = None,
    count: int = 0,
) -> Iterator[Problem]:
    """Yields every problem of the objects from `scan` and of the references (name, commit).

    `indexed` contains the terms of the commit index, each followed by the id of its commit (None:
    not verified). `positions` are the commits to which references can be restored, each with an
    entry of the reflog.

    Computes the state of every commit again from its first parent's state and its operations: O(log
    keys) for each operation in history. Visits each of the `count` objects twice, and calls
    `progress` with the number of visits.
    """
    facts = _ScannedFacts()
    cache = Cache()
    for id_, kind, data in with_progress(scan(), progress, 2 * count):
        if problem := _register(facts, id_, kind, data):
            facts.bad.add(id_)
            yield problem
    for id_, kind, data in with_progress(scan(), progress, 2 * count, count):
        if id_ in facts.bad or isinstance(data, str):
            continue
        if kind == Kind.NODE:
            yield from _check_node(facts, id_, decode_node(data))
        elif kind == Kind.COMMIT:
            commit = decode_commit(data)
            problems = list(_check_commit(facts, id_, commit))
            yield from problems or _check_state(Objects(fetch, cache), id_, commit, indexed)
    yield from _check_heads(facts, references, positions)


def _check_heads(
    facts: _ScannedFacts, references: Sequence[tuple[str, Id]], positions: Mapping[Id, ReflogNumber]
) -> Iterator[Problem]:
    for name, target in references:
        if target not in facts.commits:
            yield Problem(
                ProblemKind.BAD_REFERENCE,
                name,
                f"reference '{name}' points at {_short(target)}, which is not a commit here",
            )
    for position, entry in positions.items():
        if position not in facts.commits:
            yield Problem(
                ProblemKind.MISSING,
                entry.name,
                f"entry {entry.number} of the reflog of '{entry.name}' leads to"
                f" {_short(position)}, which is not a commit here",
            )


def _short(id_: Id) -> str:
    return id_.hex()[:16]


def _register(facts: _ScannedFacts, id_: Id, kind: int, data: bytes | str) -> Problem | None:
    """Records an object for the checks of others, or returns what is wrong with it alone."""
    try:
        name = Kind(kind).name.lower()
    except ValueError:
        return Problem(
            ProblemKind.DAMAGED, id_.hex(), f"object {_short(id_)} is of the unknown kind {kind}"
        )
    if isinstance(data, str):
        return Problem(
            ProblemKind.DAMAGED, id_.hex(), f"{name} {_short(id_)} cannot be read: {data}"
        )
    if object_id(Kind(kind), data) != id_:
        return Problem(
            ProblemKind.DAMAGED,
            id_.hex(),
            f"{name} {_short(id_)} is damaged: its bytes do not have this id",
        )
    try:
        _remember(facts, id_, Kind(kind), data)
    except UNDECODABLE as fault:
        return Problem(
            ProblemKind.WRONG_SHAPE,
            id_.hex(),
            f"{name} {_short(id_)} cannot be decoded: {fault}",
        )
    return None


def _remember(facts: _ScannedFacts, id_: Id, kind: Kind, data: bytes) -> None:
    if kind is Kind.VALUE:
        decode_value(data, None)
        facts.values.add(id_)
    elif kind is Kind.NODE:
        node = decode_node(data)
        if len(node.payload) != (CHILD_SIZE if node.level else RECORD_SIZE) * len(node.keys):
            raise ValueError("keys and payload disagree")
        facts.nodes[id_] = _NodeFacts(node.level, node.keys[-1], node.count())
    else:
        commit = decode_commit(data)
        facts.commits[id_] = _CommitFacts(
            commit.height, commit.generation, commit.time, commit.jump, commit.parents[0]
        )


def _check_node(facts: _ScannedFacts, id_: Id, node: Node) -> Iterator[Problem]:
    def wrong(text: str, kind: ProblemKind = ProblemKind.WRONG_SHAPE) -> Problem:
        return Problem(kind, id_.hex(), f"node {_short(id_)}: {text}")

    if any(a >= b for a, b in zip(node.keys, node.keys[1:], strict=False)):
        yield wrong("the keys are not in order")
    if node.level == 0:
        for index, key in enumerate(node.keys):
            if value_id_of(node.slice(index)) not in facts.values:
                yield wrong(f"the value of key {key!r} is missing", ProblemKind.MISSING)
        return
    for index, child in enumerate(node.children()):
        child_facts = facts.nodes.get(child)
        if child_facts is None:
            yield wrong(f"child {_short(child)} is missing", ProblemKind.MISSING)
        elif (child_facts.level, child_facts.last, child_facts.count) != (
            node.level - 1,
            node.keys[index],
            node.count_of(index),
        ):
            yield wrong(
                f"level, last key or count of child {_short(child)} are wrong",
                ProblemKind.BROKEN_LINK,
            )


def _check_commit(facts: _ScannedFacts, id_: Id, commit: StoredCommit) -> Iterator[Problem]:
    def wrong(text: str, kind: ProblemKind = ProblemKind.BROKEN_LINK) -> Problem:
        return Problem(kind, id_.hex(), f"commit {_short(id_)}: {text}")

    missing = [link for link in (*commit.parents, commit.jump) if link not in facts.commits]
    for link in missing:
        yield wrong(f"ancestor {_short(link)} is missing", ProblemKind.MISSING)
    if commit.root not in facts.nodes:
        yield wrong(f"root {_short(commit.root)} is missing", ProblemKind.MISSING)
    yield from _check_operations(facts, commit, wrong)
    if missing:
        return
    parents = [facts.commits[parent] for parent in commit.parents]
    if commit.height != parents[0].height + 1 or commit.generation != 1 + max(
        p.generation for p in parents
    ):
        yield wrong("height or generation do not match the parents")
    if commit.time <= max(p.time for p in parents):
        yield wrong("the commit time is not later than those of its parents")
    if commit.jump != _expected_jump(facts, commit):
        yield wrong("the jump pointer leads to the wrong ancestor")


def _check_state(
    objects: Objects, id_: Id, commit: StoredCommit, indexed: Container[bytes] | None
) -> Iterator[Problem]:
    """Checks that a commit's state follows from its first parent, and that the index finds it."""
    try:
        edits = {
            key: None if is_deletion(record) else record
            for key, record in operations_of(objects, commit)
        }
        if edit(objects, root_of(objects, commit.parents[0]), edits) != commit.root:
            yield Problem(
                ProblemKind.BROKEN_LINK,
                id_.hex(),
                f"commit {_short(id_)}: the state is not its parent's with its operations applied",
            )
        terms = terms_of(edits, commit.parents)
        if indexed is not None and any(term + id_ not in indexed for term in terms):
            yield Problem(
                ProblemKind.MISSING,
                id_.hex(),
                f"commit {_short(id_)}: the index of keys and merges does not contain it",
            )
    except UNDECODABLE as fault:
        # Nodes of the wrong shape are problems of their own.
        yield Problem(
            ProblemKind.MISSING,
            id_.hex(),
            f"commit {_short(id_)}: the state cannot be read: {fault}",
        )


def _check_operations(
    facts: _ScannedFacts, commit: StoredCommit, wrong: Callable[[str, ProblemKind], Problem]
) -> Iterator[Problem]:
    stored = commit.operations
    if len(stored) == len(NO_COMMIT):
        if stored not in facts.nodes:
            yield wrong(f"list of operations {_short(stored)} is missing", ProblemKind.MISSING)
        elif facts.nodes[stored].count != commit.operation_count:
            yield wrong("the number of operations is wrong", ProblemKind.BROKEN_LINK)
    elif stored:
        try:
            node = decode_node(stored)
        except UNDECODABLE:
            yield wrong("the list of operations cannot be decoded", ProblemKind.WRONG_SHAPE)
            return
        if len(node.keys) != commit.operation_count:
            yield wrong("the number of operations is wrong", ProblemKind.BROKEN_LINK)
        for index in range(len(node.keys)):
            if value_id_of(node.slice(index)) not in facts.values:
                yield wrong(
                    f"the value of the operation on {node.keys[index]!r} is missing",
                    ProblemKind.MISSING,
                )


def _expected_jump(facts: _ScannedFacts, commit: StoredCommit) -> Id | None:
    """Returns the correct jump pointer of a commit, given those of its ancestors."""
    parent = facts.commits[commit.parents[0]]
    if jump_height(commit.height) == parent.height:
        return commit.parents[0]
    over = facts.commits.get(parent.jump)
    return over.jump if over else None
