"""Merges beside writers: a merge of many contents does not stop the commits of others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from secrets import token_hex
from typing import Any

import pytest
from msgspec import structs

from nessie_cli import connect, create
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put, ReferenceType
from nessie_cli.repository.base import Repository
from tests.server.client import Answer, Client, put
from tests.server.processes import started
from tests.server.serving import serving
from tests.store.postgres_server import new_url

CONTENTS = 10_000
FEWEST = 12
"""The fewest commits of a writer during a merge, which takes a hundred times as long."""
EXTENDED = {"nessie-cli": "1"}
KEYS = [ContentKey((f"t{number}",)) for number in range(CONTENTS)]
META = CommitMeta("m")


def fill(repository: Repository) -> None:
    """Makes `main`, two branches to merge, and two for writers.

    `main` and the branches to merge changed each content. `clean` is merged into `target`, which
    did not.
    """
    tables = [IcebergTable(metadata_location=f"s3://lake/{key.plain}") for key in KEYS]
    repository.commit("main", list(map(Put, KEYS, tables)), META)
    base = repository.reference("main").hash
    stored = repository.contents("main", KEYS)
    for name in ("conflicting", "clean", "other", "target"):
        repository.create_reference(ReferenceType.BRANCH, name, base)
    for number, name in enumerate(("main", "conflicting", "clean"), 1):
        changed = [Put(key, structs.replace(stored[key], snapshot_id=number)) for key in KEYS]
        repository.commit(name, changed, META)


@contextmanager
def server_on_memory(_: Any) -> Iterator[str]:
    with connect("memory:") as repository:
        fill(repository)
        with serving(repository) as url:
            yield url


@contextmanager
def server_process(store: str) -> Iterator[str]:
    with create(store) as repository:
        fill(repository)
    with started("--store", store) as (_, url):
        yield url


@contextmanager
def server_on_sqlite(folder: Any) -> Iterator[str]:
    with server_process(str(folder / "catalog.sqlite")) as url:
        yield url


@contextmanager
def server_on_postgresql(_: Any) -> Iterator[str]:
    with new_url() as store, server_process(store) as url:
        yield url


@pytest.fixture(scope="module", params=[server_on_sqlite, server_on_postgresql, server_on_memory])
def url(request, tmp_path_factory):
    with request.param(tmp_path_factory.mktemp("store")) as address:
        yield address


def merge(url: str, target: str, source: str, **attributes: Any) -> Answer:
    body = {"fromRefName": source, "fromHash": Client(url).head(source), **attributes}
    client = Client(url)
    return client.send("POST", f"/api/v2/trees/{target}/history/merge", body, EXTENDED)


class Writer:
    """A client that commits to a branch until it is stopped. Counts commits during a merge."""

    def __init__(self, url: str, branch: str) -> None:
        self._client = Client(url)
        self._path = f"/api/v2/trees/{branch}/history/commit"
        self.key = token_hex(8)
        self.begun = threading.Event()
        self.stopped = threading.Event()
        self.done = 0

    def run(self) -> None:
        while not self.stopped.is_set():
            operations = [put(f"{self.key}-{self.done}")]
            body = {"commitMeta": {"message": "m"}, "operations": operations}
            try:
                self._client.send("POST", self._path, body, EXTENDED).expect(200)
                self.done += 1
            finally:
                self.begun.set()


def commits_during(url: str, target: str, source: str, **attributes: Any) -> tuple[Answer, int]:
    """Merges while two clients commit, to the target and to another branch.

    Returns the answer, and the smaller number of their commits meanwhile.
    """
    writers = [Writer(url, branch) for branch in (target, "other")]
    with ThreadPoolExecutor(len(writers)) as pool:
        running = [pool.submit(writer.run) for writer in writers]
        try:
            for writer in writers:
                assert writer.begun.wait(60)
            before = [writer.done for writer in writers]
            answer = merge(url, target, source, **attributes)
            during = [writer.done - number for writer, number in zip(writers, before, strict=True)]
        finally:
            for writer in writers:
                writer.stopped.set()
        for each in running:
            each.result()
    return answer, min(during)


@pytest.mark.parametrize(
    ("per_content", "dry_run"), [(False, True), (True, False)], ids=["per key", "per content"]
)
def test_others_commit_while_a_merge_is_refused(url, per_content, dry_run):
    answer, commits = commits_during(
        url, "main", "conflicting", perContent=per_content, isDryRun=dry_run
    )
    answer.expect(409, f"and {CONTENTS - 1000:,} more")
    assert commits >= FEWEST


def test_a_merge_is_drafted_again_while_its_branch_moves(url):
    answer, commits = commits_during(url, "target", "clean", perContent=True)
    answer.expect(200)
    assert answer.body["wasApplied"]
    assert commits >= FEWEST
    client = Client(url)
    content = client.get(f"/api/v2/trees/target/contents/{KEYS[-1].plain}").body["content"]
    assert content["snapshotId"] == 3
    entries = client.get("/api/v2/trees/target/entries?max-records=1").body["entries"]
    assert entries[0]["name"]["elements"] != list(KEYS[0].elements), "no commit of the writer"


def test_small_merges_into_one_branch_at_once_all_succeed(url):
    """Each is drafted on a head that the others move."""
    count = 12
    head = Client(url).head("other")

    def merged(number: int) -> Answer:
        client = Client(url)
        name = f"small-{number}"
        source = {"type": "BRANCH", "name": "other", "hash": head}
        client.send("POST", f"/api/v2/trees?name={name}&type=BRANCH", source).expect(200)
        client.commit(name, head, put(name)).expect(200)
        return merge(url, "other", name)

    with ThreadPoolExecutor(count) as pool:
        for answer in pool.map(merged, range(count)):
            answer.expect(200)
    for number in range(count):
        assert Client(url).get(f"/api/v2/trees/other/contents/small-{number}").status == 200
