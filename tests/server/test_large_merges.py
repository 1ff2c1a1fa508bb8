"""Merges of large contents: a server does not read contents that it does not send."""

import random

import pytest
from msgspec import json

from nessie_cli import connect, create
from nessie_cli.model import UDF, CommitMeta, ContentKey, IcebergTable, Put, ReferenceType
from nessie_cli.repository.draft import LargeMerge
from nessie_cli.server.auth.gate import Catalog
from nessie_cli.server.http.streams import LogEntryCache
from nessie_cli.server.nessie.v2.writing import post_merge
from nessie_cli.server.pipeline.call import Call
from nessie_cli.server.pipeline.drafting import MOST_CHANGES
from tests.server.client import Client
from tests.server.processes import started
from tests.server.test_memory import resident

CONTENTS, SIZE = 40, 1_000_000
MOST_GROWN = 16 << 20
META = CommitMeta("m")
KEYS = [ContentKey((f"f{number}",)) for number in range(CONTENTS)]
OURS = {"nessie-cli": "1"}


def fill(repository, size=SIZE):
    """Makes `dev` and `main` with different contents for each key, and `empty` with none."""
    first = [Put(ContentKey(("first",)), IcebergTable(metadata_location="s3://lake/t"))]
    base = repository.commit("main", first, META).reference.hash
    for name in ("empty", "dev"):
        repository.create_reference(ReferenceType.BRANCH, name, base)
    for seed, branch in enumerate(("main", "dev")):
        random_ = random.Random(seed)
        for key in KEYS:
            text = random_.randbytes(size // 2).hex()
            repository.commit(branch, [Put(key, UDF(dialect="spark", sql_text=text))], META)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("store") / "catalog.sqlite")
    with create(path) as repository:
        fill(repository)
    return path


@pytest.mark.parametrize("per_content", [False, True], ids=["per key", "per content"])
@pytest.mark.parametrize(("branch", "status"), [("empty", 200), ("main", 409)])
@pytest.mark.parametrize("verb", ["merge", "transplant"])
def test_a_merge_of_large_contents_needs_little_memory(store, verb, branch, status, per_content):
    """With the contents, it needs 120 MB."""
    with started("--store", store) as (process, url):
        client = Client(url)
        head = client.head("dev")
        log = client.get("/api/v2/trees/dev/history").body["logEntries"]
        hashes = [entry["commitMeta"]["hash"] for entry in log][-2::-1]
        assert len(hashes) == CONTENTS
        body = {"fromRefName": "dev", "isDryRun": True, "perContent": per_content}
        body |= {"fromHash": head} if verb == "merge" else {"hashesToTransplant": hashes}
        target = f"/api/v2/trees/{branch}@{client.head(branch)}"
        before = resident(process.pid, "VmHWM")
        answer = client.send("POST", f"{target}/history/{verb}", body, OURS)
        assert answer.status == status, answer.raw
        assert resident(process.pid, "VmHWM") - before < MOST_GROWN
        client.close()


# -- the writing thread ----------------------------------------------------------------------------

DROP = {"defaultKeyMergeMode": "DROP"}
DROP_A_KEY = {"keyMergeModes": [{"key": {"elements": KEYS[0].elements}, "mergeBehavior": "DROP"}]}


@pytest.mark.parametrize(
    ("attributes", "beside"),
    [({}, False), (DROP, True), (DROP_A_KEY, True), (DROP | {"perContent": True}, False)],
    ids=["normal", "all keys", "a key", "per content"],
)
def test_a_merge_that_drops_keys_is_drafted_beside_writers(attributes, beside):
    """Its answer has all keys that it drops, also those that the source did not change."""
    with connect("memory:") as repository:
        fill(repository, size=2)
        dev = repository.reference("dev").hash
        body = json.encode({"fromRefName": "dev", "fromHash": dev, **attributes})
        catalog = Catalog(repository, "main", LogEntryCache())
        call = Call(catalog, {"ref": "empty"}, "", [(b"nessie-cli", b"1")], body)
        call.submission.most_changes = MOST_CHANGES
        if beside:
            with pytest.raises(LargeMerge):
                call.plan(repository, post_merge)
            call.submission.most_changes = None
        planned = call.plan(repository, post_merge)
        keys = CONTENTS + (attributes == DROP)
        assert len(planned.answer.body.details) == keys
