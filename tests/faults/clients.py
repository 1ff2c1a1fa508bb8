"""Random clients of one catalog, through several repositories, that record a history.

Registers of the history are the references, and each counter on `main`. A counter is a table. A
commit reads its snapshot id, increments it and writes it back under the same content id.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from secrets import token_hex

from nessie_cli.errors import NessieError, OutcomeUnknown, ReferenceNotFound, StoreUnavailable
from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    IcebergTable,
    LogEntry,
    MergeResult,
    Operation,
    Put,
    Reference,
    ReferenceType,
    ReflogEntry,
)
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import (
    AssignReference,
    Change,
    Commit,
    CreateReference,
    DeleteReference,
    Merge,
    MergeOptions,
)
from tests.history import History, Row

BRANCHES = ("main", "dev", "test")
COUNTERS = tuple(ContentKey((name,)) for name in "abcd")
MOVED = (*BRANCHES[1:], "new")
"""References that are assigned, created and deleted. `main` only moves forward."""


def counter(key: ContentKey) -> str:
    """Returns the register of a counter on `main`."""
    return f"main:{key}"


class Client:
    """Performs one operation after another, each through a random repository."""

    def __init__(self, repositories: Sequence[Repository], history: History, seed: str) -> None:
        self._repositories = repositories
        self._history = history
        self._random = Random(seed)
        self._known: list[str] = []
        self.away = 0
        """The number of calls that found a server unavailable."""
        self.resolved = 0
        """The number of unknown outcomes that the request id resolved."""

    def work(self, until: float) -> None:
        verbs = [self._commit] * 5 + [
            self._merge,
            self._read,
            self._list,
            self._read_counters,
            self._assign,
            self._create,
            self._delete,
        ]
        while time.monotonic() < until:
            try:
                self._random.choice(verbs)()
            except StoreUnavailable:
                # A failed read has no result; writes are recorded where they are made.
                self.away += 1
                time.sleep(0.02)

    @property
    def _repository(self) -> Repository:
        return self._random.choice(self._repositories)

    # -- reading --

    def _head(self, name: str) -> str | None:
        repository = self._repository

        def look() -> str | None:
            try:
                return repository.reference(name).hash
            except ReferenceNotFound:
                return None

        found = self._history.read(name, look)
        if found is not None:
            self._known = [*self._known[-20:], found]
        return found

    def _read(self) -> None:
        self._head(self._random.choice((*BRANCHES, *MOVED)))

    def _list(self) -> None:
        called = time.monotonic()
        found = {one.name: one.hash for one in self._repository.references()}
        for name in {*BRANCHES, *MOVED}:
            self._history.add(name, called, found.get(name))

    def _read_counters(self) -> None:
        called = time.monotonic()
        found = self._repository.contents("main", COUNTERS)
        for key in COUNTERS:
            self._history.add(counter(key), called, number_of(found[key]))

    # -- writing --

    def _commit(self) -> None:
        branch = self._random.choice(("main", *BRANCHES))
        head = self._head(branch)
        if head is None:
            return
        keys = self._random.sample(COUNTERS, self._random.choice((1, 1, 2)))
        read = self._repository.contents(f"@{head}", keys)
        token = token_hex(8)
        operations: list[Operation] = []
        for key in keys:
            old = read[key]
            new = IcebergTable(
                metadata_location=f"{token} {key}", snapshot_id=number_of(old) + 1, id=old.id
            )
            operations.append(Put(key, new, old))
        # Without an expected hash, only the expected contents prevent lost updates.
        expected = head if self._random.random() < 0.5 else None
        called = time.monotonic()
        if (
            self._write(branch, token, Commit(branch, operations, CommitMeta(token), expected))
            is not None
            and branch == "main"
        ):
            for key in keys:
                self._history.add(counter(key), called, number_of(read[key]) + 1, write=token)

    def _merge(self) -> None:
        into, source = self._random.sample(BRANCHES, 2)
        token = token_hex(8)
        if (at := self._head(source)) is not None:
            self._write(into, token, Merge(into, f"{source}@{at}", MergeOptions(CommitMeta(token))))

    def _assign(self) -> None:
        name = self._random.choice(MOVED)
        at = self._head(name)
        if at is None or not self._known:
            return
        self._write(name, token_hex(8), AssignReference(name, self._random.choice(self._known), at))

    def _create(self) -> None:
        if self._known:
            name = self._random.choice(MOVED)
            self._write(
                name,
                token_hex(8),
                CreateReference(ReferenceType.BRANCH, name, self._random.choice(self._known)),
            )

    def _delete(self) -> None:
        # Rarely, so that most references exist.
        name = self._random.choice((*MOVED, "new", "new"))
        if (at := self._head(name)) is not None:
            self._write(name, token_hex(8), DeleteReference(name, at))

    def _write(self, name: str, id_: str, change: Change) -> object | None:
        """Makes a change and records it.

        Returns the answer, or None if it was refused or is unknown.
        """
        called = time.monotonic()
        try:
            answer = self._repository.submit(change, request_id=id_)
        except OutcomeUnknown:
            answer = self._resolve(id_, change)
            if answer is None:
                self._history.unknown.add(id_)
                return None
        except NessieError as refused:
            self._history.refused.add(id_)
            if isinstance(refused, StoreUnavailable):
                raise
            return None
        if isinstance(answer, MergeResult) and not answer.applied:
            self._history.refused.add(id_)
            return None
        self._history.add(name, called, _state(change, answer), write=id_)
        return answer

    def _resolve(self, id_: str, change: Change) -> object | None:
        """Submits the change again under its id, through any repository.

        Only success is certain: after a refusal, or a merge without changes, the first submission
        may still arrive.
        """
        for _ in range(5):
            with suppress(StoreUnavailable):
                try:
                    answer = self._repository.submit(change, request_id=id_)
                except NessieError as refused:
                    if isinstance(refused, StoreUnavailable):
                        raise
                    return None
                if isinstance(answer, MergeResult) and not answer.applied:
                    return None
                self.resolved += 1
                return answer
            time.sleep(0.1)
        return None


def number_of(content: object) -> int:
    """Returns the state of a counter."""
    assert isinstance(content, IcebergTable)
    return content.snapshot_id


def _state(change: Change, answer: object) -> str | None:
    """Returns the hash of a reference after a change, None if it was deleted."""
    if isinstance(change, DeleteReference):
        return None
    if isinstance(answer, MergeResult):
        return answer.resultant_hash
    found = getattr(answer, "reference", answer)
    assert isinstance(found, Reference)
    return found.hash


def begin(repository: Repository, history: History) -> None:
    """Creates the branches and counters, before any client runs."""
    for made in repository.reflog():
        history.add(made.reference, 0, made.after, write=made.request_id)
    called = time.monotonic()
    operations = [
        Put(key, IcebergTable(metadata_location=f"0 {key}", snapshot_id=0)) for key in COUNTERS
    ]
    head = repository.commit(
        "main", operations, CommitMeta("begin"), request_id="begin"
    ).reference.hash
    history.add("main", called, head, write="begin")
    for key in COUNTERS:
        history.add(counter(key), called, 0, write="begin")
    for name in BRANCHES[1:]:
        called = time.monotonic()
        repository.create_reference(ReferenceType.BRANCH, name, head, request_id=f"begin {name}")
        history.add(name, called, head, write=f"begin {name}")


def check(repository: Repository, history: History) -> int:
    """Compares a history with the final state; returns the number of checked operations."""
    reflog = list(repository.reflog())[::-1]
    done = {entry.request_id for entry in reflog}
    for id_ in history.unknown:
        assert (repository.find_request(id_) is not None) == (id_ in done)
    checked = 0
    for name in {*BRANCHES, *MOVED}:
        moves = [entry for entry in reflog if entry.reference == name]
        assert [move.before for move in moves] == [None, *(move.after for move in moves)][:-1], (
            "an update was lost"
        )
        checked += history.check(
            name, [Row("", None), *(Row(move.request_id, move.after) for move in moves)]
        )
    log = list(repository.log("main", operations=True))[::-1]
    made = [
        entry.request_id
        for entry in reflog
        if entry.reference == "main" and entry.operation in ("commit", "merge")
    ]
    assert [entry.meta.message for entry in log] == made, (
        "the log of main has each of its writes once, in their order"
    )
    for key in COUNTERS:
        checked += history.check(counter(key), [Row("", None), *_counts(log, key)])
    for entry in reflog:
        if entry.operation == "commit" and entry.request_id != "begin":
            _check_increments(repository, entry)
    assert list(repository.check()) == []
    return checked


def _counts(log: Sequence[LogEntry], key: ContentKey) -> list[Row]:
    """Returns the log of a counter on `main`."""
    puts = [
        (entry, one)
        for entry in log
        for one in entry.operations or ()
        if isinstance(one, Put) and one.key == key
    ]
    rows = [Row(entry.meta.message, number_of(one.content)) for entry, one in puts]
    states = [number_of(one.content) for _, one in puts]
    assert states == sorted(set(states)), "a counter went back"
    return rows


def _check_increments(repository: Repository, move: ReflogEntry) -> None:
    """Checks that a commit is based on the state before it, and increments each of its counters."""
    commit = next(repository.log(f"@{move.after}", operations=True))
    assert (commit.parent, commit.meta.message) == (move.before, move.request_id)
    assert commit.operations
    before = repository.contents(f"@{move.before}", COUNTERS)
    for one in commit.operations:
        assert isinstance(one, Put)
        old = before[one.key]
        assert (number_of(one.content), one.content.id) == (number_of(old) + 1, old.id), (
            "an update was lost"
        )
