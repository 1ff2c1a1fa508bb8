"""Random groups of plans with an interfering writer, compared with a naive model.

Every answer must be the model's: for a write in commit order, for a refusal on the state that its
plan read. Refused or stale drafts leave nothing behind, and no commit depends on them.
"""

from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from nessie_cli.errors import CommitNotFound
from nessie_cli.kernel.forms import Kind
from nessie_cli.repository.local import LocalRepository
from nessie_cli.repository.opening import connect, create
from nessie_cli.store.base import Store
from nessie_cli.store.records import Write
from tests.repository.modelled_plans import Judge, ModelledPlan, Wish
from tests.repository.test_machine import BEHAVIORS, NAMES, WISHES, thing

pytestmark = pytest.mark.slow

VERBS = [
    "commit",
    "commit",
    "commit",
    "merge",
    "merge",
    "transplant",
    "create",
    "assign",
    "rename",
    "delete",
    "protect",
    "protect",
    "release",
]
SMALL = st.integers(0, 3)
WISH = st.builds(
    Wish,
    st.sampled_from(VERBS),
    SMALL,
    SMALL,
    st.sampled_from(NAMES),
    BEHAVIORS,
    WISHES,
    st.sampled_from([0, 0, 0, 1]),
)
PLAN = st.tuples(WISH, st.lists(WISH, max_size=2), st.sampled_from([1, 1, 1, 1, 1, 2, 2, 2, 3]))
GROUPS = st.lists(st.lists(PLAN, min_size=1, max_size=5), min_size=1, max_size=4)
START = [
    Wish("commit", 0, 0, "", "NORMAL", dict.fromkeys(("a", "b", "n", "n.x"), ("put", 1, False)), 0),
    Wish("create", 0, 0, "dev", "NORMAL", {}, 0),
    Wish("create", 0, 0, "fix", "NORMAL", {}, 0),
]

Steps = list[list[tuple[Wish, list[Wish], int]]]


def fixed() -> dict[str, Any]:
    """Makes the same steps produce the same hashes."""
    ticks = itertools.count(1_700_000_000_000_000, 1_000)
    return {"clock": lambda: next(ticks), "random": random.Random(7).randbytes}


@contextmanager
def in_memory() -> Iterator[tuple[LocalRepository, LocalRepository]]:
    with connect("memory:", **fixed()) as first:
        assert isinstance(first, LocalRepository)
        yield first, LocalRepository(first._store, first._at)


@contextmanager
def on_sqlite() -> Iterator[tuple[LocalRepository, LocalRepository]]:
    options = fixed()
    with tempfile.TemporaryDirectory(prefix="nessie-groups-") as folder:
        path = f"{folder}/store.sqlite"
        with create(path, **options) as first, connect(path, **options) as second:
            assert isinstance(first, LocalRepository)
            assert isinstance(second, LocalRepository)
            yield first, second


@settings(max_examples=150)
@given(GROUPS)
def test_groups_in_memory(steps: Steps) -> None:
    with in_memory() as (first, second):
        check(steps, first, second)


@settings(max_examples=40)
@given(GROUPS)
def test_groups_on_sqlite(steps: Steps) -> None:
    with on_sqlite() as (first, second):
        check(steps, first, second)


def check(steps: Steps, first: LocalRepository, second: LocalRepository) -> None:
    """Runs the groups on one repository while the other one interferes, and compares the result
    with the model."""
    plans: list[ModelledPlan] = []

    def interfere(wishes: list[Wish], repository: LocalRepository = second) -> None:
        for wish in wishes:
            plan = ModelledPlan(wish, f"alone {len(plans)}")
            plans.append(plan)
            [plan.answer] = repository.commit_all([plan])

    interfere(START, first)
    for group in steps:
        made = [
            ModelledPlan(wish, f"{len(plans)} {n}", partial(interfere, others), times)
            for n, (wish, others, times) in enumerate(group)
        ]
        for plan, answer in zip(made, first.commit_all(made), strict=True):
            plan.answer = answer
        plans += made
    event(f"planned again: {min(5, sum(len(plan.calls) - 1 for plan in plans))}")
    compare(plans, first)
    for repository in (first, second):
        leaves_nothing(plans, repository)
    assert list(first.check()) == []


def compare(plans: list[ModelledPlan], repository: LocalRepository) -> None:
    """Compares each answer, and at the end every reference and its state, with the naive model."""
    judge = Judge(repository)
    wrote = {
        plan.request_id: (plan, write) for plan in plans if (write := committed(plan)) is not None
    }
    settings = sorted(
        (write.settings_version, id_) for id_, (_, write) in wrote.items() if write.settings
    )
    order = list(dict.fromkeys(entry.request_id for entry in list(repository.reflog())[::-1]))[
        1:
    ]  # The first entry created `main`.
    # A setting that gets its old value again leaves no entry.
    set_ids = {id_ for _, id_ in settings}
    order = [id_ for id_ in order if id_ not in set_ids]
    assert sorted(order) == sorted(wrote.keys() - set_ids), (
        "the reflog has the moves of those that were done, and no others"
    )
    for _, id_ in settings:
        judge.set(wrote[id_][0])
    for id_ in order:
        judge.done(wrote[id_][0])
    for plan in plans:
        if plan.request_id not in wrote:
            judge.answered(plan)
    assert {one.name: one.hash for one in repository.references()} == judge.heads
    assert repository.config().settings == judge.settings[-1]
    for name, hash_ in judge.heads.items():
        state = {
            e.key.plain: thing(e.content)
            for e in repository.entries(name, content=True)
            if e.content
        }
        assert state == judge.naive.states[hash_]


def leaves_nothing(plans: list[ModelledPlan], repository: LocalRepository) -> None:
    """Asserts that an uncommitted draft left no request, object or commit."""
    store: Store = repository._store
    writes = [write for plan in plans if (write := committed(plan)) is not None]
    there = {one.id for write in writes for one in write.objects}
    for plan in plans:
        assert (store.request(plan.request_id) is not None) == (plan.committed is not None)
        for draft in plan.drafts:
            if draft is plan.committed or draft.write is None:
                continue
            lost = [one for one in draft.write.objects if one.id not in there]
            assert store.get([one.id for one in lost]) == {}
            for commit in (one for one in lost if one.kind == Kind.COMMIT):
                with pytest.raises(CommitNotFound):
                    repository.resolve(f"@{commit.id.hex()}")


def committed(plan: ModelledPlan) -> Write | None:
    """Returns the write of a plan."""
    return None if plan.committed is None else plan.committed.write
