"""Concurrent writers, and a server that is busy or loses its store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nessie_cli.model import CommitMeta, ContentKey, Namespace, Put
from nessie_cli.server.http.messages import Limits
from tests.server.client import Answer
from tests.server.iceberg_rest.lake import IcebergClient, Lake, error_of, lake


def concurrently(served: Lake, *works: Callable[[IcebergClient], None]) -> None:
    """Runs functions concurrently, each with its own client. Raises the first of their errors."""
    failures: list[Exception] = []
    start = threading.Barrier(len(works))

    def run(work: Callable[[IcebergClient], None]) -> None:
        client = served.another_client()
        try:
            start.wait()
            work(client)
        except Exception as error:  # noqa: BLE001 - raised below
            failures.append(error)
        finally:
            client.client.close()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for failure in failures:
        raise failure


def append_with_retries(client: IcebergClient, name: str, number: int) -> None:
    """Appends a snapshot as a client does: read, commit, and read again after a conflict."""
    for _ in range(200):
        metadata = client.load("db", name).body["metadata"]
        current = metadata["current-snapshot-id"]
        parent = None if current == -1 else current
        sequence = metadata["last-sequence-number"] + 1
        answer = client.append("db", name, number, parent, sequence)
        if answer.status == 200:
            return
        assert error_of(answer) == (409, "CommitFailedException")
    raise AssertionError("no try succeeded")


def test_concurrent_appends_to_one_table_are_not_lost(served: Lake) -> None:
    served.main.create("db", "t")

    def writer(first: int) -> Callable[[IcebergClient], None]:
        def write(client: IcebergClient) -> None:
            for number in range(10):
                append_with_retries(client, "t", first + number)

        return write

    concurrently(served, writer(100), writer(200))
    metadata = served.main.load("db", "t").body["metadata"]
    expected = {*range(100, 110), *range(200, 210)}
    assert {one["snapshot-id"] for one in metadata["snapshots"]} == expected
    assert len(metadata["snapshots"]) == len(expected)
    assert len(metadata["snapshot-log"]) == len(expected)
    # No file of a lost race is left: one for the create, one for each append.
    assert len(served.files()) == len(expected) + 1


def test_writers_of_different_tables_do_not_conflict(served: Lake) -> None:
    for number in range(4):
        served.main.create("db", f"t{number}")

    def writer(name: str) -> Callable[[IcebergClient], None]:
        def write(client: IcebergClient) -> None:
            for number in range(1, 9):
                answer = client.append("db", name, number, number - 1 or None, number)
                assert answer.status == 200, answer.body

        return write

    concurrently(served, *(writer(f"t{number}") for number in range(4)))
    assert len(served.files()) == 4 * 9


def test_one_of_two_concurrent_creates_wins(served: Lake) -> None:
    answers: list[Answer] = []

    def create(client: IcebergClient) -> None:
        answers.append(client.create("db", "t"))

    concurrently(served, *[create] * 6)
    assert sorted(answer.status for answer in answers) == [200, *[409] * 5]
    for answer in answers:
        if answer.status != 200:
            assert error_of(answer) == (409, "AlreadyExistsException")
    assert len(served.files()) == 1


def test_concurrent_commits_through_rest_v2_are_respected(served: Lake) -> None:
    """A table commit that conflicts with one of REST v2 is computed again on the current
    content."""
    served.main.create("db", "t")
    stop = threading.Event()

    def others() -> None:
        number = 0
        while not stop.is_set():
            key = ContentKey((f"n{number}",))
            served.repository.commit(
                "main", [Put(key, Namespace(elements=key.elements))], CommitMeta("other")
            )
            number += 1

    thread = threading.Thread(target=others)
    thread.start()
    try:
        for number in range(1, 11):
            answer = served.main.append("db", "t", number, number - 1 or None, number)
            assert answer.status == 200, answer.body
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("limit", ["reads", "writes"])
def test_a_busy_server_asks_clients_to_retry(tmp_path: Path, limit: str) -> None:
    """No work has begun, so it is 429: on a commit, clients take 503 for an unknown outcome."""
    limits = Limits(**{limit: 0})  # type: ignore[arg-type]
    with lake(tmp_path, limits=limits) as served:
        ask = served.main.namespace if limit == "writes" else served.main.get
        answer = ask("/namespaces")
        assert error_of(answer) == (429, "TooManyRequestsException")
        assert answer.headers["retry-after"]
        assert served.files() == set()


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "body: is not JSON"),
        (b"[]", "CreateNamespaceRequest: must be a JSON object"),
        (b"", "CreateNamespaceRequest: must be a JSON object"),
        (b'{"namespace": "db"}', "namespace must be a list of strings"),
        (b'{"namespace": []}', "namespace is empty"),
        (b'{"namespace": [""]}', "must not contain an empty element"),
        (b'{"namespace": ["a\\u0001"]}', "must not contain characters less than 0x20"),
        (b'{"namespace": ["a"], "properties": {"a": 1}}', "properties must hold strings only"),
    ],
)
def test_invalid_bodies_are_refused(served: Lake, body: bytes, problem: str) -> None:
    answer = served.client.send("POST", "/iceberg/v1/main/namespaces", raw=body)
    assert error_of(answer) == (400, "BadRequestException")
    assert problem in answer.body["error"]["message"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"schema": None}, "schema is missing"),
        ({"schema": {"type": "struct"}}, "fields"),
        ({"properties": {"format-version": "x"}}, "format-version"),
        ({"location": 1}, "location must be a string"),
        ({"partition-spec": {"fields": [{"source-id": 9, "transform": "identity"}]}}, "field 9"),
    ],
)
def test_invalid_tables_are_refused(served: Lake, change: dict[str, Any], problem: str) -> None:
    answer = served.main.create("db", "t", **change)
    assert error_of(answer) == (400, "BadRequestException")
    assert problem in answer.body["error"]["message"]
    assert served.files() == set()


def test_a_body_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with lake(tmp_path, limits=Limits(body=1000)) as served:
        answer = served.main.namespace("n", text="x" * 2000)
        assert error_of(answer)[0] == 413
        assert served.main.get("/namespaces/n").status == 404
