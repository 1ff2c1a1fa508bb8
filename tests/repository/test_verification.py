"""Verification of the objects that some commits need: it names missing objects, those that
do not match their id, and damaged references."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from nessie_cli.errors import DamagedObject
from nessie_cli.kernel.forms import Kind
from nessie_cli.model import NO_ANCESTOR
from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import connect, create
from nessie_cli.repository.verification import verify_references
from nessie_cli.store.opening import open_store
from nessie_cli.store.records import StoredReference
from nessie_cli.store.rows import pack, unpack
from tests.repository.vocabulary import Catalog, write_history


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Values, trees of several nodes, a merge, a long list of operations; a deleted branch, a
    tag, and a renamed branch."""
    path = tmp_path_factory.mktemp("verification") / "sound.sqlite"
    with create(str(path)) as repository:
        catalog = Catalog(repository)
        write_history(catalog)
        for name in ("gone", "old"):
            catalog.branch(name)
        repository.delete_reference("gone", expected_hash=catalog.head("gone"))
        repository.rename_reference("old", "new", expected_hash=catalog.head("old"))
    return path


@pytest.fixture
def store(sound: Path, tmp_path: Path) -> Path:
    path = tmp_path / "store.sqlite"
    path.write_bytes(sound.read_bytes())
    return path


def verified(path: Path) -> int | None:
    with connect(str(path)) as repository:
        return repository.verify(heads(repository))


def heads(repository: Repository) -> set[str]:
    return {reference.hash for reference in repository.references()}


def sql(path: Path, statement: str, *values: object) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def objects(path: Path) -> list[tuple[int, bytes, int, bytes]]:
    return sql(path, "SELECT number, id, kind, packed FROM objects ORDER BY number")  # type: ignore[return-value]


def test_everything_reachable_is_counted(store):
    assert verified(store) == len(objects(store))
    with connect(str(store)) as repository:
        assert repository.verify(set()) == 0
        assert repository.verify({NO_ANCESTOR}) == 0
        assert 0 < repository.verify([repository.resolve("main~2").hash]) < len(objects(store))


def of_each_kind(path: Path) -> Iterator[tuple[int, bytes, int, bytes]]:
    chance = random.Random(7)
    rows = objects(path)
    for kind in Kind:
        found = [row for row in rows if row[2] == kind]
        yield from chance.sample(found, min(8, len(found)))


def test_an_object_with_the_bytes_of_another_one_is_reported(store):
    """The checksum is valid, as if the bytes had been written under this id."""
    rows = objects(store)
    for number, id_, kind, packed in of_each_kind(store):
        other = next(row for row in rows if row[2] == kind and row[1] != id_)
        sql(
            store,
            "UPDATE objects SET packed = ? WHERE number = ?",
            pack(id_, kind, unpack(*other[1:])),
            number,
        )
        with pytest.raises(DamagedObject, match="its bytes do not have this id") as caught:
            verified(store)
        assert caught.value.object_id == id_.hex()
        sql(store, "UPDATE objects SET packed = ? WHERE number = ?", packed, number)
    assert verified(store) == len(rows)


def test_a_missing_object_is_reported(store):
    for number, id_, kind, packed in of_each_kind(store):
        sql(store, "DELETE FROM objects WHERE number = ?", number)
        with pytest.raises(
            DamagedObject, match=f"{Kind(kind).name.lower()} {id_.hex()[:16]} is missing"
        ) as caught:
            verified(store)
        assert caught.value.object_id == id_.hex()
        sql(store, "INSERT INTO objects VALUES (?, ?, ?, 0, ?)", number, id_, kind, packed)


def test_an_object_of_the_wrong_kind_is_reported(store):
    with connect(str(store)) as repository:
        value = next(row for row in objects(store) if row[2] == Kind.VALUE)
        with pytest.raises(DamagedObject, match=r"commit .* do not have this id"):
            repository.verify({value[1].hex()})


LOST_ROWS = {
    "DELETE FROM refs WHERE name = 'v1'": (
        "reference 'v1' is missing, but its reflog does not end with a deletion",
        "reference 'v1' is missing, but its last move in the reflog led to",
    ),
    "DELETE FROM reflog": ("does not belong to the newest entry", "the reflog is empty"),
    "DELETE FROM reflog WHERE name = 'gone' AND after IS NULL": (
        "reference 'gone' is missing, but its reflog does not end with a deletion",
        "reference 'gone' is missing, but",
    ),
    "DELETE FROM reflog WHERE number = (SELECT max(number) FROM reflog WHERE name = 'main')": (
        "reference 'main' does not belong to the newest entry of its reflog",
        "reference 'main' is at [0-9a-f]{16}, but",
    ),
    # Moves expire, the oldest first, so only the chains show that these are lost.
    "DELETE FROM reflog WHERE name = 'new'": ("reference 'new' does not belong to", None),
    "DELETE FROM reflog WHERE number < (SELECT max(number) FROM reflog)": ("is missing", None),
}


@pytest.mark.parametrize("statement", LOST_ROWS)
def test_references_must_match_the_reflog(store, statement):
    in_chains, in_moves = LOST_ROWS[statement]
    sql(store, statement)
    with pytest.raises(DamagedObject, match=in_chains):
        verified(store)
    with closing(open_store(str(store))) as view:
        if in_moves is None:
            verify_references(view)
            return
        with pytest.raises(DamagedObject, match=in_moves):
            verify_references(view)


def test_a_reference_after_its_deletion_in_the_reflog_is_reported(store):
    sql(
        store,
        "INSERT INTO refs SELECT 'gone', kind, target, newest, check_sum FROM refs WHERE name = 'main'",
    )
    with pytest.raises(DamagedObject):
        verified(store)


def test_a_reference_that_moves_meanwhile_is_not_damaged(store):
    """The reference moves between every two reads of the store."""
    view, catalog = open_store(str(store)), Catalog(connect(str(store)))

    class Busy:
        moves = 5

        def move(self) -> None:
            if self.moves:
                self.moves -= 1
                catalog.write("main", {"b": 100 + self.moves})

        def references(self) -> list[StoredReference]:
            found = view.references()
            self.move()
            return found

        def reference(self, name: str) -> StoredReference | None:
            found = view.reference(name)
            self.move()
            return found

        def reflog(self, *words: object, **named: object) -> object:
            found = view.reflog(*words, **named)
            self.move()
            return found

    busy = Busy()
    verify_references(busy)
    assert busy.moves == 0
    view.close()
    catalog.repository.close()
