"""Requests leave no reference cycles, because the server rarely collects garbage."""

import gc
from contextlib import closing

import pytest
from msgspec import structs

from nessie_cli import CommitMeta, connect
from nessie_cli.model import ContentKey, IcebergTable, Put, ReferenceType
from tests.server.client import Client, put
from tests.server.serving import serving

KEYS = [ContentKey((f"t{number}",)) for number in range(300)]


@pytest.fixture
def repository():
    """A repository whose branches main and dev have changed the same tables."""
    with connect("memory:") as repository:
        puts = [Put(key, IcebergTable(metadata_location=f"s3://{key}")) for key in KEYS]
        repository.commit("main", puts, CommitMeta("base"))
        tables = repository.contents("main", KEYS)
        base = repository.reference("main").hash
        repository.create_reference(ReferenceType.BRANCH, "dev", base)
        for number, branch in enumerate(("main", "dev")):
            changed = [
                Put(key, structs.replace(table, snapshot_id=number))
                for key, table in tables.items()
            ]
            repository.commit(branch, changed, CommitMeta(branch))
        yield repository


def _merge(client, number, **body):
    head, dev = (client.get(f"/api/v2/trees/{name}").body["reference"]["hash"] for name in BRANCHES)
    body |= {"fromRefName": "dev", "fromHash": dev, "isDryRun": number < 2}
    return client.send("POST", f"/api/v2/trees/main@{head}/history/merge", body)


def _transplant(client, number):
    head, dev = (client.get(f"/api/v2/trees/{name}").body["reference"]["hash"] for name in BRANCHES)
    body = {"fromRefName": "dev", "hashesToTransplant": [dev]}
    return client.send("POST", f"/api/v2/trees/main@{head}/history/transplant", body)


def _commit(client, number, *operations):
    head = client.get("/api/v2/trees/main").body["reference"]["hash"]
    return client.commit("main", head, *operations)


def _delete(key):
    return {"type": "DELETE", "key": {"elements": [key]}}


BRANCHES = ("main", "dev")
REQUESTS = {
    "commit of one key": (200, lambda c, n: _commit(c, n, put(f"one{n}"))),
    "commit of many keys": (
        200,
        lambda c, n: _commit(c, n, *(put(f"many{n}-{m}") for m in range(300))),
    ),
    "refused commit": (409, lambda c, n: _commit(c, n, *(_delete(f"x{m}") for m in range(300)))),
    "invalid commit": (400, lambda c, n: _commit(c, n, {"type": "PUT"})),
    "refused merge": (409, _merge),
    "conflicts of a merge": (200, lambda c, n: _merge(c, n, isReturnConflictAsResult=True)),
    "merge": (200, lambda c, n: _merge(c, n, defaultKeyMergeMode="FORCE")),
    "refused transplant": (409, _transplant),
    "log": (200, lambda c, n: c.get(f"/api/v2/trees/main/history?fetch=ALL&max-records={n + 1}")),
    "entries": (200, lambda c, n: c.get(f"/api/v2/trees/main/entries?content=true&x={n}")),
    "diff": (200, lambda c, n: c.get(f"/api/v2/trees/main/diff/dev?max-records={n + 200}")),
    "filter": (
        200,
        lambda c, n: c.get(f"/api/v2/trees/main/entries?filter=true%20%7C%7C%20{n}==0"),
    ),
    "unknown reference": (404, lambda c, n: c.get(f"/api/v2/trees/unknown{n}/entries")),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_leaves_no_garbage_for_a_collection(repository, name):
    status, send = REQUESTS[name]
    # asyncio leaves the cancelled task that waits for a disconnect, and its traceback.
    most = 60 if name == "filter" else 10
    with serving(repository) as url, closing(Client(url)) as client:
        for number in range(2):
            assert send(client, number).status == status
        client.get("/q/health/live")
        gc.collect()
        gc.disable()
        try:
            assert send(client, 2).status == status
            client.get("/q/health/live")
            assert gc.collect() < most
        finally:
            gc.enable()
