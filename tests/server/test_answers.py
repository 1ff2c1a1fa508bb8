"""Cached answers: never older than the store, whichever client has written."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest

from nessie_cli import connect, create
from nessie_cli.errors import NotInMemory
from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    Delete,
    IcebergTable,
    Put,
    ReferenceType,
)
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pipeline.reads import Answers, Made
from nessie_cli.server.running import application
from tests.server.client import EMPTY, Client, put, table
from tests.server.processes import started
from tests.server.serving import serving
from tests.server.test_memory import resident
from tests.store.postgres_server import new_url, shared_server
from tests.store.test_postgres_costs import Counter

A_TABLE = IcebergTable(metadata_location="file:/a", snapshot_id=1)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "catalog.sqlite")


def test_a_read_after_an_acknowledged_write_sees_it(client):
    for number in range(20):
        content = client.commit("main", EMPTY, put(f"t{number}", content=table(number)))
        head = content.body["targetBranch"]["hash"]
        for _ in range(2):
            assert client.head() == head
            assert len(client.get("/api/v2/trees/main/entries").body["entries"]) == number + 1


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request, path):
    """Yields the URL of a store that several repositories can open at once."""
    with new_url() if request.param == "postgres" else nullcontext(f"sqlite:///{path}") as url:
        yield url


def test_a_cached_answer_costs_one_round_trip_to_the_database():
    server = shared_server()
    with new_url() as url:
        counter = Counter(server.port)
        with (
            create(url.replace(f":{server.port}/", f":{counter.port}/")) as repository,
            serving(repository) as served,
        ):
            client = Client(served)
            client.commit("main", EMPTY, put("a"))
            costs = []
            for _ in range(50):
                before = counter.answers
                assert client.get("/api/v2/trees/main/contents/a").status == 200
                costs.append(counter.answers - before)
        counter.close()
    # The database server may write something itself in between.
    assert costs.count(1) > 40, costs


def test_an_answer_is_cached_while_other_references_move():
    server = shared_server()
    with new_url() as url:
        counter = Counter(server.port)
        with (
            create(url.replace(f":{server.port}/", f":{counter.port}/")) as repository,
            connect(url) as other,
            serving(repository) as served,
        ):
            client = Client(served)
            head = client.commit("main", EMPTY, put("a")).body["targetBranch"]["hash"]
            other.create_reference(ReferenceType.BRANCH, "dev", head)
            paths = [
                f"/api/v2/trees/{path}"
                for path in (
                    "main/contents/a",
                    "main/entries",
                    "main/history",
                    f"dev@{head}/contents/a",
                    f"main/diff/dev@{head}",
                )
            ]
            for path in paths:
                assert client.get(path).status == 200
            costs = []
            for number in range(10):
                other.commit("dev", [Put(ContentKey((f"b{number}",)), A_TABLE)], CommitMeta("b"))
                before = counter.answers
                for path in paths:
                    assert client.get(path).status == 200
                costs.append(counter.answers - before)
        counter.close()
    # The database server may write something itself in between.
    assert costs.count(len(paths)) > 7, costs


def test_a_repository_at_heads_reads_references_where_they_were(shared):
    with create(shared) as repository:
        repository.commit("main", [Put(ContentKey(("a",)), A_TABLE)], CommitMeta("a"))
        heads = repository.heads(["main", "other"])
        assert heads == (repository.reference("main"), None)
        repository.commit("main", [Delete(ContentKey(("a",)))], CommitMeta("gone"))
        earlier = repository.at_heads(heads[:1])
        assert [entry.key.plain for entry in earlier.entries("main")] == ["a"]
        assert list(earlier.references()) == [heads[0]]
        assert list(repository.entries("main")) == []


def test_a_read_in_memory_needs_no_store_or_says_so(shared):
    """A written content is in memory; one that another repository wrote, once it was read."""
    keys = [ContentKey((f"{number}",)) for number in range(100)]

    def read(reader, key, **options):
        return reader.at_heads(reader.heads(["main"]), **options).contents("main", [key])

    with create(shared) as repository, connect(shared) as other:
        repository.commit("main", [Put(keys[0], A_TABLE)], CommitMeta("a"))
        contents = read(repository, keys[0], in_memory=True)
        assert contents[keys[0]].metadata_location == A_TABLE.metadata_location
        with pytest.raises(NotInMemory):
            read(other, keys[0], in_memory=True)
        assert read(other, keys[0]) == contents
        assert read(other, keys[0], in_memory=True) == contents
        tables = [IcebergTable(metadata_location="file:/t", snapshot_id=n) for n in range(99)]
        repository.commit("main", list(map(Put, keys[1:], tables)), CommitMeta("a load"))
        with pytest.raises(NotInMemory):
            read(repository, keys[-1], in_memory=True)
        with pytest.raises(NotInMemory):
            repository.at_heads([], in_memory=True).reference("main")


def test_short_reads_have_the_same_answers_in_memory_and_from_the_store(path):
    """The second server has nothing in memory."""
    with (
        create(f"sqlite:///{path}") as repository,
        connect(f"sqlite:///{path}") as other,
        serving(repository) as first,
        serving(other) as second,
    ):
        client, reader = Client(first), Client(second)
        head = client.commit("main", EMPTY, put("a", content=table(1))).body["targetBranch"]["hash"]
        for key in ("a", "none", "a.b", "%00", ""):
            for at in ("main", f"main@{head}", f"@{head}", "main@0000", "none"):
                url = f"/api/v2/trees/{at}/contents/{key}"
                answers = [client.get(url), client.get(url), reader.get(url), reader.get(url)]
                assert len({(answer.status, answer.raw) for answer in answers}) == 1, url


def test_an_error_of_a_short_read_is_not_cached(client):
    """Its details depend on a header of the request."""
    url, answers = "/api/v2/trees/main/contents/none", []
    for spec in ("2", "1", "2"):
        answer = client.send("GET", url, headers={"nessie-client-spec": spec})
        answers.append("errorDetails" in answer.body)
    assert answers == [True, False, True]


def test_equal_requests_at_once_are_answered_once():
    server = shared_server()
    with new_url() as url:
        counter = Counter(server.port)
        with (
            create(url.replace(f":{server.port}/", f":{counter.port}/")) as repository,
            connect(url) as other,
            serving(repository) as served,
            ThreadPoolExecutor(16) as threads,
        ):
            clients = [Client(served) for _ in range(16)]
            costs = []
            for number in range(10):
                operations = [Put(ContentKey((f"{number}-{key}",)), A_TABLE) for key in range(300)]
                other.commit("main", operations, CommitMeta("many"))
                before = counter.answers
                answers = [
                    answer.body
                    for answer in threads.map(
                        lambda client: client.get("/api/v2/trees/main/entries?content=true"),
                        clients,
                    )
                ]
                costs.append(counter.answers - before)
                assert len(answers[0]["entries"]) == 300 * (number + 1)
                assert all(answer == answers[0] for answer in answers)
        counter.close()
    # Each answer by a handler takes several round trips, beside those that read the head.
    assert sorted(costs)[5] < 48, costs


def test_writes_of_other_processes_and_connections_are_seen_at_once(shared):
    with create(shared) as repository, create(shared) as other, serving(repository) as url:
        client = Client(url)
        client.commit("main", EMPTY, put("a"))
        for _ in range(2):
            assert client.get("/api/v2/trees/main/contents/a").status == 200
        other.commit("main", [Delete(ContentKey(("a",)))], CommitMeta("gone"))
        assert client.get("/api/v2/trees/main/contents/a").status == 404
        other.put_setting("protect.main", "no-rewind")
        assert client.get("/api/v2/config").status == 200


def test_answers_are_cached_for_each_kind_of_client(client):
    client.commit("main", EMPTY, *(put(f"table-{number}") for number in range(100)))
    plain = client.get("/api/v2/trees/main/entries")
    packed = client.get("/api/v2/trees/main/entries", **{"accept-encoding": "gzip"})
    again = client.get("/api/v2/trees/main/entries")
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in again.headers
    assert again.raw == plain.raw
    assert again.headers["x-request-id"] != plain.headers["x-request-id"]
    assert client.send("HEAD", "/api/v2/trees/main/entries").headers["content-length"] == str(
        len(plain.raw)
    )


def test_acknowledged_writes_are_seen_through_every_server(shared):
    """Readers and a writer run concurrently: an acknowledged write is in the next answer of the
    other server."""
    with (
        create(shared) as one,
        create(shared) as two,
        serving(one) as first,
        serving(two) as second,
    ):
        head = Client(first).commit("main", EMPTY, put("t")).body["targetBranch"]["hash"]
        acknowledged = [0]

        def read(url):
            client = Client(url)
            for _ in range(150):
                before = acknowledged[0]
                found = client.get("/api/v2/trees/main/contents/t").body["content"]["snapshotId"]
                assert found >= before
            return True

        with ThreadPoolExecutor(8) as threads:
            readers = [threads.submit(read, (first, second)[number % 2]) for number in range(8)]
            writer = Client(first)
            known = writer.get("/api/v2/trees/main/contents/t").body["content"]
            number = 0
            while not all(reader.done() for reader in readers):
                number += 1
                answer = writer.commit(
                    "main", head, put("t", content=known | {"snapshotId": number})
                )
                head = answer.body["targetBranch"]["hash"]
                acknowledged[0] = number
            assert all(reader.result() for reader in readers)
        assert number > 1


def kept(app):
    """Returns the requests whose answers a server has cached."""
    return list(app._reads._answers._cached)


class Counting:
    def __init__(self):
        self.number = 1

    def version(self):
        return self.number


def test_the_size_of_the_cache_is_limited():
    store = Counting()
    answers = Answers(most_bytes=10_000)
    for number in range(100):
        answers.keep(number, store.version(), Made(Reply(200, [], bytes(2_000))))
    kept = [number for number in range(100) if answers.find(number, store.version())]
    assert 1 <= len(kept) <= 6
    assert 99 in kept
    store.number += 1
    assert answers.find(99, store.version()) is None


def test_requests_count_towards_the_size_of_the_cache():
    answers = Answers(most_bytes=1_000_000)
    for number in range(1000):
        answers.keep(number, 1, Made(Reply(200, [], b"{}")), 60_000)
    assert 1 <= sum(answers.find(number, 1) is not None for number in range(1000)) <= 16


@pytest.mark.parametrize(
    "query", ["x={}", "max-records={}&x=1", "max-records={0}&max-records={0}", "filter=&x={}", "{}"]
)
def test_answers_to_junk_parameters_are_not_cached(query):
    with connect("memory:") as repository, serving(app=(app := application(repository))) as url:
        client = Client(url)
        for number in range(50):
            assert client.get(
                "/api/v2/trees/main/entries?" + query.format(str(number).zfill(1000))
            ).status in (200, 404)
        assert client.get("/api/v2/trees/main/entries?max-records=1&key=a&key=b").status == 200
        client.close()
    assert [path for path, *_ in kept(app)] == [b"/api/v2/trees/main/entries"]


def test_extensions_are_part_of_the_cache_key(client):
    extended = [
        client.get("/api/v2/config", **{"nessie-cli": value}).body
        for value in ("1", "", "x" * 1000)
    ]
    plain = client.get("/api/v2/config").body
    assert "additionalProperties" not in plain
    assert [found["additionalProperties"] for found in extended] == [
        extended[0]["additionalProperties"]
    ] * 3


def test_junk_parameters_take_no_memory(tmp_path):
    """Simulates an attack: thousands of requests, each with a junk query of 60 KB."""
    create(str(tmp_path / "catalog.sqlite")).close()
    with started("--store", str(tmp_path / "catalog.sqlite")) as (process, url):
        client = Client(url)
        for number in range(200):
            client.get(f"/api/v2/trees/main?x={number:060000}")
        before = resident(process.pid)
        for number in range(200, 1500):
            client.get(f"/api/v2/trees/main?x={number:060000}")
        assert resident(process.pid) - before < 20 << 20
        client.close()


def test_nothing_is_cached_for_a_repository_without_a_version():
    answers = Answers()
    answers.keep("a", None, Made(Reply(200, [])))
    assert answers.find("a", None) is None
