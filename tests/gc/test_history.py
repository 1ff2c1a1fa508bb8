"""Live states of tables, compared with a plain oracle over random histories."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from nessie_cli import connect, create
from nessie_cli.errors import CommitNotFound, NessieError, NotAllowed
from nessie_cli.gc.history import HistoryWalk, TableState
from nessie_cli.gc.policies import Policies, policies
from nessie_cli.model import (
    NO_ANCESTOR,
    Content,
    DeltaLakeTable,
    DiffEntry,
    IcebergTable,
    IcebergView,
    LogEntry,
    Put,
    Reference,
    ReflogEntry,
)
from nessie_cli.repository.base import Repository
from tests.repository.vocabulary import Catalog, delete, put, table, view
from tests.server.processes import started

START = datetime(2026, 1, 1, tzinfo=UTC)
STEP = timedelta(hours=1)
LATER = datetime(9999, 1, 1, tzinfo=UTC)
"""All moves of the reflog have expired then."""


class Clock:
    """A clock that advances by an hour with each call."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        self.now += STEP
        return int(self.now.timestamp()) * 10**6


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def catalog(clock: Clock) -> Iterator[Catalog]:
    with connect("memory:", clock=clock) as repository:
        yield Catalog(repository)


Named = tuple[str, str, int | None]


def named(content: Content | None) -> set[Named]:
    match content:
        case IcebergTable():
            return {(content.id or "", content.metadata_location, content.snapshot_id)}
        case IcebergView():
            return {(content.id or "", content.metadata_location, None)}
    return set()


def puts(entry: LogEntry) -> set[Named]:
    return {
        state
        for operation in entry.operations or ()
        if isinstance(operation, Put)
        for state in named(operation.content)
    }


def roots(repository: Repository, since: datetime) -> set[tuple[str, str]]:
    """Returns the commits of references, and those that unexpired moves can restore."""
    found = {(reference.name, reference.hash) for reference in repository.references()}
    for move in repository.reflog():
        found |= {
            (move.reference, hash_)
            for hash_ in (move.before, move.after)
            if hash_ and move.time >= since
        }
    return found


def plainly(repository: Repository, chosen: Policies, since: datetime = LATER) -> set[Named]:
    """Returns the live states, root by root, as the original Nessie finds them."""
    live: set[Named] = set()
    for name, hash_ in roots(repository, since):
        policy, last = chosen.of(name), NO_ANCESTOR
        for number, entry in enumerate(repository.log(f"@{hash_}", operations=True)):
            too_many = policy.commits is not None and number >= policy.commits
            too_old = (
                policy.since is not None
                and entry.meta.commit_time is not None
                and entry.meta.commit_time < policy.since
            )
            if number and (too_many or too_old):
                break
            live |= puts(entry)
            last = entry.hash
        for held in repository.entries(f"@{last}", content=True):
            live |= named(held.content)
    return live


def ever(repository: Repository) -> set[Named]:
    hashes = {move.before for move in repository.reflog() if move.before} | {
        reference.hash for reference in repository.references()
    }
    return {
        state
        for hash_ in hashes
        for entry in repository.log(f"@{hash_}", operations=True, all_parents=True)
        for state in puts(entry)
    }


def of(states: list[TableState], *, live: bool) -> set[Named]:
    return {
        (state.content_id, state.metadata_location, state.snapshot_id)
        for state in states
        if state.live is live
    }


def scribble(catalog: Catalog, chance: random.Random) -> None:
    """Makes a random history."""
    repository = catalog.repository
    for step in range(chance.randint(5, 45)):
        branches = [
            found.name for found in repository.references() if not found.name.startswith("tag")
        ]
        branch = chance.choice(branches)
        match chance.randrange(10):
            case 0 | 1:
                catalog.branch(f"b{step}", chance.choice(branches))
            case 2:
                older = list(repository.log(branch))[:6]
                if older:
                    catalog.tag(f"tag{step}", f"@{chance.choice(older).hash}")
            case 3:
                other = repository.reference(chance.choice(branches))
                if other.name != "main":
                    repository.delete_reference(other.name, expected_hash=other.hash)
            case 4:
                try:
                    repository.merge(branch, chance.choice(branches))
                except NessieError:
                    continue
            case 5:
                there = [held.key.plain for held in repository.entries(branch)]
                if there:
                    catalog.commit(branch, delete(chance.choice(there)))
            case 6:
                catalog.commit(branch, put(f"v{step}", view(step))) if step % 2 else None
            case _:
                catalog.write(branch, {f"t{chance.randrange(6)}": step})


POLICIES = [
    "NONE",
    "1",
    "2",
    "3",
    "7",
    "20",
    "PT1H",
    "PT5H",
    "PT20H",
    "P3D",
    "2026-01-01T09:00:00Z",
]


def test_live_and_dead_states_agree_with_a_plain_oracle_and_each_commit_is_read_once():
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    for round_ in range(60):
        where = f"seed {seed}, round {round_}"
        clock = Clock()
        with connect("memory:", clock=clock) as repository:
            scribble(Catalog(repository), chance)
            rules = [
                (pattern, chance.choice(POLICIES)) for pattern in ("main", "b.*[02468]", "tag.*")
            ][chance.randrange(3) :]
            chosen = policies(chance.choice(POLICIES), rules, clock.now)
            since = chance.choice([LATER, START, START + chance.randrange(60) * STEP])
            history = HistoryWalk(repository, chosen, moves_since=since)
            states = list(history.states())
            live, dead = of(states, live=True), of(states, live=False)
            assert live == plainly(repository, chosen, since), where
            assert live.isdisjoint(dead), where
            assert live | dead == ever(repository) | live, where
            assert len(states) == len(live) + len(dead), f"{where}: each state is reported once"
            firsts = [state.live for state in states]
            assert firsts == sorted(firsts, reverse=True), f"{where}: live ones come first"
            references = history.roots.references
            assert references == [
                pinned
                for pinned in references
                if repository.reference(pinned.name).hash == pinned.hash
            ], where
            assert list(history.became_live()) == [], where


class Counting:
    """A repository that counts log entries, and can delete a reference during a walk."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self.read = self.logs = self.diffs = 0
        self.vanishing: dict[str, int] = {}

    def __getattr__(self, name: str):
        return getattr(self._repository, name)

    def diff(self, *revisions: str) -> Iterator[DiffEntry]:
        self.diffs += 1
        return self._repository.diff(*revisions)

    def log(self, start: str, **options: bool) -> Iterator[LogEntry]:
        self.logs += 1
        for number, entry in enumerate(self._repository.log(start, **options)):
            if self.vanishing.get(start) == number:
                found = self._repository.reference("doomed")
                self._repository.delete_reference("doomed", expected_hash=found.hash)
                raise CommitNotFound("gone")
            self.read += 1
            yield entry


@pytest.mark.parametrize("cutoff", ["NONE", "P2D", "30"])
def test_fifty_branches_over_shared_history_cost_little_more_than_one(catalog, clock, cutoff):
    catalog.write("main", {f"t{number}": number for number in range(40)})
    for number in range(200):
        catalog.write("main", {f"t{number % 40}": 1000 + number})
    commits = []
    for branches in (0, 50):
        for number in range(branches):
            catalog.branch(f"b{number}", f"main~{number % 10 + 1}")
        counting = Counting(catalog.repository)
        history = HistoryWalk(counting, policies(cutoff, [], clock.now), moves_since=LATER)
        list(history.states())
        # The commit below each segment is read from both sides.
        assert counting.read <= 215
        commits.append(counting.read)
    assert commits[1] <= 1.05 * commits[0]


def test_a_reference_deleted_meanwhile_does_not_affect_the_others(catalog, clock):
    for number in range(10):
        catalog.write("main", {f"t{number % 3}": number})
    doomed = catalog.branch("doomed")
    catalog.write("doomed", {"t9": 99})
    doomed = catalog.head("doomed")
    catalog.write("main", {"t0": 50})
    counting = Counting(catalog.repository)
    counting.vanishing[f"@{doomed}"] = 4
    # The branch that vanishes is walked first, because it reaches furthest.
    chosen = policies("PT12H", [("doomed", "NONE")], clock.now)
    history = HistoryWalk(counting, chosen, moves_since=LATER)
    states = list(history.states())
    assert [pinned.name for pinned in history.vanished] == ["doomed"]
    assert of(states, live=True) >= plainly(catalog.repository, chosen)


def test_an_error_of_an_existing_reference_ends_the_walk(catalog, clock):
    catalog.write("main", {"t": 1})

    class BrokenFile(Counting):
        def log(self, start: str, **_: bool) -> Iterator[LogEntry]:
            raise CommitNotFound(f"{start} is gone")

    with pytest.raises(CommitNotFound):
        list(HistoryWalk(BrokenFile(catalog.repository), policies("NONE", [], clock.now)).states())


def test_a_branch_created_meanwhile_at_an_old_commit_is_live(catalog, clock):
    for number in range(10):
        catalog.write("main", {"t": number})

    class Late(Counting):
        made = False

        def references(self) -> Iterator[Reference]:
            yield from catalog.repository.references()
            if not self.made:
                self.made = True
                catalog.branch("late", "main~5")

    history = HistoryWalk(Late(catalog.repository), policies("1", [], clock.now), moves_since=LATER)
    assert {number for _, _, number in of(list(history.states()), live=True)} == {9, 4}
    assert [pinned.name for pinned in history.roots.references] == ["main", "late"]


def test_states_of_deleted_and_merged_branches_are_dead(catalog, clock):
    catalog.write("main", {"t": 1})
    catalog.branch("dropped")
    catalog.write("dropped", {"only": 7})
    head = catalog.repository.reference("dropped")
    catalog.repository.delete_reference("dropped", expected_hash=head.hash)
    states = list(
        HistoryWalk(catalog.repository, policies("NONE", [], clock.now), moves_since=LATER).states()
    )
    assert {number for _, _, number in of(states, live=False)} == {7}
    assert [state.reference for state in states if not state.live] == ["dropped"]


def test_states_of_other_table_formats_are_yielded(catalog, clock):
    delta = DeltaLakeTable(
        metadata_location_history=("s3://lake/d/_delta_log/1.json",),
        checkpoint_location_history=(),
        last_checkpoint=None,
    )
    catalog.commit("main", put("d", delta), put("t", table(1)))
    states = list(HistoryWalk(catalog.repository, policies("NONE", [], clock.now)).states())
    assert {(state.key, state.type) for state in states} == {
        ("d", "DELTA_LAKE_TABLE"),
        ("t", "ICEBERG_TABLE"),
    }
    assert {state.content_id for state in states} == {
        held.content_id for held in catalog.repository.entries("main")
    }


def test_later_roots_yield_their_live_states_once():
    """The walk before each batch finds exactly the states that have become live."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    for round_ in range(60):
        where = f"seed {seed}, round {round_}"
        clock = Clock()
        with connect("memory:", clock=clock) as repository:
            catalog = Catalog(repository)
            scribble(catalog, chance)
            rules = [
                (pattern, chance.choice(POLICIES)) for pattern in ("main", "b.*[02468]", "late.*")
            ][chance.randrange(3) :]
            chosen = policies(chance.choice(POLICIES), rules, clock.now)
            since = chance.choice([LATER, START, clock.now + STEP])
            history = HistoryWalk(repository, chosen, moves_since=since)
            live = of(list(history.states()), live=True)
            expected = plainly(repository, chosen, since)
            for step in range(3):
                ever_known = sorted(
                    {move.before for move in repository.reflog() if move.before} - {NO_ANCESTOR}
                )
                if ever_known:
                    catalog.branch(
                        f"late{step}",
                        f"@{chance.choice(ever_known)}{chance.choice(['', '~1', '~2'])}",
                    ) if chance.random() < 0.7 else None
                catalog.write("main", {"t0": 1000 + step}) if chance.random() < 0.5 else None
                again = list(history.became_live())
                assert live.isdisjoint(of(again, live=True)), where
                assert len(again) == len(of(again, live=True)), where
                live |= of(again, live=True)
                expected |= plainly(repository, chosen, since)
                assert live == expected, where
            assert list(history.became_live()) == [], where


def test_a_deleted_branch_that_undo_can_restore_is_live(catalog, clock):
    """Its commits are live until the moves have expired, and dead after that."""
    catalog.write("main", {"t": 1})
    catalog.branch("dev")
    catalog.write("dev", {"only": 7})
    catalog.write("dev", {"only": 8})
    before = clock.now
    head = catalog.repository.reference("dev")
    catalog.repository.delete_reference("dev", expected_hash=head.hash)
    chosen = policies("1", [], clock.now)
    for since, live, dead in [
        (START, {1, 7, 8}, set()),
        (before + STEP / 2, {1, 8}, {7}),
        (LATER, {1}, {7, 8}),
    ]:
        states = list(HistoryWalk(catalog.repository, chosen, moves_since=since).states())
        assert {number for _, _, number in of(states, live=True)} == live
        assert {number for _, _, number in of(states, live=False)} == dead


@pytest.mark.parametrize(
    ("late", "more"),
    [
        ("NONE", {0, 1, 2, 3, 4}),
        ("P30D", {0, 1, 2, 3, 4}),
        ("main~2", {3, 4}),
        ("3", {3, 4}),
        ("1", set()),
    ],
)
def test_a_later_root_reaches_as_far_as_its_policy(catalog, clock, late, more):
    """Its HEAD is live already by a reference with a shorter policy."""
    for number in range(6):
        catalog.write("main", {"t": number})
    if late == "main~2":
        late = str(catalog.repository.commit_at(late).meta.commit_time)
    history = HistoryWalk(
        catalog.repository, policies("1", [("late", late)], clock.now), moves_since=LATER
    )
    assert {number for _, _, number in of(list(history.states()), live=True)} == {5}
    catalog.branch("late")
    assert {number for _, _, number in of(list(history.became_live()), live=True)} == more


def test_a_branch_created_and_deleted_after_the_walk_is_live_by_its_moves(catalog, clock):
    catalog.write("main", {"t": 1})
    catalog.branch("dev")
    catalog.write("dev", {"only": 7})
    head = catalog.repository.reference("dev")
    catalog.repository.delete_reference("dev", expected_hash=head.hash)
    history = HistoryWalk(
        catalog.repository, policies("1", [], clock.now), moves_since=clock.now + STEP / 2
    )
    assert {number for _, _, number in of(list(history.states()), live=True)} == {1}
    assert list(history.became_live()) == []
    catalog.branch("rescue", f"@{head.hash}")
    catalog.repository.delete_reference("rescue", expected_hash=head.hash)
    again = list(history.became_live())
    assert [(state.reference, state.snapshot_id, state.live) for state in again] == [
        ("rescue", 7, True)
    ]


def test_a_second_look_reads_only_the_new_moves_of_the_reflog(catalog, clock):
    class CountingRepository(Counting):
        moves = 0

        def reflog(self, name: str | None = None) -> Iterator[ReflogEntry]:
            for move in catalog.repository.reflog(name):
                self.moves += 1
                yield move

    for number in range(100):
        catalog.write("main", {"t": number})
    counting = CountingRepository(catalog.repository)
    history = HistoryWalk(counting, policies("1", [], clock.now))
    list(history.states())
    counting.moves = 0
    for number in range(10):
        assert len(list(history.became_live())) == (1 if number else 0)
        catalog.write("main", {"t": 1000 + number})
    assert counting.moves < 40


@pytest.mark.parametrize("cutoff", ["NONE", "P2D", "30"])
def test_the_contents_at_the_end_of_a_truncated_history_are_live(catalog, clock, cutoff):
    """Servers can delete the oldest commits. Later commits still contain their tables."""
    for number in range(6):
        catalog.write("main", {f"t{number}": number})

    class Cut(Counting):
        def log(self, start: str, **options: bool) -> Iterator[LogEntry]:
            return islice(super().log(start, **options), 3)

    history = HistoryWalk(
        Cut(catalog.repository), policies(cutoff, [], clock.now), moves_since=LATER
    )
    assert {number for _, _, number in of(list(history.states()), live=True)} == set(range(6))


def test_shared_dead_history_is_read_once(catalog, clock):
    catalog.branch("dev")
    for number in range(50):
        catalog.write("dev", {"t": number})
    for number in range(5):
        catalog.branch(f"b{number}", "dev")
        catalog.write(f"b{number}", {"t": 100 + number})
    for name in ("dev", *(f"b{number}" for number in range(5))):
        head = catalog.repository.reference(name)
        catalog.repository.delete_reference(name, expected_hash=head.hash)
    counting = Counting(catalog.repository)
    states = list(HistoryWalk(counting, policies("1", [], clock.now), moves_since=LATER).states())
    assert len(of(states, live=False)) == 55
    # The commit where a branch forks is read twice.
    assert counting.read <= 55 + 5


def test_positions_along_one_line_cost_one_walk(catalog, clock):
    for number in range(300):
        catalog.write("main", {f"t{number % 40}": number})
    counting = Counting(catalog.repository)
    history = HistoryWalk(counting, policies("1", [], clock.now))
    assert len(list(history.states())) == 300
    assert history.roots.positions == 300, "HEAD is none, the empty state is one"
    assert (counting.logs, counting.diffs) == (1, 0)
    assert counting.read == 300


def test_an_unreadable_position_ends_the_walk_while_the_reflog_has_it(catalog, clock):
    catalog.branch("dev")
    catalog.write("dev", {"only": 7})
    dev = catalog.repository.reference("dev")
    catalog.repository.delete_reference("dev", expected_hash=dev.hash)

    class Lost(Counting):
        forgotten = False
        asked = 0

        def log(self, start: str, **options: bool) -> Iterator[LogEntry]:
            if start == f"@{dev.hash}":
                raise CommitNotFound(f"{start} is gone")
            return super().log(start, **options)

        def reflog(self, name: str | None = None) -> Iterator[ReflogEntry]:
            self.asked += 1
            found = catalog.repository.reflog(name)
            return (
                move
                for move in found
                if not (self.forgotten and self.asked > 1 and move.reference == "dev")
            )

    lost = Lost(catalog.repository)
    with pytest.raises(CommitNotFound):
        list(HistoryWalk(lost, policies("1", [], clock.now)).states())
    lost.forgotten, lost.asked = True, 0
    history = HistoryWalk(lost, policies("1", [], clock.now))
    assert of(list(history.states()), live=True) == set()
    assert [root.name for root in history.vanished] == ["dev"]


def test_a_server_without_a_reflog_has_only_references_as_roots(catalog, clock):
    class Foreign(Counting):
        def reflog(self, _name: str | None = None) -> Iterator[ReflogEntry]:
            raise NotAllowed("this server cannot tell where references have been")

    catalog.write("main", {"t": 1})
    catalog.write("main", {"t": 2})
    history = HistoryWalk(Foreign(catalog.repository), policies("1", [], clock.now))
    assert {number for _, _, number in of(list(history.states()), live=True)} == {2}
    assert (history.roots.has_reflog, history.roots.positions) == (False, 0)


def test_an_error_of_the_reflog_ends_the_walk(catalog, clock):
    class BrokenFile(Counting):
        def reflog(self, name: str | None = None) -> Iterator[ReflogEntry]:
            yield next(catalog.repository.reflog(name))
            raise NotAllowed("no more of it")

    catalog.write("main", {"t": 1})
    with pytest.raises(NotAllowed):
        list(HistoryWalk(BrokenFile(catalog.repository), policies("1", [], clock.now)).states())


def test_a_server_gives_the_same_states_as_its_store(tmp_path):
    store = f"sqlite:///{tmp_path}/catalog.sqlite"
    seed = random.randrange(2**32)
    clock = Clock()
    with create(store, clock=clock) as repository:
        scribble(Catalog(repository), random.Random(seed))
        chosen, since = policies("3", [("b.*[02468]", "PT20H")], clock.now), START + 20 * STEP
        here = list(HistoryWalk(repository, chosen, moves_since=since).states())
    with started("--store", store) as (_, url), connect(f"{url}/api/v2") as repository:
        there = list(HistoryWalk(repository, chosen, moves_since=since).states())
    assert there == here, f"seed {seed}"
