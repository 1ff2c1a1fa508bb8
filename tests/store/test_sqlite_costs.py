"""The costs of a SQLite store: pages, bytes, and the index of each query."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import apsw

from nessie_cli.store.records import Done, RequestRecord, StoredObject, Write
from nessie_cli.store.sqlite.store import create_sqlite, open_sqlite
from tests.store.samples import (
    COMMIT,
    NODE,
    VALUE,
    Clock,
    a_move,
    a_write,
    an_object,
    create,
    id_of,
    write,
)


def test_writing_a_young_object_again_costs_no_page(path: str) -> None:
    clock = Clock()
    store = create_sqlite(path, clock=clock)
    objects = [an_object(str(n)) for n in range(50)]
    store.put(objects)

    def log_size() -> int:
        return Path(path + "-wal").stat().st_size

    size = log_size()
    clock.now += 3600
    store.put(objects)
    assert log_size() == size
    clock.now += 1
    store.put(objects)
    assert log_size() > size
    store.close()


def test_a_one_key_commit_at_500_tables_costs_less_than_six_kilobytes(path: str) -> None:
    """Two nodes, a commit, a value and a move, as the kernel writes them, in realistic and
    incompressible sizes."""
    random = Random(1)
    store = create_sqlite(path)
    write(store, create("main", "0"))
    connection = apsw.Connection(path)
    connection.execute("PRAGMA synchronous = OFF")
    count = 1500
    for n in range(count):
        sizes = ((VALUE, 300), (NODE, 1300), (NODE, 700), (COMMIT, 350))
        objects = [
            StoredObject(random.randbytes(32), kind, random.randbytes(size)) for kind, size in sizes
        ]
        id_ = random.randbytes(16).hex()
        move = a_move("main", str(n), str(n + 1), request_id=id_, message="nightly load of a table")
        request = RequestRecord(
            id_, "somebody", random.randbytes(32), random.randbytes(40), move.time
        )
        write(store, Write(request, objects, [move]))
    connection.close()
    store.close()
    assert Path(path).stat().st_size / count < 4800


def test_reading_a_page_of_references_does_not_read_the_others(path: str) -> None:
    store = create_sqlite(path)
    write(
        store,
        a_write(
            moves=[a_move(f"tag/{n:05}", None, "0", kind="TAG") for n in range(3000)]
            + [a_move("main", None, "0")]
        ),
    )
    store.close()
    connection = apsw.Connection(path)

    def plan(sql: str) -> str:
        return " ".join(
            row[3]
            for row in connection.execute("EXPLAIN QUERY PLAN " + sql, (None,) * sql.count("?"))
        )

    statements: list[str] = []

    def note(_: object, sql: str, __: object) -> bool:
        statements.append(sql)
        return True

    def trace(opened: apsw.Connection) -> None:
        opened.set_exec_trace(note)

    apsw.connection_hooks.append(trace)
    try:
        store = open_sqlite(path)
        statements.clear()
        store.references("BRANCH", "", "", 10)
        store.references(None, "tag/", "tag/02", 10)
        store.reflog("main", None, 5)
        store.reflog(None, None, 5)
        store.request("x")
        store.basis("main", "x")
        store.find_ids(COMMIT, "ab", 2)
        store.get([id_of("x")])
        store.get([id_of(str(n)) for n in range(9)])
        store.close()
    finally:
        apsw.connection_hooks.remove(trace)
    plans = [plan(sql) for sql in statements]
    connection.close()
    assert len(plans) == 9
    for found in plans:
        assert "TEMP B-TREE" not in found
        assert "SEARCH" in found
        assert "SCAN" not in found.replace("SCAN carray", "").replace("SCAN settings", "")
    assert "refs_by_kind" in plans[0]
    assert "reflog_by_name" in plans[2]
    assert "requests USING PRIMARY KEY" in plans[4]
    assert "requests USING PRIMARY KEY" in plans[5]


def test_writes_wait_for_the_disk_but_leases_do_not(path: str) -> None:
    begun: list[int] = []

    def trace(connection: apsw.Connection) -> None:
        connection.set_exec_trace(note)

    def note(cursor: apsw.Cursor, sql: str, _: object) -> bool:
        if sql == "COMMIT":
            begun.append(cursor.connection.pragma("synchronous"))
        return True

    apsw.connection_hooks.append(trace)
    try:
        store = create_sqlite(path)
        begun.clear()
        for name in ("a", "b"):
            with store.lease(name) as token:
                assert store.commit([create(name)], lease=token) == [Done()]
        with suppress(KeyError), store.lease("a"):
            raise KeyError
        store.put([an_object("x")])
        store.close()
    finally:
        apsw.connection_hooks.remove(trace)
    normal, full = 1, 2
    assert begun == [normal, full, normal] * 2 + [normal, normal, full]
