"""Reads beside writers: each answer is that of one state, and not older than the request."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nessie_cli import connect, create
from tests.server.client import EMPTY, Client, delete, put, table
from tests.server.processes import started
from tests.server.serving import serving
from tests.store.postgres_server import new_url

BRANCHES = ("main", "dev")
KEYS = [f"t{number}" for number in range(8)]
WRITES = 60
READERS = 6


class Branch:
    """A branch that one client writes, and all heads that it had, in order."""

    def __init__(self, name: str, url: str, seed: int) -> None:
        self.name = name
        self.heads: list[str] = []
        self.moving_to = ""
        self._client = Client(url)
        self._random = random.Random(seed)

    def write(self) -> None:
        """Commits changes to random keys, or moves the branch back to an earlier head."""
        head = self.heads[-1] if self.heads else EMPTY
        if len(self.heads) > 3 and self._random.random() < 0.2:
            self.moving_to = self._random.choice(self.heads)
            body = {"type": "BRANCH", "name": self.name, "hash": self.moving_to}
            answer = self._client.send("PUT", f"/api/v2/trees/{self.name}@{head}", body)
            assert answer.status == 200, answer.raw
            self.heads.append(answer.body["reference"]["hash"])
            return
        operations = [self._operation(key) for key in self._random.sample(KEYS, 3)]
        answer = self._client.commit(self.name, head, *operations)
        assert answer.status == 200, answer.raw
        self.heads.append(answer.body["targetBranch"]["hash"])

    def _operation(self, key: str) -> dict[str, Any]:
        answer = self._client.get(f"/api/v2/trees/{self.name}/contents/{key}")
        content = table(self._random.randrange(10**9))
        if answer.status == 404:
            return put(key, content=content)
        if self._random.random() < 0.2:
            return delete(key)
        return put(key, content=content | {"id": answer.body["content"]["id"]})

    def may_be_at(self, head: str, acknowledged: int) -> bool:
        """Returns whether a read may find this head after so many heads were acknowledged."""
        # A write that is not acknowledged yet appends its head at any time, so this comes last.
        return head not in self.heads or head == self.moving_to or head in self.heads[acknowledged:]


class Reader:
    """A client that reads branches while they are written, and keeps the answers."""

    def __init__(self, url: str, branches: list[Branch], seed: int) -> None:
        self.answers: dict[str, Any] = {}
        self._client = Client(url)
        self._branches = branches
        self._random = random.Random(seed)

    def read_until(self, writers: list[Future[None]]) -> None:
        while not all(writer.done() for writer in writers):
            self._read()

    def _read(self) -> None:
        branches = self._random.sample(self._branches, 2)
        acknowledged = [len(branch.heads) - 1 for branch in branches]
        kind = self._random.choice(["contents", "entries", "history", "diff", "pages"])
        first, second = (branch.name for branch in branches)
        rest = {
            "contents": f"/contents/{self._random.choice(KEYS)}",
            "entries": "/entries?content=true",
            "history": "/history?fetch=ALL&max-records=5",
            "diff": f"/diff/{second}",
            "pages": "/entries?max-records=3",
        }[kind]
        answer = self._client.get(f"/api/v2/trees/{first}{rest}")
        if answer.status == 404 and kind == "contents":
            return
        assert answer.status == 200, answer.raw
        if kind == "history":
            heads = [answer.body["logEntries"][0]["commitMeta"]["hash"]]
        elif kind == "diff":
            heads = [answer.body[f"effective{side}Reference"]["hash"] for side in ("From", "To")]
            rest = f"/diff/{second}@{heads[1]}"
        else:
            heads = [answer.body["effectiveReference"]["hash"]]
        for head, branch, number in zip(heads, branches, acknowledged, strict=False):
            assert branch.may_be_at(head, number)
        self.answers[f"/api/v2/trees/{first}@{heads[0]}{rest}"] = answer.body


@contextmanager
def one_server_of_two_workers(folder: Path) -> Iterator[tuple[str, list[str]]]:
    store = f"sqlite:///{folder / 'catalog.sqlite'}"
    create(store).close()
    with started("--store", store, "--workers", "2") as (_, url):
        yield store, [url]


@contextmanager
def two_servers_on_postgresql(folder: Path) -> Iterator[tuple[str, list[str]]]:
    del folder
    with (
        new_url() as store,
        create(store) as one,
        connect(store) as two,
        serving(one) as first,
        serving(two) as second,
    ):
        yield store, [first, second]


@pytest.mark.parametrize("servers", [one_server_of_two_workers, two_servers_on_postgresql])
def test_every_answer_is_that_of_a_state_that_is_not_older_than_the_request(
    servers: Any, tmp_path: Path
) -> None:
    with servers(tmp_path) as (store, urls):
        body = {"type": "BRANCH", "name": "main", "hash": EMPTY}
        made = Client(urls[0]).send("POST", "/api/v2/trees?name=dev&type=BRANCH", body)
        assert made.status == 200, made.raw
        branches = [
            Branch(name, urls[number % len(urls)], number) for number, name in enumerate(BRANCHES)
        ]
        for branch in branches:
            branch.write()
        readers = [
            Reader(urls[number % len(urls)], branches, 100 + number) for number in range(READERS)
        ]

        def write(branch: Branch) -> None:
            for _ in range(WRITES):
                branch.write()

        with ThreadPoolExecutor(len(branches) + READERS) as threads:
            writers = [threads.submit(write, branch) for branch in branches]
            for reading in [threads.submit(reader.read_until, writers) for reader in readers]:
                reading.result()
            for writer in writers:
                writer.result()
        answers = {path: body for reader in readers for path, body in reader.answers.items()}
        # A repository without caches gives the same answers.
        with connect(store) as repository, serving(repository) as fresh:
            client = Client(fresh)
            for path, body in answers.items():
                assert client.get(path).body == body, path
        assert len(answers) > WRITES


def test_a_branch_that_moves_back_has_the_answers_of_that_state(
    tmp_path: Path,
) -> None:
    with create(str(tmp_path / "catalog.sqlite")) as repository, serving(repository) as url:
        client = Client(url)
        heads = [EMPTY]
        for number in range(3):
            answer = client.commit("main", heads[-1], put(f"t{number}"))
            heads.append(answer.body["targetBranch"]["hash"])
            entries = client.get("/api/v2/trees/main/entries").body["entries"]
            assert len(entries) == number + 1
        for target, count in ((1, 1), (3, 3), (2, 2), (0, 0), (3, 3)):
            body = {"type": "BRANCH", "name": "main", "hash": heads[target]}
            moved = client.send("PUT", f"/api/v2/trees/main@{client.head()}", body)
            assert moved.status == 200, moved.raw
            for _ in range(2):
                assert len(client.get("/api/v2/trees/main/entries").body["entries"]) == count
