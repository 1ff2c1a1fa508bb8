"""An overlay with pending writes answers as the store does once they are committed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from nessie_cli.store.base import Store, View
from nessie_cli.store.overlay import Overlay
from nessie_cli.store.records import (
    Done,
    Move,
    RequestRecord,
    StoredObject,
    StoredReference,
    StoredSettings,
    Write,
)
from nessie_cli.store.sqlite.store import create_sqlite
from tests.store.samples import (
    COMMIT,
    NODE,
    VALUE,
    a_write,
    an_object,
    commit,
    create,
    id_of,
    write,
)

NAMES = ("a", "a/b", "a/c", "ab", "b", "z\U0010ffff", "Ä", "👍")
ENTRIES = (b"x", b"y", b"z")
SETTINGS = ("one", "two", "three")


@pytest.fixture
def base(path: str) -> Iterator[Store]:
    store = create_sqlite(path)
    yield store
    store.close()


def random_object(random: Random) -> StoredObject:
    number = random.randrange(60)
    kind = (VALUE, NODE, COMMIT)[number % 3]
    index = tuple(entry for place, entry in enumerate(ENTRIES) if number >> place & 1)
    return StoredObject(id_of(f"object {number}"), kind, b"%d" % number, index)


def random_write(random: Random, view: View) -> Write:
    """Returns a write that succeeds on this view."""
    moves = []
    for name in random.sample(NAMES, random.randrange(4)):
        before = view.reference(name)
        kind = random.choice(("BRANCH", "TAG")) if before is None else before.kind
        target = None if before is None else before.target
        after = None if before and random.random() < 0.3 else id_of(str(random.randrange(9)))
        moves.append(Move(name, kind, target, after, random.randrange(9), "me", "commit", "", "r"))
        if after and random.random() < 0.3:
            moves.append(Move(name, kind, after, None, 1, "me", "delete", "", "r"))
    settings = {
        name: random.choice(("1", "2", None))
        for name in random.sample(SETTINGS, random.randrange(3))
    }
    objects = [random_object(random) for _ in range(random.randrange(5))]
    return a_write(objects, moves, settings if random.random() < 0.5 else {})


def answers(view: View, random: Random, requests: list[RequestRecord]) -> Iterator[object]:
    """Returns the result of each method.

    Rows of an overlay have other numbers, so only their order is compared.
    """
    ids = [id_of(f"object {number}") for number in range(62)]
    for size in (0, 1, 3, 62):
        yield view.get(random.sample(ids, size))
    for kind in (VALUE, NODE, COMMIT, 99):
        for prefix in ("", "a", "1", "f" * 65, "A", "zz", ids[0].hex()):
            for limit in (0, 1, 5, 100):
                yield view.find_ids(kind, prefix, limit)
    for entry in (*ENTRIES, b"none"):
        for limit in (0, 1, 2, 100):
            yield [id_ for _, id_ in view.find_indexed(entry, None, limit)]
        yield list(pages_of_index(view, entry))
    for name in (*NAMES, "none", ""):
        yield view.reference(name)
        for one in (
            *requests,
            RequestRecord("unused", "", b"", b"", 0),
            RequestRecord("", "", b"", b"", 0),
        ):
            yield view.basis(name, one.id)
            yield view.request(one.id)
        yield [row.move for row in view.reflog(name)]
        yield [row.move for row in view.reflog(name, None, 2)]
        yield list(pages_of_reflog(view, name))
    yield list(pages_of_reflog(view, None))
    yield [row.move for row in view.reflog(limit=0)]
    for reference_kind in (None, "BRANCH", "TAG"):
        for prefix in ("", "a", "a/", "z", "none"):
            for start in ("", "a/b", "b"):
                for limit in (None, 0, 1, 2, 100):
                    yield view.references(reference_kind, prefix, start, limit)
    yield view.settings()


def pages_of_index(view: View, entry: bytes) -> Iterator[bytes]:
    before = None
    while page := view.find_indexed(entry, before, 2):
        numbers = [number for number, _ in page]
        assert numbers == sorted(set(numbers), reverse=True)
        yield from (id_ for _, id_ in page)
        before = numbers[-1]


def pages_of_reflog(view: View, name: str | None) -> Iterator[object]:
    before = None
    while page := view.reflog(name, before, 2):
        numbers = [row.number for row in page]
        assert numbers == sorted(set(numbers), reverse=True)
        yield from (row.move for row in page)
        before = numbers[-1]


@pytest.mark.parametrize("seed", range(25))
def test_an_overlay_answers_as_the_store_after_the_writes(base: Store, seed: int) -> None:
    random = Random(seed)
    for _ in range(random.randrange(5)):
        assert write(base, random_write(random, base)) == Done()
    overlay = Overlay(base)
    writes = []
    for _ in range(random.randrange(6)):
        writes.append(random_write(random, overlay))
        overlay.add(writes[-1])
    requests = [one.request for one in writes]
    before = list(answers(overlay, Random(seed), requests))
    assert base.commit(writes) == [Done()] * len(writes)
    after = list(answers(base, Random(seed), requests))
    assert before == after


@pytest.mark.parametrize("seed", range(10))
def test_reading_ahead_does_not_change_the_answers_of_an_overlay(base: Store, seed: int) -> None:
    random = Random(seed)
    for _ in range(random.randrange(5)):
        assert write(base, random_write(random, base)) == Done()
    overlay, ahead = Overlay(base), Overlay(base)
    ahead.read(
        [(name, "") for name in random.sample(NAMES, random.randrange(1, 5))] + [("none", "unused")]
    )
    requests = []
    for _ in range(random.randrange(6)):
        one = random_write(random, overlay)
        requests.append(one.request)
        overlay.add(one)
        ahead.add(one)
    assert list(answers(ahead, Random(seed), requests)) == list(
        answers(overlay, Random(seed), requests)
    )


def test_reading_ahead_reads_one_state(base: Store) -> None:
    """A draft that reads a reference again gets its first result, even if others have written
    meanwhile."""
    write(base, create("main", "1"))
    before = base.basis("main", "")
    overlay = Overlay(base)
    overlay.read([("main", "")])
    write(base, a_write(settings={"a": "1"}))
    assert write(base, commit("main", "1", "2")) == Done()
    assert overlay.basis("main", "") == before
    assert (overlay.reference("main"), overlay.settings()) == (before.reference, before.settings)


@pytest.mark.parametrize("seed", range(10))
def test_an_overlay_of_an_overlay_answers_as_one(base: Store, seed: int) -> None:
    random = Random(seed)
    lower = Overlay(base)
    both = Overlay(base)
    upper = Overlay(lower)
    for number in range(6):
        one = random_write(random, upper)
        (lower if number < 3 else upper).add(one)
        both.add(one)
    assert list(answers(upper, Random(seed), [])) == list(answers(both, Random(seed), []))


def test_a_read_ahead_of_an_overlay_returns_objects_of_the_kind(base: Store) -> None:
    base.put([an_object(str(n), COMMIT) for n in range(9)])
    overlay = Overlay(base)
    overlay.add(a_write([an_object("new", COMMIT)]))
    found = overlay.written_before(id_of("8"), COMMIT, 5)
    assert found.items() <= {id_of(str(n)): an_object(str(n)).data for n in range(9)}.items()
    assert (
        overlay.written_before(id_of("new"), COMMIT, 5).items()
        <= {id_of("new"): an_object("new").data}.items()
    )


def test_an_overlay_changes_nothing_in_its_base(base: Store) -> None:
    overlay = Overlay(base)
    overlay.add(create("main", "1"))
    overlay.add(a_write([an_object("a")], settings={"a": "1"}))
    assert overlay.reference("main") == StoredReference("main", "BRANCH", id_of("1"))
    assert overlay.settings() == StoredSettings({"a": "1"}, 1)
    assert (base.references(), base.settings(), base.reflog(), list(base.scan())) == (
        [],
        StoredSettings(),
        [],
        [],
    )
