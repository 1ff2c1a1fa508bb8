"""Answers that are kept: never older than the store, whoever has written."""

import pytest

from nessie_cli import create
from nessie_cli.model import CommitMeta, ContentKey, Delete
from nessie_cli.server.http import Reply
from nessie_cli.server.runtime.answers import Answers
from tests.server.client import EMPTY, Client, put, table
from tests.server.serving import serving


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


def test_a_write_of_another_process_or_connection_is_seen_at_once(path):
    with create(path) as repository, create(path) as other, serving(repository) as url:
        client = Client(url)
        client.commit("main", EMPTY, put("a"))
        for _ in range(2):
            assert client.get("/api/v2/trees/main/contents/a").status == 200
        other.commit("main", [Delete(ContentKey(("a",)))], CommitMeta("gone"))
        assert client.get("/api/v2/trees/main/contents/a").status == 404
        other.put_setting("protect.main", "no-rewind")
        assert client.get("/api/v2/config").status == 200


def test_one_path_has_answers_for_each_kind_of_client(client):
    client.commit("main", EMPTY, *(put(f"table-{number}") for number in range(100)))
    plain = client.get("/api/v2/trees/main/entries")
    packed = client.get("/api/v2/trees/main/entries", **{"accept-encoding": "gzip"})
    again = client.get("/api/v2/trees/main/entries")
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in again.headers
    assert again.raw == plain.raw
    assert again.headers["x-request-id"] != plain.headers["x-request-id"]
    assert client.send("HEAD", "/api/v2/trees/main/entries").headers["content-length"] == str(len(plain.raw))


class Counting:
    def __init__(self):
        self.number = 1

    def version(self):
        return self.number


def test_what_is_kept_has_a_bound():
    store = Counting()
    answers = Answers(store, most_bytes=10_000)
    for number in range(100):
        answers.keep(number, answers.version(), Reply(200, [], bytes(2_000)))
    kept = [number for number in range(100) if answers.find(number, answers.version())]
    assert 1 <= len(kept) <= 6
    assert 99 in kept
    store.number += 1
    assert answers.find(99, answers.version()) is None


def test_a_repository_that_cannot_tell_whether_it_has_changed_has_nothing_kept():
    unversioned = Counting()
    unversioned.number = None
    answers = Answers(unversioned)
    assert answers.version() is None
    answers.keep("a", None, Reply(200, []))
    assert answers.find("a", None) is None
