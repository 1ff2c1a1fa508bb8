"""Random calls have the same outcomes and final state in PostgreSQL and in a SQLite store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nessie_cli.store.base import Store
from nessie_cli.store.opening import create_store
from nessie_cli.store.postgres import PostgresStore, create_postgres
from nessie_cli.store.records import Move, RequestRecord, StoredObject, Write
from tests.store.postgres_server import new_url
from tests.store.samples import id_of

NAMES = st.sampled_from(["a", "b", "ä", "B"])
PLACES = st.sampled_from([None, None, id_of("1"), id_of("2")])
IDS = st.sampled_from([id_of(text) for text in "12345"])
KINDS = st.sampled_from(["BRANCH", "BRANCH", "TAG"])

MOVES = st.builds(
    Move,
    NAMES,
    KINDS,
    PLACES,
    PLACES,
    st.just(7),
    st.just("who"),
    st.just("commit"),
    st.sampled_from(["", "text"]),
    st.sampled_from(["", "r"]),
)
# The index entry of an object always belongs to it.
OBJECTS = st.sampled_from(
    [
        StoredObject(id_of(text), 3, b"data" * 200, (b"x", b"y")[: n % 3])
        for n, text in enumerate("12345")
    ]
)
REQUESTS = st.builds(
    RequestRecord,
    st.sampled_from(["", *"pqrstuvw"]),
    st.just("caller"),
    st.sampled_from([b"1", b"2"]),
    st.just(b"result"),
    st.just(9),
)
WRITES = st.builds(
    Write,
    REQUESTS,
    st.lists(OBJECTS, max_size=3),
    st.lists(MOVES, max_size=3),
    st.dictionaries(st.sampled_from("mn"), st.sampled_from([None, "1", "2"]), max_size=2),
    st.lists(IDS, max_size=2),
    st.sampled_from([None, None, 0, 1, 2]),
)
CALLS = st.lists(st.lists(WRITES, min_size=1, max_size=6), min_size=1, max_size=5)


@pytest.fixture(scope="module")
def stores() -> Iterator[Iterator[PostgresStore]]:
    """Yields empty stores, one after another."""
    with new_url() as url:
        made: list[PostgresStore] = []

        def make() -> Iterator[PostgresStore]:
            for _ in count():
                store = made[0] if made else create_postgres(url)
                made[:] = [store]
                with store._pool.connection() as connection:
                    for table in (
                        "objects",
                        "index_entries",
                        "refs",
                        "reflog",
                        "anchors",
                        "requests",
                        "settings",
                    ):
                        connection.execute(f"DELETE FROM {table}")
                yield store

        yield make()
        made[0].close()


def state(store: Store) -> object:
    """Returns everything except the numbers, whose order is compared."""
    return (
        sorted(
            (one.id, one.kind, one.data) for one in store.scan() if isinstance(one, StoredObject)
        ),
        sorted(store.scan_index()),
        [[id_ for _, id_ in store.find_indexed(entry, None, 100)] for entry in (b"x", b"y")],
        store.references(),
        [row.move for row in store.reflog()],
        store.settings(),
        [store.request(id_) for id_ in "pqrstuvw"],
    )


@settings(
    max_examples=80,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(calls=CALLS)
def test_random_calls_have_the_same_outcomes(
    stores: Iterator[PostgresStore], calls: list[list[Write]]
) -> None:
    postgres = next(stores)
    with closing(create_store("memory:")) as memory:
        for call in calls:
            assert postgres.commit(call) == memory.commit(call)
            assert state(postgres) == state(memory)
            assert list(postgres.verify_file()) == []
