"""A catalog on a server, created by its REST API, and the clients of `serving`.

The same code drives our server and the original.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from bench.corpus import table, table_key
from bench.traffic import OK, Answer, Request, Script, Server

PER_COMMIT = 2000
CHANGES = 10
LOG_PAGE, ENTRIES_PAGE = 100, 250
MOST_TRIES = 200


def put(number: int, version: int, content_id: str | None = None) -> dict[str, Any]:
    """Returns the operation that writes a state of a table."""
    found = table(number, version)
    content = {
        "type": "ICEBERG_TABLE",
        "metadataLocation": found.metadata_location,
        "snapshotId": found.snapshot_id,
    }
    content |= {"schemaId": 0, "specId": 0, "sortOrderId": 0}
    return {
        "type": "PUT",
        "key": {"elements": list(table_key(number).elements)},
        "content": content | ({"id": content_id} if content_id else {}),
    }


class Served:
    """A server with branches that have this many tables."""

    def __init__(self, url: str, sizes: list[int], log: int) -> None:
        self.server = Server(url)
        self.ids: dict[int, list[str]] = {}
        self._made = 0
        self._root = json.loads(self.server.ask(self.server.get("/config"))[0].body)[
            "noAncestorHash"
        ]
        for size in sizes:
            self._load(size)
        self._logged(sizes[0], log)

    # -- preparing --------------------------------------------------------------------------------
    def branch(self, of: int | None = None) -> tuple[str, str]:
        """Creates a branch, empty or at the tables of another one; returns its name and hash."""
        self._made += 1
        name, source = f"b{self._made}", "main" if of is None else f"n{of}"
        hash_ = self._root if of is None else self.server.head(source)
        self.server.ask(self._create(name, source, hash_))
        return name, hash_

    def _create(self, name: str, source: str, hash_: str) -> bytes:
        return self.server.post(
            f"/trees?name={name}&type=BRANCH", {"type": "BRANCH", "name": source, "hash": hash_}
        )

    def _commit(
        self, branch: str, hash_: str, operations: list[dict[str, Any]], message: str = "load"
    ) -> bytes:
        meta = {"message": message, "authors": ["etl@example.org"]}
        return self.server.post(
            f"/trees/{branch}@{hash_}/history/commit",
            {"commitMeta": meta, "operations": operations},
        )

    def _load(self, size: int) -> None:
        name, hash_ = f"n{size}", self._root
        self.server.ask(self._create(name, "main", hash_))
        areas = sorted({table_key(number).elements[0] for number in range(size)})
        spaces = [
            {
                "type": "PUT",
                "key": {"elements": [area]},
                "content": {"type": "NAMESPACE", "elements": [area]},
            }
            for area in areas
        ]
        ids: dict[str, str] = {}
        for operations in (
            spaces,
            *(
                [put(n, 0) for n in range(at, min(size, at + PER_COMMIT))]
                for at in range(0, size, PER_COMMIT)
            ),
        ):
            answer = json.loads(self.server.ask(self._commit(name, hash_, operations))[0].body)
            hash_ = answer["targetBranch"]["hash"]
            ids |= {
                added["key"]["elements"][-1]: added["contentId"]
                for added in answer["addedContents"]
            }
        self.ids[size] = [ids[table_key(number).elements[-1]] for number in range(size)]

    def _logged(self, size: int, commits: int) -> None:
        self.server.ask(self._create("logged", f"n{size}", self.server.head(f"n{size}")))
        hash_ = self.server.head("logged")
        for number in range(commits):
            operation = put(number % size, number + 1, self.ids[size][number % size])
            hash_ = json.loads(
                self.server.ask(self._commit("logged", hash_, [operation], f"load {number}"))[
                    0
                ].body
            )["targetBranch"]["hash"]

    # -- clients ----------------------------------------------------------------------------------
    def commits(self, size: int, writers: int, branches: int, seconds: float) -> list[Script]:
        """Writers that each update their own tables, on one branch or on several."""
        made = [self.branch(size) for _ in range(branches)]
        until = time.perf_counter() + seconds
        return [
            self._writer(*made[number % branches], size, range(number, size, writers), until)
            for number in range(writers)
        ]

    def _writer(self, branch: str, hash_: str, size: int, mine: range, until: float) -> Script:
        version = 0
        while time.perf_counter() < until:
            version += 1
            number = mine[version % len(mine)]
            operation = put(number, version, self.ids[size][number])
            for tries in range(MOST_TRIES):
                answer = yield Request(
                    self._commit(branch, hash_, [operation], f"update {number}"), again=tries > 0
                )
                if answer.status == OK:
                    break
                # The original gives up after some lost races. The client then reads the HEAD of the
                # branch and tries again, which is one slow commit.
                where = yield Request(self.server.get(f"/trees/{branch}"), counts=False, again=True)
                hash_ = json.loads(where.body)["reference"]["hash"]
            hash_ = json.loads(checked(answer).body)["targetBranch"]["hash"]

    def contents(self, size: int, clients: int, seconds: float) -> list[Script]:
        """Clients that read one content after another at HEAD."""
        picker = random.Random(size)
        wanted = [
            self.server.get(
                f"/trees/n{size}/contents/{'.'.join(table_key(picker.randrange(size)).elements)}"
            )
            for _ in range(1000)
        ]
        return [
            _reader(
                lambda n, c=client: wanted[(n * 7 + c * 131) % 1000],  # type: ignore[misc]
                b"metadataLocation",
                1,
                seconds,
            )
            for client in range(clients)
        ]

    def logs(self, clients: int, seconds: float) -> list[Script]:
        """Clients that read the newest page of a log."""
        request = self.server.get(f"/trees/logged/history?max-records={LOG_PAGE}")
        return [
            _reader(lambda _: request, b'"commitMeta"', LOG_PAGE, seconds) for _ in range(clients)
        ]

    def entries(self, size: int, clients: int, seconds: float) -> list[Script]:
        """Clients that read all pages of the keys, again and again."""
        return [self._pages(size, time.perf_counter() + seconds) for _ in range(clients)]

    def _pages(self, size: int, until: float) -> Script:
        token = ""
        while time.perf_counter() < until:
            answer = yield Request(
                self.server.get(f"/trees/n{size}/entries?max-records={ENTRIES_PAGE}{token}")
            )
            # Cheaper than parsing the whole page, which would slow this client down. Both servers
            # write the attribute once.
            found = answer.body.find(b'"token"')
            text = answer.body[found + 7 : found + 2000].lstrip(b" :")
            following = text.split(b'"', 2)[1] if found >= 0 and text.startswith(b'"') else b""
            token = f"&page-token={quote(following)}" if following else ""

    def diffs(self, size: int, clients: int, seconds: float) -> list[Script]:
        """Clients that compare two branches with ten differences."""
        name, hash_ = self.branch(size)
        changed = random.Random(size).sample(range(size), CHANGES)
        self.server.ask(
            self._commit(
                name, hash_, [put(number, 1, self.ids[size][number]) for number in changed]
            )
        )
        request = self.server.get(f"/trees/n{size}/diff/{name}")
        return [_reader(lambda _: request, b'"key"', CHANGES, seconds) for _ in range(clients)]

    def merges(self, size: int, clients: int, seconds: float) -> list[Script]:
        """Clients that merge a branch with ten changes into a branch with ten other changes; each
        merge has its own branches."""
        head = self.server.head(f"n{size}")
        return [
            self._merger(size, head, random.Random(size + client), time.perf_counter() + seconds)
            for client in range(clients)
        ]

    def _merger(self, size: int, head: str, picker: random.Random, until: float) -> Script:
        while time.perf_counter() < until:
            self._made += 1
            names = [f"target{self._made}", f"source{self._made}"]
            changed = picker.sample(range(size), 2 * CHANGES)
            hashes = []
            for name, numbers in zip(names, (changed[:CHANGES], changed[CHANGES:]), strict=True):
                checked((yield Request(self._create(name, f"n{size}", head), counts=False)))
                operations = [put(number, 1, self.ids[size][number]) for number in numbers]
                answer = checked(
                    (yield Request(self._commit(name, head, operations), counts=False))
                )
                hashes.append(json.loads(answer.body)["targetBranch"]["hash"])
            body = {"fromRefName": names[1], "fromHash": hashes[1]}
            answer = checked(
                (
                    yield Request(
                        self.server.post(f"/trees/{names[0]}@{hashes[0]}/history/merge", body)
                    )
                )
            )
            assert json.loads(answer.body)["wasApplied"]


def _reader(request: Callable[[int], bytes], what: bytes, count: int, seconds: float) -> Script:
    until = time.perf_counter() + seconds
    number = 0
    while time.perf_counter() < until:
        answer = yield Request(request(number))
        if answer.status != OK or answer.body.count(what) != count:
            raise RuntimeError(f"{answer.status} {answer.body[:300]!r}")
        number += 1


def checked(answer: Answer) -> Answer:
    """Returns the answer. Raises an error if it is a refusal."""
    if answer.status != OK:
        raise RuntimeError(f"{answer.status} {answer.body[:300]!r}")
    return answer
