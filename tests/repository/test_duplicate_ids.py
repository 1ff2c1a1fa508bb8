"""fsck reports content ids under several keys: where history adds them, and in references."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from nessie_cli.errors import InvalidInput, MergeConflict
from nessie_cli.kernel import tree
from nessie_cli.kernel.commits import Stamp, deletion, draft_commit, root_of
from nessie_cli.kernel.duplicates import Duplicate, duplicates
from nessie_cli.kernel.edit import edit
from nessie_cli.kernel.forms import NO_COMMIT, Id, content_id_of, decode_key, encode_key
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import (
    CommitMeta,
    Content,
    KeyBehavior,
    MergeBehavior,
    MergeOption,
    MergeResult,
    Problem,
    ProblemKind,
    ReferenceType,
)
from nessie_cli.repository.local import LocalRepository
from nessie_cli.repository.opening import create
from nessie_cli.store.base import Store
from nessie_cli.store.records import Done, Move, StoredObject
from tests.kernel.heap import Heap
from tests.repository.vocabulary import Catalog, delete, key, namespace, put, table
from tests.store.samples import a_write, write

IDS = [bytes([number]) * 16 for number in range(1, 6)]
State = Mapping[str, int | None]
"""The index of the content id by key; None deletes the key."""


def added(
    objects: Objects, edits: State, *parents: Id, content: Mapping[str, Content] | None = None
) -> Id:
    """Adds a commit that gives content ids to keys, without any check."""
    parents = parents or (NO_COMMIT,)
    before = root_of(objects, parents[0])
    records: dict[bytes, bytes | None] = {}
    operations: dict[bytes, bytes] = {}
    for name, number in edits.items():
        raw = encode_key(key(name))
        if number is None:
            records[raw] = None
            operations[raw] = deletion(tree.get(objects, before, [raw])[raw])
        else:
            value = (content or {}).get(name, table(1))
            records[raw] = operations[raw] = objects.add_content(value, IDS[number])
    root = edit(objects, before, records)
    return draft_commit(
        objects, parents, root, operations, meta=CommitMeta("crafted"), stamp=Stamp("", 1)
    )


def first_parents(objects: Objects, commits: Iterable[Id]) -> dict[Id, Id]:
    return {id_: objects.commit(id_).parents[0] for id_ in commits}


def text(found: Iterable[Duplicate], names: Mapping[Id, str]) -> list[tuple[str, int, str, bool]]:
    """Returns commit, id, keys and whether the commit adds it, in words."""
    return sorted(
        (
            names[one.commit],
            IDS.index(one.content_id),
            " ".join(decode_key(raw).plain for raw in one.keys),
            one.is_added,
        )
        for one in found
    )


# -- the walk over history -------------------------------------------------------------------------


def test_a_duplicate_is_reported_where_it_is_added_and_in_heads() -> None:
    objects = Heap().objects()
    one = added(objects, {"a": 0, "c": 1})
    two = added(objects, {"b": 0}, one)
    three = added(objects, {"c": 2}, two)
    names = {one: "one", two: "two", three: "three"}
    parents = first_parents(objects, names)

    assert text(duplicates(objects, parents, ()), names) == [("two", 0, "a b", True)]
    assert text(duplicates(objects, parents, {one, three}), names) == [
        ("three", 0, "a b", False),
        ("two", 0, "a b", True),
    ]


def test_a_change_a_move_and_a_repair_of_a_duplicate_add_none() -> None:
    objects = Heap().objects()
    one = added(objects, {"a": 0, "b": 0})
    changed = added(objects, {"a": 0}, one, content={"a": table(2)})
    moved = added(objects, {"a": None, "c": 0}, changed)
    third = added(objects, {"d": 0}, moved)
    repaired = added(objects, {"b": 1, "c": 2}, third)
    names = {one: "one", changed: "changed", moved: "moved", third: "third", repaired: "repaired"}
    assert text(duplicates(objects, first_parents(objects, names), {moved, repaired}), names) == [
        ("moved", 0, "b c", False),
        ("one", 0, "a b", True),
        ("third", 0, "b c d", True),
    ]


def test_renames_and_swaps_are_no_duplicates() -> None:
    objects = Heap().objects()
    one = added(objects, {"a": 0, "b": 1})
    swapped = added(objects, {"a": 1, "b": 0}, one)
    renamed = added(objects, {"a": None, "c": 1}, swapped)
    recreated = added(objects, {"a": 2}, renamed)
    commits = [one, swapped, renamed, recreated]
    assert list(duplicates(objects, first_parents(objects, commits), set(commits))) == []


def test_branches_merges_and_unrelated_histories_do_not_mix() -> None:
    """Both branches and the other root use one id, each under one key."""
    objects = Heap().objects()
    base = added(objects, {"x": 4})
    left = added(objects, {"a": 0}, base)
    right = added(objects, {"b": 0}, base)
    far = added(objects, {"c": 1, "d": 2}, right)
    root = added(objects, {"e": 0, "f": 1})
    merge = added(objects, {"b": 0}, left, far, root)
    after = added(objects, {"g": 0}, merge, right)
    names = {
        merge: "merge",
        after: "after",
        far: "far",
        root: "root",
        base: "base",
        left: "left",
        right: "right",
    }
    assert text(duplicates(objects, first_parents(objects, names), {far, root, left}), names) == [
        ("after", 0, "a b g", True),
        ("merge", 0, "a b", True),
    ]


def naive(objects: Objects, commits: Iterable[Id], heads: set[Id]) -> set[Duplicate]:
    """Compares the whole state of each commit with that of its first parent."""

    def keys_of(id_: Id) -> dict[bytes, tuple[bytes, ...]]:
        keys: dict[bytes, tuple[bytes, ...]] = {}
        for raw, record in tree.scan(objects, root_of(objects, id_)):
            keys[content_id_of(record)] = (*keys.get(content_id_of(record), ()), raw)
        return keys

    found = set()
    for id_ in commits:
        before = keys_of(objects.commit(id_).parents[0])
        for content_id, keys in keys_of(id_).items():
            is_added = len(keys) > len(before.get(content_id, ()))
            if len(keys) > 1 and (is_added or id_ in heads):
                found.add(Duplicate(id_, content_id, keys, is_added))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_random_forests_agree_with_a_comparison_of_all_states(seed: int) -> None:
    chance = random.Random(seed)
    objects = Heap().objects()
    commits: list[Id] = []
    names = [f"k{number}" for number in range(12)]
    for number in range(60):
        parents = tuple(chance.sample(commits, min(len(commits), chance.choice([0, 1, 1, 1, 2]))))
        root = root_of(objects, parents[0] if parents else NO_COMMIT)
        there = {decode_key(raw).plain for raw, _ in tree.scan(objects, root)}
        edits: dict[str, int | None] = {
            name: None if name in there and chance.random() < 0.3 else chance.randrange(5)
            for name in chance.sample(names, chance.randint(1, 4))
        }
        # The value makes each commit another one.
        values = {name: table(number) for name in edits}
        commits.append(added(objects, edits, *parents, content=values))
    heads = set(chance.sample(commits, 10))
    shuffled = chance.sample(commits, len(commits))
    found = list(duplicates(objects, first_parents(objects, shuffled), heads))
    assert len(found) == len(set(found))
    assert set(found) == naive(objects, commits, heads)


def test_a_long_line_needs_no_recursion_and_reads_no_node_of_its_states() -> None:
    heap = Heap()
    objects = heap.objects()
    commits = [added(objects, {f"k{number}": number % 4 for number in range(4)})]
    for number in range(2000):
        commits.append(added(objects, {"k0": 0}, commits[-1], content={"k0": table(number + 2)}))
    heap.keep(objects)
    reader = heap.objects()
    parents = dict(zip(commits, [NO_COMMIT, *commits], strict=False))
    assert list(duplicates(reader, parents, {commits[-1]})) == []
    assert reader.node_reads == 0
    assert heap.trips < 20


# -- fsck ------------------------------------------------------------------------------------------


@pytest.fixture
def repository() -> Iterator[LocalRepository]:
    with create("memory:") as made:
        assert isinstance(made, LocalRepository)
        yield made


def crafted(repository: LocalRepository, branch: str, edits: State, **content: Content) -> str:
    """Commits without any check on a branch. Returns the hash."""
    store: Store = repository._store
    reference = store.reference(branch)
    assert reference is not None
    objects = Objects(store.get)
    id_ = added(objects, edits, reference.target, content=content)
    stored = [
        StoredObject(i, kind, data, objects.index_terms.get(i, ()))
        for i, (kind, data) in objects.pending.items()
    ]
    move = Move(branch, reference.kind, reference.target, id_, 0, "", "commit", "", "")
    assert write(store, a_write(stored, [move], result=b"")) == Done()
    return id_.hex()


def found(repository: LocalRepository) -> list[tuple[str, str]]:
    """Returns place and text of each problem, without the content id."""
    problems: list[Problem] = list(repository.check())
    assert {problem.kind for problem in problems} <= {ProblemKind.DUPLICATE_ID}
    return sorted((problem.where, problem.message.partition(" under ")[2]) for problem in problems)


def test_fsck_reports_history_and_each_reference(repository: LocalRepository) -> None:
    catalog = Catalog(repository)
    catalog.write("main", {"aside": 1})
    hash_ = crafted(repository, "main", {"a": 0, "b": 0})
    catalog.branch("dev")
    catalog.write("main", {"aside": 2})
    both = "2 keys: 'a', 'b'"
    assert found(repository) == sorted([(hash_, both), ("main", both), ("dev", both)])
    catalog.commit("main", delete("b"))
    assert found(repository) == sorted([(hash_, both), ("dev", both)])
    problems = {problem.where: problem for problem in repository.check()}
    assert problems["dev"].replaceable == ("dev", key("b"))
    assert problems[hash_].replaceable is None


def test_a_tag_has_no_key_to_replace_and_is_reported(repository: LocalRepository) -> None:
    hash_ = crafted(repository, "main", {"a": 0, "b": 0})
    repository.create_reference(ReferenceType.TAG, "v1", hash_)
    [problem] = [problem for problem in repository.check() if problem.where == "v1"]
    assert problem.replaceable is None


def test_a_commit_cannot_add_to_a_duplicate_but_can_repair_it(
    repository: LocalRepository,
) -> None:
    catalog = Catalog(repository)
    hash_ = crafted(repository, "main", {"a": 0, "b": 0})
    there = catalog.content("main", "a")
    with pytest.raises(InvalidInput):
        catalog.commit("main", put("c", there))
    catalog.write("main", {"a": 5})
    catalog.rename("main", "a", "c")
    assert {where for where, _ in found(repository)} == {hash_, "main"}
    catalog.commit("main", delete("b"), put("b", catalog.content("main", "b").with_id(None)))
    assert [where for where, _ in found(repository)] == [hash_]


def test_a_namespace_with_keys_is_not_the_one_to_replace(repository: LocalRepository) -> None:
    edits = {"n": 0, "n.t": 1, "z": 0, "z.t": 2}
    crafted(repository, "main", edits, n=namespace("n"), z=namespace("z"))
    [problem] = [problem for problem in repository.check() if problem.where == "main"]
    assert problem.replaceable is None
    crafted(repository, "main", {"z.t": None})
    [problem] = [problem for problem in repository.check() if problem.where == "main"]
    assert problem.replaceable == ("main", key("z"))
    crafted(repository, "main", {"m": 1, "z.t": 1})
    replaceable = {problem.replaceable for problem in repository.check() if problem.where == "main"}
    assert replaceable == {None, ("main", key("z.t"))}


def test_many_keys_with_one_id_are_one_line(repository: LocalRepository) -> None:
    crafted(repository, "main", {f"k{number:03}": 0 for number in range(300)})
    [(_, history), (where, head)] = found(repository)
    assert where == "main"
    assert history == head == "300 keys: 'k000', 'k001', 'k002', 'k003', 'k004' and 295 more"


# -- merges and transplants ------------------------------------------------------------------------


@pytest.fixture
def catalog(repository: LocalRepository) -> Catalog:
    """`main` and `x` have a content at `a`."""
    catalog = Catalog(repository)
    crafted(repository, "main", {"a": 0, "other": 1})
    catalog.branch("x")
    return catalog


def keys_of(catalog: Catalog, number: int = 0) -> list[str]:
    """Returns the keys of a content id on `main`."""
    content_id = str(uuid.UUID(bytes=IDS[number]))
    entries = catalog.repository.entries("main")
    return [entry.key.plain for entry in entries if entry.content_id == content_id]


def combine(catalog: Catalog, verb: str, **options: Any) -> MergeResult:
    if verb == "merge":
        return catalog.merge_contents("x", **options)
    return catalog.transplant_contents([catalog.head("x")], **options)


VERBS = pytest.mark.parametrize("verb", ["merge", "transplant"])


@VERBS
@pytest.mark.parametrize("behavior", [MergeBehavior.NORMAL, MergeBehavior.FORCE])
def test_two_keys_of_the_source_are_not_passed_on(
    repository: LocalRepository, catalog: Catalog, verb: str, behavior: MergeBehavior
) -> None:
    crafted(repository, "x", {"c": 2, "d": 2})
    before = catalog.head()
    with pytest.raises(MergeConflict) as refused:
        combine(catalog, verb, default_behavior=behavior)
    (conflict,) = refused.value.conflicts
    assert (conflict.key, conflict.other_key) == (key("d"), key("c"))
    assert conflict.options == (MergeOption(MergeBehavior.DROP, leaves_out=(key("d"),)),)
    assert catalog.head() == before
    ours = KeyBehavior(key("d"), MergeBehavior.DROP)
    combine(catalog, verb, default_behavior=behavior, behaviors=[ours])
    assert keys_of(catalog, 2) == ["c"]


@VERBS
def test_the_key_of_a_content_that_the_target_renamed_counts(
    repository: LocalRepository, catalog: Catalog, verb: str
) -> None:
    catalog.rename("main", "a", "e")
    crafted(repository, "x", {"a": None, "c": 0, "d": 0})
    with pytest.raises(MergeConflict) as refused:
        combine(catalog, verb)
    assert {c.key for c in refused.value.conflicts if c.other_key} == {key("c"), key("d")}
    ours = [KeyBehavior(key(name), MergeBehavior.DROP) for name in "cd"]
    combine(catalog, verb, behaviors=ours)
    assert keys_of(catalog) == ["e"]


@VERBS
def test_a_draft_that_adds_no_key_to_a_duplicate_is_accepted(
    repository: LocalRepository, catalog: Catalog, verb: str
) -> None:
    crafted(repository, "main", {"b": 0, "c": 0})
    catalog.rename("x", "a", "e")
    combine(catalog, verb)
    assert keys_of(catalog) == ["b", "c", "e"]


@VERBS
def test_both_keys_of_a_duplicate_can_be_renamed(
    repository: LocalRepository, catalog: Catalog, verb: str
) -> None:
    crafted(repository, "main", {"b": 0})
    catalog.repository.assign_reference("x", catalog.head(), expected_hash=catalog.head("x"))
    catalog.write("main", {"other": 7})
    crafted(repository, "x", {"a": None, "b": None, "c": 0, "d": 0})
    combine(catalog, verb)
    assert keys_of(catalog) == ["c", "d"]


@VERBS
def test_a_key_that_neither_side_changed_is_not_searched_and_fsck_finds_it(
    repository: LocalRepository, catalog: Catalog, verb: str
) -> None:
    crafted(repository, "x", {"b": 0})
    combine(catalog, verb)
    assert keys_of(catalog) == ["a", "b"]
    assert ("main", "2 keys: 'a', 'b'") in found(repository)
