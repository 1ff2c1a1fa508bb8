"""Listings that are sent as they are read."""

import gzip
import http.client
import json

import apsw
import pytest

from nessie_cli import connect, create
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put
from nessie_cli.server.access_log import AccessLog
from nessie_cli.server.app import Parts
from nessie_cli.server.running import application
from nessie_cli.server.streams import AT_ONCE
from tests.server.client import EMPTY, Client, put
from tests.server.serving import serving

TABLES = 2 * AT_ONCE + 17


def fill(repository):
    puts = (Put(ContentKey((f"table {number:05}",)), IcebergTable(metadata_location=f"s3://lake/{number}")) for number in range(TABLES))
    repository.commit("main", puts, CommitMeta("many"))


@pytest.fixture(scope="module")
def url():
    with connect("memory:") as repository, serving(repository) as found:
        fill(repository)
        yield found


@pytest.fixture
def client(url):
    found = Client(url)
    yield found
    found.close()


@pytest.mark.parametrize(("path", "name"), [("trees/main/entries?content=true", "entries"), (f"trees/@{EMPTY}/diff/main", "diffs")])
def test_a_large_listing_is_sent_in_pieces_and_is_the_pages_put_together(client, path, name):
    answer = client.get(f"/api/v2/{path}")
    assert answer.headers["transfer-encoding"] == "chunked"
    assert (answer.body["hasMore"], answer.body["token"], len(answer.body[name])) == (False, None, TABLES)
    page = client.get(f"/api/v2/{path}{'&' if '?' in path else '?'}max-records=3").body
    assert page[name] == answer.body[name][:3]
    assert page.keys() == answer.body.keys()
    packed = client.get(f"/api/v2/{path}", **{"accept-encoding": "gzip"})
    assert json.loads(gzip.decompress(packed.raw)) == answer.body
    assert len(packed.raw) < len(answer.raw) / 3
    head = client.send("HEAD", f"/api/v2/{path}")
    assert (head.status, head.raw) == (200, b"")


def test_a_small_listing_is_one_answer_with_its_length(client):
    answer = client.get("/api/v2/trees/main/entries?prefix-key=table%2000007")
    assert int(answer.headers["content-length"]) == len(answer.raw)
    assert len(answer.body["entries"]) == 1


def test_a_listing_that_fails_on_its_way_does_not_look_whole(tmp_path):
    path, lines = str(tmp_path / "catalog.sqlite"), []
    create(path).close()
    with create(path) as writer:
        fill(writer)
    with apsw.Connection(path) as connection:
        # The values of the last tables are gone; those of the first are there.
        rows = connection.execute("SELECT count(*) FROM objects WHERE kind = 1").fetchall()
        assert rows[0][0] == TABLES
    with connect(path) as repository:
        last = [entry.value_hash for entry in repository.entries("main")][-5:]
    with apsw.Connection(path) as connection:
        connection.executemany("DELETE FROM objects WHERE id = ?", [(bytes.fromhex(hash_),) for hash_ in last])
    with connect(path) as repository, serving(app=application(repository, Parts(log=AccessLog(lines.append, faults=True)))) as url:
        client = Client(url)
        with pytest.raises(http.client.IncompleteRead):
            client.get("/api/v2/trees/main/entries?content=true")
        client.close()
        again = Client(url)
        assert again.commit("main", again.head(), put("a")).status == 200
        again.close()
    assert json.loads(b"".join(lines))["route"] == "/api/v2/trees/{ref}/entries"
