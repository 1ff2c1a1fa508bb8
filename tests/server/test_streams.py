"""Listings that are sent as they are read."""

import gzip
import http.client
import json
import time
import weakref
from urllib.parse import quote

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nessie_cli import connect, create
from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    Entry,
    IcebergTable,
    Namespace,
    Put,
    ReferenceType,
)
from nessie_cli.server.http.streams import AT_ONCE, listing
from nessie_cli.server.nessie.listings import Filter, FilteredPage, ListingPage
from nessie_cli.server.nessie.v1.namespaces import namespaces_of
from nessie_cli.server.pipeline.exchange import AccessLog
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from nessie_cli.wire.rest import BarePage
from tests.repository.plans import plan
from tests.server.client import EMPTY, Client, put
from tests.server.serving import serving

TABLES = 2 * AT_ONCE + 17


def fill(repository):
    puts = (
        Put(
            ContentKey((f"table {number:05}",)),
            IcebergTable(metadata_location=f"s3://lake/{number}"),
        )
        for number in range(TABLES)
    )
    repository.commit("main", puts, CommitMeta("many"))


def branch(repository):
    head = repository.reference("main").hash
    names = [f"b{number:05}" for number in range(TABLES - 1)]
    repository.commit_all(
        [
            plan(
                lambda c, name=name: c.repository.create_reference(ReferenceType.BRANCH, name, head)
            )
            for name in names
        ]
    )


@pytest.fixture(scope="module")
def url():
    with connect("memory:") as repository, serving(repository) as found:
        fill(repository)
        branch(repository)
        yield found


@pytest.fixture
def client(url):
    found = Client(url)
    yield found
    found.close()


LISTINGS = {
    "v2/trees/main/entries?content=true": "entries",
    f"v2/trees/@{EMPTY}/diff/main": "diffs",
    "v2/trees": "references",
    "v2/trees?fetch=ALL": "references",
    "v1/trees": "references",
    "v1/trees/tree/main/entries": "entries",
    "v2/trees/main/entries?filter=true": "entries",
    f"v2/trees/@{EMPTY}/diff/main?filter=true": "diffs",
    "v2/trees?filter=true": "references",
    "v1/trees/tree/main/entries?filter=true": "entries",
}
WHOLE = {f"v1/diffs/*{EMPTY}...main": "diffs"}
"""Listings without pages in the API."""


@pytest.mark.parametrize("path", LISTINGS | WHOLE)
def test_a_large_listing_is_streamed_and_equals_its_pages(client, path):
    name, most = (LISTINGS | WHOLE)[path], "maxRecords" if path.startswith("v1") else "max-records"
    answer = client.get(f"/api/{path}")
    assert answer.headers["transfer-encoding"] == "chunked"
    assert (answer.body["hasMore"], answer.body["token"], len(answer.body[name])) == (
        False,
        None,
        TABLES,
    )
    if path in LISTINGS:
        page = client.get(f"/api/{path}{'&' if '?' in path else '?'}{most}=3").body
        assert page[name] == answer.body[name][:3]
        assert page.keys() == answer.body.keys()
    packed = client.get(f"/api/{path}", **{"accept-encoding": "gzip"})
    assert json.loads(gzip.decompress(packed.raw)) == answer.body
    assert len(packed.raw) < len(answer.raw) / 3
    head = client.send("HEAD", f"/api/{path}")
    assert (head.status, head.raw) == (200, b"")


@pytest.mark.parametrize("path", LISTINGS)
@pytest.mark.parametrize("size", [AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, TABLES - 1, TABLES])
def test_a_large_page_has_the_token_of_the_next_one(client, path, size):
    name, api = LISTINGS[path], path[:2]
    most, token = ("maxRecords", "pageToken") if api == "v1" else ("max-records", "page-token")
    query = f"/api/{path}{'&' if '?' in path else '?'}"
    first = client.get(f"{query}{most}={size}").body
    assert (len(first[name]), first["hasMore"], first["token"] is not None) == (
        size,
        size < TABLES,
        size < TABLES,
    )
    rest = client.get(f"{query}{token}={first['token']}").body if first["hasMore"] else {name: []}
    assert first[name] + rest[name] == client.get(f"/api/{path}").body[name]


class Numbers(BarePage):
    numbers: list[dict[str, int]]


def test_items_are_read_when_they_are_sent():
    read = []
    items = (read.append(number) or {"number": number} for number in range(10 * AT_ONCE))
    page = ListingPage(items, 5 * AT_ONCE, lambda item: str(item["number"]))
    pieces = listing(Numbers, page, page.token).opened()
    text = next(pieces)
    assert len(read) == AT_ONCE
    text += next(pieces)
    assert len(read) == 2 * AT_ONCE
    assert json.loads(text + b"".join(pieces)) == {
        "numbers": [{"number": number} for number in range(5 * AT_ONCE)],
        "hasMore": True,
        "token": str(5 * AT_ONCE),
    }


class Item:
    def __init__(self, number):
        self.number = number


@pytest.mark.parametrize("held", [50, 5000])
def test_a_filtered_listing_keeps_few_items_in_memory(held):
    alive, most = weakref.WeakSet(), 0

    def read():
        for number in range(1000):
            item = Item(number)
            alive.add(item)
            yield item

    found = FilteredPage(
        read,
        None,
        lambda item: str(item.number),
        Filter(lambda item: item.number % 2 == 1, 60, held),
    )
    for _ in found.search():
        pass
    assert len(alive) == (min(held, 500))
    numbers = []
    for item in found:
        numbers.append(item.number)
        most = max(most, len(alive))
    assert (numbers, found.token()) == (list(range(1, 1000, 2)), None)
    assert most <= held + 2


def test_a_search_proceeds_in_steps_until_its_time_limit():
    def busy(_):
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        return True

    found = FilteredPage(lambda: iter(range(100)), None, str, Filter(busy, 0.5))
    steps = sum(1 for _ in found.search())
    items = list(found)
    assert 5 <= steps <= 10
    assert items == list(range(len(items)))
    assert 20 <= len(items) <= 30
    assert found.token() == str(len(items))


ELEMENTS = st.lists(st.sampled_from(["a", "b", "a!"]), min_size=1, max_size=4).map(tuple)


@given(st.dictionaries(ELEMENTS, st.booleans(), max_size=12), st.integers(1, 2))
def test_namespaces_are_stored_or_implied_by_keys(found, shortest):
    entries = [
        Entry(
            ContentKey(key),
            "",
            "",
            "",
            Namespace(id="x", elements=key)
            if is_namespace
            else IcebergTable(metadata_location="s3://lake"),
        )
        for key, is_namespace in sorted(found.items())
    ]
    wanted = {
        entry.content.elements: entry.content
        for entry in entries
        if isinstance(entry.content, Namespace)
    }
    for key in found:
        for length in range(shortest, len(key)):
            wanted.setdefault(key[:length], Namespace(elements=key[:length]))
    assert list(namespaces_of(entries, shortest)) == [wanted[key] for key in sorted(wanted)]


def test_a_filter_that_fails_late_is_reported_by_the_status(client):
    late = quote("entry.encodedKey != 'table 04000' || 1 / 0 == 1")
    refused = client.get(f"/api/v1/trees/tree/main/entries?filter={late}")
    refused.expect(400, "filter")


def test_a_small_listing_has_a_content_length(client):
    answer = client.get("/api/v2/trees/main/entries?prefix-key=table%2000007")
    assert int(answer.headers["content-length"]) == len(answer.raw)
    assert len(answer.body["entries"]) == 1


def test_a_listing_that_fails_midway_is_not_complete(tmp_path):
    path, lines = str(tmp_path / "catalog.sqlite"), []
    create(path).close()
    with create(path) as writer:
        fill(writer)
    with apsw.Connection(path) as connection:
        # The values of the last tables are missing; those of the first are present.
        rows = connection.execute("SELECT count(*) FROM objects WHERE kind = 1").fetchall()
        assert rows[0][0] == TABLES
    with connect(path) as repository:
        last = [entry.value_hash for entry in repository.entries("main")][-5:]
    with apsw.Connection(path) as connection:
        connection.executemany(
            "DELETE FROM objects WHERE id = ?", [(bytes.fromhex(hash_),) for hash_ in last]
        )
    with (
        connect(path) as repository,
        serving(
            app=application(repository, Parts(log=AccessLog(lines.append, faults=True)))
        ) as url,
    ):
        client = Client(url)
        with pytest.raises(http.client.IncompleteRead):
            client.get("/api/v2/trees/main/entries?content=true")
        client.close()
        again = Client(url)
        assert again.commit("main", again.head(), put("a")).status == 200
        again.close()
    assert json.loads(b"".join(lines))["route"] == "/api/v2/trees/{ref}/entries"


@pytest.mark.parametrize("added", [AT_ONCE - 1, AT_ONCE, TABLES])
@pytest.mark.parametrize("extensions", [{}, {"nessie-cli": "1"}])
def test_the_answer_to_a_commit_has_all_added_contents(added, extensions):
    """The answer to a large commit is sent in pieces."""
    with connect("memory:") as repository, serving(app=application(repository)) as url:
        client = Client(url)
        body = {
            "commitMeta": {"message": "many"},
            "operations": [put(f"t{number:05}") for number in range(added)],
        }
        path = f"/api/v2/trees/main@{EMPTY}/history/commit"
        answer = client.send("POST", path, body, headers=extensions)
        ids = {entry.key.elements: entry.content_id for entry in repository.entries("main")}
        assert answer.status == 200
        assert answer.body["targetBranch"]["hash"] == client.head()
        assert [tuple(one["key"]["elements"]) for one in answer.body["addedContents"]] == [
            tuple(one["key"]["elements"]) for one in body["operations"]
        ]
        assert {
            tuple(one["key"]["elements"]): one["contentId"] for one in answer.body["addedContents"]
        } == ids
        assert answer.body.get("wasApplied") == (True if extensions else None)
        client.close()


def test_the_answer_to_a_large_commit_is_compressed_for_those_who_accept_it():
    with connect("memory:") as repository, serving(app=application(repository)) as url:
        client = Client(url)
        body = {
            "commitMeta": {"message": "many"},
            "operations": [put(f"t{number:05}") for number in range(TABLES)],
        }
        path = f"/api/v2/trees/main@{EMPTY}/history/commit"
        answer = client.send("POST", path, body, headers={"accept-encoding": "gzip"})
        assert len(json.loads(gzip.decompress(answer.raw))["addedContents"]) == TABLES
        client.close()
