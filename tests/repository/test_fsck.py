"""fsck finds all damage: flipped bytes in the rows of a real file, lost objects, and invalid
objects."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import apsw
import pytest
from msgspec import structs

from nessie_cli.errors import DamagedObject, NessieError
from nessie_cli.kernel import tree
from nessie_cli.kernel.forms import (
    Id,
    Kind,
    Node,
    StoredCommit,
    decode_commit,
    decode_node,
    encode_commit,
    encode_node,
    object_id,
    value_id_of,
)
from nessie_cli.model import Problem, ProblemKind, ReflogEntry
from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import connect, create
from nessie_cli.store.opening import open_store
from nessie_cli.store.records import Done, Move, ReflogRow, StoredObject
from nessie_cli.store.rows import with_check
from tests.repository.vocabulary import Catalog, key, write_history
from tests.store.samples import a_write, write

pytestmark = pytest.mark.slow

DAY = 86_400 * 10**6
"""Microseconds."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with values, small and large trees, merges and long lists of operations; every
    object in it is needed."""
    path = tmp_path_factory.mktemp("fsck") / "sound.sqlite"
    with create(str(path)) as repository:
        catalog = Catalog(repository)
        write_history(catalog)
        for n in range(5):
            catalog.write("main", {"t077": 1000 + n})
        assert list(repository.check()) == []
    assert not path.with_name("sound.sqlite-wal").exists()
    return path


@pytest.fixture
def store(sound: Path, tmp_path: Path) -> Path:
    path = tmp_path / "store.sqlite"
    path.write_bytes(sound.read_bytes())
    return path


def sql(path: Path, statement: str, *values: object) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def problems(path: Path) -> list[Problem]:
    with connect(str(path)) as repository:
        return list(repository.check())


def rows(path: Path) -> list[tuple[int, bytes, int, bytes]]:
    return sql(path, "SELECT rowid, id, kind, packed FROM objects ORDER BY length(packed)")  # type: ignore[return-value]


def positions(data: bytes, kind: int, seen: set[int], chance: random.Random) -> Iterator[int]:
    """Returns every byte of the smallest object of each kind, and some of all others."""
    if kind not in seen:
        seen.add(kind)
        yield from range(len(data))
    else:
        yield from {0, len(data) - 1, chance.randrange(len(data)), chance.randrange(len(data))}


def test_an_intact_store_has_no_problems(store: Path) -> None:
    assert problems(store) == []


def test_a_flipped_byte_anywhere_in_an_object_is_found(store: Path) -> None:
    chance = random.Random(20260131)
    seen: set[int] = set()
    tried = 0
    for number, (row, id_, kind, data) in enumerate(rows(store)):
        if kind == Kind.VALUE and number % 6:
            continue
        for position in positions(data, kind, seen, chance):
            flipped = bytearray(data)
            flipped[position] ^= 1 << chance.randrange(8)
            sql(store, "UPDATE objects SET packed = ? WHERE rowid = ?", bytes(flipped), row)
            found = problems(store)
            assert any(p.kind == ProblemKind.DAMAGED and p.where == id_.hex() for p in found), (
                id_.hex(),
                kind,
                position,
            )
            assert all("\n" not in p.message for p in found)
            tried += 1
        sql(store, "UPDATE objects SET packed = ? WHERE rowid = ?", data, row)
    assert seen == set(Kind)
    assert tried > 200
    assert problems(store) == []


def test_missing_and_additional_bytes_are_found(store: Path) -> None:
    for row, id_, _, data in rows(store)[:30]:
        for wrong in (b"", data[:-1], data[:1], data + b"\x00", data * 2):
            sql(store, "UPDATE objects SET packed = ? WHERE rowid = ?", wrong, row)
            assert any(
                p.kind == ProblemKind.DAMAGED and p.where == id_.hex() for p in problems(store)
            )
        sql(store, "UPDATE objects SET packed = ? WHERE rowid = ?", data, row)


def test_an_object_under_another_id_or_kind_is_found(store: Path) -> None:
    for row, id_, kind, _ in rows(store)[:30]:
        other = bytes([id_[0] ^ 1]) + id_[1:]
        sql(store, "UPDATE objects SET id = ? WHERE rowid = ?", other, row)
        found = problems(store)
        assert any(p.where == other.hex() for p in found)
        assert any(p.kind in (ProblemKind.MISSING, ProblemKind.BAD_REFERENCE) for p in found)
        sql(store, "UPDATE objects SET id = ?, kind = ? WHERE rowid = ?", id_, kind % 3 + 1, row)
        assert problems(store)
        sql(store, "UPDATE objects SET kind = 99 WHERE rowid = ?", row)
        assert problems(store)
        sql(store, "UPDATE objects SET kind = ? WHERE rowid = ?", kind, row)


def holders(path: Path) -> dict[Id, set[str]]:
    """Returns for each object the objects and references that name it."""
    found: dict[Id, set[str]] = {}

    def add(holder: str, ids: Iterable[Id]) -> None:
        for id_ in ids:
            found.setdefault(id_, set()).add(holder)

    def values(node: Node) -> list[Id]:
        return [value_id_of(node.slice(index)) for index in range(len(node.keys))]

    store = open_store(str(path))
    for one in store.scan():
        assert isinstance(one, StoredObject)
        if one.kind == Kind.NODE:
            node = decode_node(one.data)
            add(one.id.hex(), node.children() if node.level else values(node))
        elif one.kind == Kind.COMMIT:
            commit = decode_commit(one.data)
            add(one.id.hex(), (*commit.parents, commit.jump, commit.root))
            add(
                one.id.hex(),
                [commit.operations]
                if len(commit.operations) == len(one.id)
                else values(decode_node(commit.operations)),
            )
    for reference in store.references():
        add(reference.name, [reference.target])
    restorable = {end: row.move.name for row in reversed(store.reflog()) for end in ends(row)}
    for end, name in restorable.items():
        add(name, [end])
    store.close()
    return found


def ends(row: ReflogRow) -> list[Id]:
    """Returns the positions to which `nessie undo` can restore a reference."""
    return [end for end in (row.move.before, row.move.after) if end is not None]


def test_every_missing_object_is_found(store: Path) -> None:
    """Commits and nodes are reported by their own id, values by their key."""
    whole = store.read_bytes()
    needed = holders(store)
    for row, id_, kind, _ in rows(store):
        sql(store, "DELETE FROM objects WHERE rowid = ?", row)
        lost = [
            p for p in problems(store) if p.kind in (ProblemKind.MISSING, ProblemKind.BAD_REFERENCE)
        ]
        text = "the value of" if kind == Kind.VALUE else id_.hex()[:16]
        # A commit whose state cannot be read may need the object far below its root.
        named = {p.where for p in lost if text in p.message and "cannot be read" not in p.message}
        assert named == needed[id_] != set(), id_.hex()
        store.write_bytes(whole)


def test_a_missing_commit_that_only_the_reflog_needs_is_found(store: Path) -> None:
    with connect(str(store)) as repository:
        catalog = Catalog(repository)
        catalog.branch("former")
        lost = catalog.write("former", {"b": 1})
        repository.delete_reference("former", expected_hash=lost)
        [entry] = [entry for entry in repository.reflog("former") if entry.after is None]
    assert problems(store) == []
    sql(store, "DELETE FROM objects WHERE id = ?", bytes.fromhex(lost))
    (problem,) = problems(store)
    assert (problem.kind, problem.where) == (ProblemKind.MISSING, "former")
    assert problem.message == (
        f"entry {entry.number} of the reflog of 'former' leads to {lost[:16]}, which is not a commit"
        " here"
    )
    with connect(str(store), clock=lambda: entry_time(entry) + 91 * DAY) as repository:
        assert list(repository.check()) == []


def entry_time(entry: ReflogEntry) -> int:
    return round(entry.time.timestamp() * 10**6)


def test_a_store_without_a_property_is_damaged(store: Path) -> None:
    sql(store, "DELETE FROM settings WHERE name = '.default-branch'")
    with pytest.raises(DamagedObject, match=r"the setting \.default-branch is missing"):
        connect(str(store))


@pytest.mark.parametrize("name", [".created", ".tree"])
def test_a_missing_property_is_found(store: Path, name: str) -> None:
    sql(store, "DELETE FROM settings WHERE name = ?", name)
    (problem,) = problems(store)
    assert f"setting '{name}' is missing" in problem.message


def set_target(path: Path, target: object) -> None:
    """Moves the tag without any checks; the row itself is valid."""
    [(newest,)] = sql(path, "SELECT newest FROM refs WHERE name = 'v1'")
    *_, check = with_check("refs", "v1", "TAG", target, newest)
    sql(path, "UPDATE refs SET target = ?, check_sum = ? WHERE name = 'v1'", target, check)


def test_a_damaged_row_of_a_reference_is_found(store: Path) -> None:
    sql(store, "UPDATE refs SET target = ? WHERE name = 'v1'", b"\x11" * 32)
    (problem,) = problems(store)
    assert problem.kind == ProblemKind.DAMAGED
    assert "refs" in problem.message


def test_a_damaged_page_affects_only_its_own_rows(store: Path) -> None:
    [(page,)] = sql(
        store, "SELECT pageno FROM dbstat WHERE name = 'reflog' AND pagetype = 'leaf' LIMIT 1"
    )
    whole = bytearray(store.read_bytes())
    whole[4096 * int(str(page)) - 1] ^= 1
    store.write_bytes(whole)
    assert [(p.kind, p.where) for p in problems(store)] == [(ProblemKind.DAMAGED, "reflog")]


def test_a_reference_at_a_missing_commit_is_found(store: Path) -> None:
    set_target(store, b"\x11" * 32)
    moved, problem = problems(store)
    assert (moved.kind, moved.where) == (ProblemKind.DAMAGED, "references")
    assert (problem.kind, problem.where) == (ProblemKind.BAD_REFERENCE, "v1")


def test_a_reference_to_another_kind_of_object_is_found(store: Path) -> None:
    (target,) = sql(store, "SELECT id FROM objects WHERE kind = ?", int(Kind.VALUE))[0]
    set_target(store, target)
    _, problem = problems(store)
    assert (problem.kind, problem.where) == (ProblemKind.BAD_REFERENCE, "v1")


def answer(repository: Repository, number: int) -> str:
    """Returns everything that can be read in one of two ways, or the code of the error."""
    try:
        return repr(
            list(
                repository.log("main", operations=True)
                if number
                else repository.entries("main", content=True)
            )
        )
    except NessieError as fault:
        return fault.code


def test_damage_never_causes_a_wrong_answer(store: Path) -> None:
    with connect(str(store)) as repository:
        sound_answers = [answer(repository, number) for number in (0, 1)]
    for row, _, _, data in rows(store):
        flipped = bytearray(data)
        flipped[len(data) // 2] ^= 0x10
        sql(store, "UPDATE objects SET packed = ? WHERE rowid = ?", bytes(flipped), row)
        with connect(str(store)) as repository:
            for number, right in enumerate(sound_answers):
                assert answer(repository, number) in (right, "DAMAGED_OBJECT")
        sql(store, "UPDATE objects SET packed = ? WHERE rowid = ?", data, row)


# -- invalid objects with valid checksums --


def add(path: Path, kind: Kind, data: bytes) -> Id:
    id_ = object_id(kind, data)
    store = open_store(str(path))
    try:
        store.put([StoredObject(id_, kind, data)])
    finally:
        store.close()
    return id_


def point(path: Path, target: Id) -> None:
    store = open_store(str(path))
    move = Move("crafted", "BRANCH", None, target, 0, "", "create", "", "r")
    assert write(store, a_write(moves=[move], result=b"")) == Done()
    store.close()


def newest(path: Path) -> tuple[Id, StoredCommit]:
    store = open_store(str(path))
    reference = store.reference("main")
    assert reference is not None
    commit = decode_commit(store.get([reference.target])[reference.target])
    store.close()
    return reference.target, commit


WRONG_COMMITS: dict[str, Callable[[Id, StoredCommit], StoredCommit]] = {
    "jump to an ancestor that is not the right one": lambda _, c: structs.replace(
        c, jump=c.parents[0] if c.jump != c.parents[0] else c.root
    ),
    "jump to the empty history": lambda _, c: structs.replace(c, jump=object_id(Kind.COMMIT, b"")),
    "height": lambda _, c: structs.replace(c, height=c.height + 1),
    "generation": lambda _, c: structs.replace(c, generation=c.generation + 5),
    "time before its parent": lambda _, c: structs.replace(c, time=c.time - 10**12),
    "missing first parent": lambda _, c: structs.replace(c, parents=(b"\x22" * 32,)),
    "missing merge parent": lambda _, c: structs.replace(c, parents=(*c.parents, b"\x22" * 32)),
    "missing root": lambda _, c: structs.replace(c, root=b"\x33" * 32),
    "root that is no node": lambda id_, c: structs.replace(c, root=id_),
    "number of operations": lambda _, c: structs.replace(c, operation_count=c.operation_count + 1),
    "operations that are not understood": lambda _, c: structs.replace(c, operations=b"\x99" * 40),
    "missing list of operations": lambda _, c: structs.replace(c, operations=b"\x44" * 32),
    "operation with a missing value": lambda _, c: structs.replace(
        c,
        operations=encode_node(Node(0, (b"k",), b"\x01" + b"\x05" * 16 + b"\x55" * 32)),
        operation_count=1,
    ),
    "no parents": lambda _, c: structs.replace(c, parents=()),
}


@pytest.mark.parametrize("fault", WRONG_COMMITS)
def test_an_invalid_commit_is_found(store: Path, fault: str) -> None:
    head, commit = newest(store)
    wrong = WRONG_COMMITS[fault](head, commit)
    assert wrong != commit
    id_ = add(store, Kind.COMMIT, encode_commit(wrong))
    point(store, id_)
    found = problems(store)
    assert any(p.where == id_.hex() for p in found), found


def test_every_wrong_jump_pointer_is_found(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with create(str(path)) as repository:
        catalog = Catalog(repository)
        for n in range(40):
            catalog.write("main", {"a": n})
        line = [bytes.fromhex(h) for h in catalog.hashes()]
    store = open_store(str(path))
    head = decode_commit(store.get([line[0]])[line[0]])
    store.close()
    crafted = {
        add(path, Kind.COMMIT, encode_commit(structs.replace(head, jump=wrong)))
        for wrong in line[1:]
        if wrong != head.jump
    }
    assert {bytes.fromhex(p.where) for p in problems(path)} == crafted


WRONG_NODES: dict[str, Callable[[Node], Node]] = {
    "keys out of order": lambda n: Node(n.level, (n.keys[1], n.keys[0], *n.keys[2:]), n.payload),
    "a key twice": lambda n: Node(n.level, (n.keys[0], n.keys[0], *n.keys[2:]), n.payload),
    "too little payload": lambda n: Node(n.level, n.keys, n.payload[:-1]),
    "a key without payload": lambda n: Node(n.level, (*n.keys, n.keys[-1] + b"z"), n.payload),
    "no keys": lambda n: Node(n.level, (), b""),
    "a link to nothing": lambda n: Node(n.level, n.keys, n.payload[:-40] + b"\x66" * 40),
    "another level": lambda n: Node(n.level + 1, n.keys, n.payload),
}


@pytest.mark.parametrize("fault", WRONG_NODES)
@pytest.mark.parametrize("level", [0, 1])
def test_an_invalid_node_is_found(store: Path, fault: str, level: int) -> None:
    nodes = [decode_node(stored.data) for stored in scanned(store, Kind.NODE)]
    sample = next(n for n in nodes if n.level == level and len(n.keys) > 3)
    id_ = add(store, Kind.NODE, encode_node(WRONG_NODES[fault](sample)))
    assert any(p.where == id_.hex() for p in problems(store))


@pytest.mark.parametrize("fault", ["last key", "number of keys"])
def test_an_inner_node_that_misdescribes_its_child_is_found(store: Path, fault: str) -> None:
    nodes = [decode_node(stored.data) for stored in scanned(store, Kind.NODE)]
    sample = next(n for n in nodes if n.level == 1)
    wrong = (
        Node(1, (*sample.keys[:-1], sample.keys[-1] + b"z"), sample.payload)
        if fault == "last key"
        else Node(1, sample.keys, sample.payload[:-1] + bytes([sample.payload[-1] ^ 1]))
    )
    id_ = add(store, Kind.NODE, encode_node(wrong))
    (problem,) = problems(store)
    assert (problem.kind, problem.where) == (ProblemKind.BROKEN_LINK, id_.hex())


def test_a_commit_on_a_tree_whose_node_ends_too_early_is_found(store: Path) -> None:
    """The key belongs into a node that ends before it: an edit of that tree must not loop for
    ever."""
    _, commit = newest(store)
    nodes = {one.id: decode_node(one.data) for one in scanned(store, Kind.NODE)}
    root = nodes[commit.root]
    assert root.level == 1
    first = root.keys[0]
    wrong = add(
        store, Kind.NODE, encode_node(Node(1, (first + b"z", *root.keys[1:]), root.payload))
    )
    before = next(
        decode_commit(one.data)
        for one in scanned(store, Kind.COMMIT)
        if one.id == commit.parents[0]
    )
    parent = add(store, Kind.COMMIT, encode_commit(structs.replace(before, root=wrong)))
    jump = parent if commit.jump == commit.parents[0] else commit.jump
    operations = encode_node(Node(0, (first + b"m",), nodes[root.child(0)].slice(0)))
    crafted = structs.replace(
        commit, parents=(parent,), jump=jump, operations=operations, operation_count=1
    )
    id_ = add(store, Kind.COMMIT, encode_commit(crafted))
    found = problems(store)
    assert any(p.where == wrong.hex() and p.kind == ProblemKind.BROKEN_LINK for p in found)
    assert any(p.where == id_.hex() and "cannot be read" in p.message for p in found)


def scanned(path: Path, kind: Kind) -> list[StoredObject]:
    store = open_store(str(path))
    try:
        return [found for found in store.scan(kind) if isinstance(found, StoredObject)]
    finally:
        store.close()


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"not json", b'{"type":"ICEBERG_TABLE"}', b'{"type":""}', b"\xff"]
)
def test_an_invalid_value_is_found(store: Path, data: bytes) -> None:
    id_ = add(store, Kind.VALUE, data)
    assert any(p.where == id_.hex() for p in problems(store))


def test_the_empty_tree_needs_no_node(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with create(str(path)) as repository:
        catalog = Catalog(repository)
        catalog.write("main", {"a": 1})
        catalog.write("main", {"a": None})
    assert problems(path) == []
    assert tree.EMPTY not in {id_ for _, id_, _, _ in rows(path)}


# -- the commit index --


def test_lost_index_entries_of_commits_are_found(store: Path) -> None:
    entries = sql(store, "SELECT entry, object FROM object_index")
    assert entries
    for entry, row in entries[::6]:
        sql(store, "DELETE FROM object_index WHERE entry = ? AND object = ?", entry, row)
        assert problems(store), "the log of a key would leave a commit out, and nobody would know"
        sql(store, "INSERT INTO object_index VALUES (?, ?)", entry, row)
    assert problems(store) == []


def test_additional_index_entries_change_no_answer(store: Path) -> None:
    def answers() -> list[object]:
        with connect(str(store)) as repository:
            return [
                repository.last_change("main", key(name))
                for name in ("b", "n.a", "t077", "t000", "never")
            ]

    before = answers()
    sql(
        store,
        (
            "INSERT OR IGNORE INTO object_index SELECT i.entry, o.number FROM (SELECT DISTINCT"
            " entry FROM object_index) AS i, objects AS o"
        ),
    )
    assert answers() == before
