"""Many and large records of runs, settings and moves: their answers are made in parts."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from nessie_cli import connect
from nessie_cli.repository import settings
from nessie_cli.repository.base import Repository
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.server.nessie.listings import LARGEST_PAGE
from nessie_cli.store import rows
from nessie_cli.store.sqlite import store as sqlite
from nessie_cli.wire.extensions import MESSAGE, SETTINGS
from tests.server.client import EMPTY, Client
from tests.server.serving import serving

OURS = {"Nessie-Cli": "1"}


@pytest.fixture
def url() -> Iterator[str]:
    with connect("memory:") as repository, serving(repository) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    client = Client(url)
    yield client
    client.close()


def put_settings(client: Client, **values: str) -> int:
    body = {"config": {"type": SETTINGS, "settings": values}}
    return client.send("POST", "/api/v2/config/repository", body, headers=OURS).status


def test_the_records_of_runs_are_sent_in_parts(url: str, client: Client) -> None:
    """One call for all of them would hold the interpreter: a caller may have 64 MB."""
    now = int(time.time())
    ids = [f"20260101-000000-{number:06x}" for number in range(40)]
    for id_ in ids:
        run = {"id": id_, "target": "main", "base": EMPTY, "who": "", "began": now}
        run |= {"expires": now + 60, "command": ["x" * 60_000]}
        sent = {"run": run, "version": 0}
        assert client.send("PUT", f"/api/v2/runs/{id_}", sent, headers=OURS).status == 200
    answer = client.send("GET", "/api/v2/runs", headers=OURS)
    assert "content-length" not in {name.lower() for name in answer.headers}
    assert [each["run"]["id"] for each in answer.body["runs"]] == ids
    with connect(url) as remote:
        assert isinstance(remote, Repository)
        assert [record.run.id for record in remote.runs.all()] == ids


def test_all_settings_together_have_a_limit(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert put_settings(client, a="x" * 600) == 200
    monkeypatch.setattr(settings, "MOST_TEXT", 500)
    # Settings that are too large already may shrink.
    assert put_settings(client, b="") == 400
    assert put_settings(client, a="x" * 590) == 200
    assert put_settings(client, a="x" * 400) == 200
    assert put_settings(client, b="x" * 98) == 200
    assert put_settings(client, b="x" * 99) == 400
    body = {"config": {"type": SETTINGS, "settings": {"b": "x" * 99}}}
    answer = client.send("POST", "/api/v2/config/repository", body, headers=OURS)
    assert "501 characters, 500 are allowed" in answer.body["message"]


def test_a_page_of_the_reflog_ends_after_large_settings(url: str, client: Client) -> None:
    size = LARGEST_PAGE // 3
    for number in range(6):
        assert put_settings(client, a=str(number) * size) == 200
    first = client.send("GET", "/api/v2/reflog", headers=OURS).body
    assert (len(first["reflog"]), first["hasMore"]) == (2, True)
    with connect(url) as remote:
        assert isinstance(remote, ReadableRepository)
        entries = list(remote.reflog())
    assert [entry.value_after[0] for entry in entries if entry.value_after] == list("543210")


def test_a_page_of_the_reflog_does_not_read_those_before_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        assert put_settings(client, a=str(number)) == 200
    numbers: list[int] = []
    of_row = rows.reflog_row_of
    monkeypatch.setattr(sqlite, "reflog_row_of", lambda row: numbers.append(row[0]) or of_row(row))
    page = client.send("GET", "/api/v2/reflog?max-records=3&page-token=5", headers=OURS).body
    assert [entry["number"] for entry in page["reflog"]] == [5, 4, 3]
    assert max(numbers) == 5
    wrong = client.send("GET", "/api/v2/reflog?page-token=5x", headers=OURS)
    wrong.expect(400, "page-token: is not the token of a page of the reflog")


def test_messages_of_tags_have_a_limit_and_are_sent_in_parts(url: str, client: Client) -> None:
    """One call for all of them would hold the interpreter, and need memory for each."""
    main = {"type": "BRANCH", "name": "main", "hash": EMPTY}
    for number in range(4):
        path = f"/api/v2/trees?name=t{number}&type=TAG"
        sent = main | {MESSAGE: str(number) * (1 << 20)}
        assert client.send("POST", path, sent, headers=OURS).status == 200
    refused = client.send(
        "POST", "/api/v2/trees?name=x&type=TAG", main | {MESSAGE: "é" * (1 << 19) + "x"}, OURS
    )
    refused.expect(400, "the message of the tag has more than 1,048,576 bytes")
    query = "&".join(f"ref=t{number}" for number in (0, 1, 2, 3, 1, 9))
    answer = client.send("GET", f"/api/v2/messages?{query}", headers=OURS)
    assert "content-length" not in {name.lower() for name in answer.headers}
    expected = {f"t{number}": str(number) * (1 << 20) for number in range(4)}
    assert answer.body == {"messages": expected}
    assert client.send("GET", "/api/v2/messages?ref=9", headers=OURS).body == {"messages": {}}
    with connect(url) as remote:
        assert isinstance(remote, ReadableRepository)
        assert remote.messages(["t0", "t3"]) == {name: expected[name] for name in ("t0", "t3")}
