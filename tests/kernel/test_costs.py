"""Costs as the number of objects read from a cold store and written, never as time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import islice

import pytest

from nessie_cli.kernel import history, tree
from nessie_cli.kernel.ancestry import AncestryIndex
from nessie_cli.kernel.commits import Stamp, draft_commit
from nessie_cli.kernel.content_changes import MergeSides, ThreeWay
from nessie_cli.kernel.content_rules import ContentRules
from nessie_cli.kernel.edit import build, edit
from nessie_cli.kernel.forms import NO_COMMIT, Id, record_of
from nessie_cli.kernel.objects import Objects
from nessie_cli.kernel.outcome import Outcome
from nessie_cli.kernel.searching import KeySearch
from nessie_cli.model import CommitMeta, IcebergTable, MergeBehavior
from tests.kernel.heap import Heap, record

SMALL, LARGE = 1_000, 100_000


class Tree:
    """A stored tree of this many keys."""

    def __init__(self, size: int, record: Callable[[int], bytes] = record) -> None:
        self.heap = Heap()
        self.keys = [b"warehouse\x00db%03d\x00table-%06d" % (n // 100, n) for n in range(size)]
        objects = self.heap.objects()
        self.root = build(objects, ((key, record(n)) for n, key in enumerate(self.keys)))
        self.heap.keep(objects)
        self.levels = objects.node(self.root).level + 1

    def cost(self, work: Callable[[Objects], object]) -> tuple[int, int]:
        """Returns the numbers of objects that one operation of a reader with an empty cache reads
        and writes."""
        objects = self.heap.objects()
        work(objects)
        reads = self.heap.reads
        assert reads == objects.node_reads
        self.heap.keep(objects)
        return reads, self.heap.writes

    def changed(self, edits: dict[bytes, bytes | None]) -> Id:
        objects = self.heap.objects()
        root = edit(objects, self.root, edits)
        self.heap.keep(objects)
        return root


@pytest.fixture(scope="module", params=[SMALL, LARGE])
def grown(request: pytest.FixtureRequest) -> Tree:
    return Tree(request.param)


@pytest.fixture
def some(grown: Tree) -> list[bytes]:
    return random.Random(4).sample(grown.keys, 300)


def test_the_tree_is_flat(grown: Tree) -> None:
    assert grown.levels == (2 if len(grown.keys) == SMALL else 4)


@pytest.mark.parametrize("count", [1, 10, 100])
def test_get(grown: Tree, some: list[bytes], count: int) -> None:
    reads, _ = grown.cost(lambda objects: tree.get(objects, grown.root, some[:count]))
    assert reads <= count * grown.levels
    assert grown.heap.trips <= grown.levels


@pytest.mark.parametrize("count", [1, 10, 100])
def test_replacing_values(grown: Tree, some: list[bytes], count: int) -> None:
    edits: dict[bytes, bytes | None] = {key: record(999_999) for key in some[:count]}
    reads, writes = grown.cost(lambda objects: edit(objects, grown.root, edits))
    assert reads <= count * grown.levels
    assert writes <= count * grown.levels


@pytest.mark.parametrize("count", [1, 10, 100])
def test_adding_and_removing_keys(grown: Tree, some: list[bytes], count: int) -> None:
    # A moved boundary is found again within a few nodes, on average within one.
    added: dict[bytes, bytes | None] = {key + b"!": record(1) for key in some[:count]}
    for edits in (added, dict.fromkeys(some[:count])):
        reads, writes = grown.cost(lambda objects, edits=edits: edit(objects, grown.root, edits))  # type: ignore[misc]
        assert reads <= (2 * count + 4) * grown.levels
        assert writes <= (2 * count + 4) * grown.levels


@pytest.mark.parametrize("count", [0, 1, 10, 100])
def test_diff(grown: Tree, some: list[bytes], count: int) -> None:
    edits: dict[bytes, bytes | None] = {key: record(999_999) for key in some[:count]}
    other = grown.changed(edits)
    reads, _ = grown.cost(lambda objects: list(tree.diff(objects, grown.root, other)))
    assert reads <= 2 * count * grown.levels
    edits |= dict.fromkeys(some[100 : 100 + count]) | {
        key + b"!": record(1) for key in some[200 : 200 + count]
    }
    other = grown.changed(edits)
    reads, _ = grown.cost(lambda objects: list(tree.diff(objects, grown.root, other)))
    assert reads <= 2 * 3 * count * (grown.levels + 2)


@pytest.mark.parametrize("count", [0, 1, 10, 100])
def test_merge(grown: Tree, some: list[bytes], count: int) -> None:
    source = grown.changed({key: record(999_999) for key in some[:count]})
    target = grown.changed({key: record(888_888) for key in some[100 : 100 + count]})

    def merge(objects: Objects) -> None:
        edits = {
            key: after for key, _, _, after in tree.three_way(objects, grown.root, target, source)
        }
        edit(objects, target, edits)

    reads, writes = grown.cost(merge)
    assert reads <= 4 * count * grown.levels + 1
    assert writes <= count * grown.levels


def merge_contents(objects: Objects, base: Id, target: Id, source: Id) -> Outcome:
    changes = [ThreeWay(*states) for states in tree.three_way(objects, base, target, source)]
    sides = MergeSides(base, target, changes, NO_COMMIT, NO_COMMIT)
    rules = ContentRules(objects, (), MergeBehavior.NORMAL)
    outcome = rules.apply(objects, sides, validate_namespaces=False)
    edit(objects, target, outcome.edits)
    return outcome


def content(number: int, value: int = 0) -> bytes:
    """Returns a record with a content id of its own."""
    return record_of(IcebergTable.payload, number.to_bytes(16, "big"), value.to_bytes(32, "big"))


@pytest.fixture(scope="module", params=[SMALL, LARGE])
def contents(request: pytest.FixtureRequest) -> Tree:
    return Tree(request.param, content)


@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("renamed", [False, True])
def test_a_merge_of_contents(contents: Tree, count: int, renamed: bool) -> None:
    """The differences of ours are read only if a content moved or is new."""
    number = {key: n for n, key in enumerate(contents.keys)}
    some = random.Random(4).sample(contents.keys, 300)
    theirs: dict[bytes, bytes | None] = {}
    for key in some[:count]:
        if renamed:
            theirs[key], theirs[key + b"!"] = None, content(number[key])
        else:
            theirs[key] = content(number[key], 1)
    ours: dict[bytes, bytes | None] = {key: content(number[key], 2) for key in some[100:]}
    source, target = contents.changed(theirs), contents.changed(ours)
    outcomes: list[Outcome] = []
    reads, _ = contents.cost(
        lambda objects: outcomes.append(merge_contents(objects, contents.root, target, source))
    )
    assert outcomes[0].edits == theirs
    differences = 2 * count + (len(ours) if renamed and count else 0)
    assert reads <= 4 * differences * (contents.levels + 2) + 1
    assert renamed or reads <= 60 * contents.levels


def test_listing_a_prefix(grown: Tree) -> None:
    start = b"warehouse\x00db005"
    reads, _ = grown.cost(
        lambda objects: list(tree.scan(objects, grown.root, start, start + b"\x01"))
    )
    assert reads <= grown.levels + 100 // 10


def test_a_page_of_a_long_listing(grown: Tree) -> None:
    # Leaves are read ahead by a fixed number, whatever the size of the tree.
    reads, _ = grown.cost(
        lambda objects: list(islice(tree.scan(objects, grown.root, grown.keys[7]), 20))
    )
    assert reads <= grown.levels + tree.READ_AHEAD


def test_counting(grown: Tree) -> None:
    assert grown.cost(lambda objects: tree.count(objects, grown.root))[0] == 1


def test_equal_roots_cost_nothing(grown: Tree) -> None:
    assert grown.cost(lambda objects: list(tree.diff(objects, grown.root, grown.root)))[0] == 0
    assert (
        grown.cost(
            lambda objects: list(tree.three_way(objects, grown.root, tree.EMPTY, grown.root))
        )[0]
        == 0
    )


class Chain:
    """A stored history of this many commits with a branch and a merge in the middle."""

    def __init__(self, length: int) -> None:
        self.heap = Heap()
        self.length = length
        objects = self.heap.objects()
        self.line = [NO_COMMIT]
        for number in range(length):
            self.line.append(
                self._commit(
                    objects,
                    [self.line[-1], self.merged] if number == length // 4 else [self.line[-1]],
                    number,
                )
            )
            if number == length // 8:
                self.merged = self._commit(objects, [self.line[-1]], number)
        self.side = self._commit(objects, [self.line[-11]], length)
        self.heap.keep(objects)

    @staticmethod
    def _commit(objects: Objects, parents: list[Id], number: int) -> Id:
        return draft_commit(
            objects, parents, tree.EMPTY, {}, meta=CommitMeta("m"), stamp=Stamp("", number * 1000)
        )

    def is_ancestor(self, objects: Objects, ancestor: Id, commit: Id) -> bool:
        return AncestryIndex(objects, self.heap.find_indexed).is_ancestor(ancestor, commit)

    def reads(self, work: Callable[[Objects], object]) -> int:
        objects = self.heap.objects()
        work(objects)
        assert self.heap.reads == objects.commit_reads
        return self.heap.reads


@pytest.fixture(scope="module", params=[1_000, 30_000])
def chain(request: pytest.FixtureRequest) -> Chain:
    return Chain(request.param)


def logarithm(chain: Chain) -> int:
    return chain.length.bit_length()


def steps(chain: Chain) -> Iterator[int]:
    yield from (
        1,
        2,
        10,
        100,
        999,
        chain.length // 3,
        chain.length // 2,
        chain.length - 1,
        chain.length,
    )


def test_the_nth_predecessor(chain: Chain) -> None:
    head = chain.line[-1]
    for back in steps(chain):
        reads = chain.reads(
            lambda objects, back=back: history.ancestor_at(objects, head, chain.length - back)
        )  # type: ignore[misc]
        assert reads <= 3 * logarithm(chain)


def test_the_commit_at_a_time(chain: Chain) -> None:
    head = chain.line[-1]
    for back in steps(chain):
        reads = chain.reads(
            lambda objects, back=back: history.at_time(
                objects, head, (chain.length - back) * 1000 - 1
            )
        )  # type: ignore[misc]
        assert reads <= 4 * logarithm(chain)


def test_the_ancestor_test(chain: Chain) -> None:
    for back in steps(chain):
        if back < chain.length:
            reads = chain.reads(
                lambda objects, back=back: chain.is_ancestor(
                    objects, chain.line[-1 - back], chain.line[-1]
                )
            )  # type: ignore[misc]
            assert reads <= 3 * logarithm(chain)


def test_the_ancestor_test_over_a_merge(chain: Chain) -> None:
    """The commits since the merge are not walked, however many there are."""
    for ancestor, expected in ((chain.merged, True), (chain.side, False)):
        objects = chain.heap.objects()
        assert chain.is_ancestor(objects, ancestor, chain.line[-1]) is expected
        assert chain.heap.reads <= 64 + 8 * logarithm(chain)


def test_the_common_first_parent(chain: Chain) -> None:
    reads = chain.reads(
        lambda objects: history.common_first_parent(objects, chain.side, chain.line[-1])
    )
    assert reads <= 6 * logarithm(chain)


def test_many_ancestor_tests_cost_few_round_trips(chain: Chain) -> None:
    heights = range(1, chain.length, chain.length // 100)
    objects = chain.heap.objects()
    found = history.ancestors_at(objects, chain.line[-1], heights)
    assert found == {
        height: history.ancestor_at(objects, chain.line[-1], height) for height in heights
    }
    assert chain.heap.trips <= 3 * logarithm(chain)
    objects = chain.heap.objects()
    chain_of = AncestryIndex(objects, chain.heap.find_indexed)
    asked = [*chain.line[1 :: chain.length // 100], chain.merged, chain.side]
    assert chain_of.ancestors_among(asked, chain.line[-1]) == {*asked} - {chain.side}
    assert chain.heap.trips <= 12 * logarithm(chain)
    objects = chain.heap.objects()
    merge = chain.length // 4 + 1
    found_after = AncestryIndex(objects, chain.heap.find_indexed, near=0).descendants_among(
        asked, chain.merged
    )
    assert found_after == {
        chain.merged,
        chain.side,
        *(id_ for height, id_ in enumerate(chain.line) if id_ in asked and height >= merge),
    }
    assert chain.heap.trips <= 12 * logarithm(chain)
    index = AncestryIndex(objects, chain.heap.find_indexed, near=0)
    with pytest.raises(TimeoutError):
        index.descendants_among(asked, chain.merged, lambda: True)


def test_the_merge_base_costs_the_commits_since_it(chain: Chain) -> None:
    assert (
        chain.reads(lambda objects: history.merge_base(objects, chain.side, chain.line[-1]))
        <= 10 + 3
    )
    assert (
        chain.reads(lambda objects: history.merge_base(objects, chain.line[-6], chain.line[-1]))
        <= 5 + 3
    )


def test_a_new_commit_reads_two_objects(chain: Chain) -> None:
    assert chain.reads(lambda objects: Chain._commit(objects, [chain.line[-1]], 0)) <= 2


def test_a_search_reads_leaves_of_several_states_once(grown: Tree) -> None:
    number = len(grown.keys) // 2
    other = grown.changed({grown.keys[number]: record(7 * LARGE)})
    text = f"table-{number:06}"

    def search(*roots: Id) -> Callable[[Objects], object]:
        def work(objects: Objects) -> None:
            finder = KeySearch(objects, text.upper())
            for root in roots:
                assert [key for key, _ in finder.items(root)] == [grown.keys[number]]

        return work

    reads, _ = grown.cost(search(grown.root))
    assert grown.cost(search(grown.root, other))[0] <= reads + grown.levels
