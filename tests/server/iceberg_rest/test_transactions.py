from __future__ import annotations

import time
from typing import Any

from nessie_cli.model import ContentKey, Put
from nessie_cli.server.iceberg.tables import MOST_CHANGES
from tests.server.client import Answer
from tests.server.iceberg_rest.lake import SCHEMA, IcebergClient, Lake, appending, error_of

SOON = 30.0
"""Seconds of processor time. Work that grows with the square of the request takes minutes."""


def change(name: str, requirements: Any = (), updates: Any = ()) -> dict[str, Any]:
    identifier = {"namespace": ["db"], "name": name}
    return {
        "identifier": identifier,
        "requirements": list(requirements),
        "updates": list(updates),
    }


def commit(client: IcebergClient, *changes: Any, **headers: str) -> Answer:
    return client.post("/transactions/commit", {"table-changes": changes}, **headers)


def at(snapshot: int | None) -> dict[str, Any]:
    return {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": snapshot}


CREATION = [
    {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 0}},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
    {"action": "set-default-sort-order", "sort-order-id": -1},
]


def test_several_tables_are_committed_in_one_commit(main: IcebergClient, served: Lake) -> None:
    main.create("db", "a")
    main.create("db", "b")
    before = served.repository.reference("main").hash
    answer = commit(
        main,
        change("a", [at(None)], appending(1, None)),
        change("b", [at(None)], appending(2, None)),
        change("new", [{"type": "assert-create"}], CREATION),
    )
    assert (answer.status, answer.raw) == (204, b"")
    entry = served.repository.commit_at("main")
    assert entry.parent == before
    assert [str(one.key) for one in entry.operations or ()] == ["db.a", "db.b", "db.new"]
    assert entry.meta.message.startswith("change 3 tables\n\nappend to db.a: 3 rows\n")
    assert main.load("db", "a").body["metadata"]["current-snapshot-id"] == 1
    assert main.load("db", "b").body["metadata"]["current-snapshot-id"] == 2
    assert main.load("db", "new").status == 200


def test_a_transaction_commits_all_tables_or_none(main: IcebergClient, served: Lake) -> None:
    main.create("db", "a")
    main.create("db", "b")
    before, files = served.repository.reference("main").hash, served.files()
    good = change("a", [at(None)], appending(1, None))
    for bad, status, type_ in (
        (change("b", [at(9)], appending(2, None)), 409, "CommitFailedException"),
        (change("none", [], appending(2, None)), 404, "NoSuchTableException"),
        (change("b", [], [{"action": "no"}]), 400, "BadRequestException"),
        (change("a2", [{"type": "assert-create"}], []), 400, "BadRequestException"),
        ({"requirements": [], "updates": []}, 400, "BadRequestException"),
    ):
        assert error_of(commit(main, good, bad)) == (status, type_)
        assert served.repository.reference("main").hash == before
        assert served.files() == files
    assert error_of(commit(main)) == (400, "BadRequestException")


def test_one_table_twice_is_changed_in_order_and_put_once(
    main: IcebergClient, served: Lake
) -> None:
    main.create("db", "a")
    files = served.files()
    answer = commit(
        main,
        change("a", [at(None)], appending(1, None, 1)),
        change("a", [at(1)], appending(2, 1, 2)),
    )
    assert answer.status == 204, answer.body
    metadata = main.load("db", "a").body["metadata"]
    assert metadata["current-snapshot-id"] == 2
    assert len(metadata["metadata-log"]) == 1
    assert len(served.files() - files) == 1
    operations = served.repository.commit_at("main").operations or ()
    assert [type(one) for one in operations] == [Put]
    assert [one.key for one in operations] == [ContentKey(("db", "a"))]
    stale = commit(
        main, change("a", [at(2)], appending(3, 2, 3)), change("a", [at(2)], appending(4, 2, 4))
    )
    assert error_of(stale) == (409, "CommitFailedException")


def test_a_table_is_created_and_filled_in_two_changes(main: IcebergClient) -> None:
    answer = commit(
        main,
        change("a", [{"type": "assert-create"}], CREATION),
        change("a", [at(None)], appending(1, None)),
    )
    assert answer.status == 204, answer.body
    assert main.load("db", "a").body["metadata"]["current-snapshot-id"] == 1


def test_many_changes_of_one_table_take_little_time(main: IcebergClient, served: Lake) -> None:
    main.create("db", "a")
    many = 5000
    several = [
        change("a", [at(number or None)], appending(number + 1, number or None, number + 1))
        for number in range(many)
    ]
    begun = time.process_time()
    assert commit(main, *several).status == 204
    assert time.process_time() - begun < SOON
    document = main.load("db", "a").body["metadata"]
    assert (document["current-snapshot-id"], len(document["snapshots"])) == (many, many)
    operations = served.repository.commit_at("main").operations
    assert operations is not None
    assert len(operations) == 1


def test_a_change_sees_those_before_it(main: IcebergClient) -> None:
    main.create("db", "a")
    answer = commit(main, *(change("a", [at(None)], appending(number, None)) for number in (1, 2)))
    assert error_of(answer) == (409, "CommitFailedException")
    new = [change("new", [{"type": "assert-create"}], CREATION) for _ in range(2)]
    assert error_of(commit(main, *new)) == (409, "CommitFailedException")
    assert main.load("db", "new").status == 404


def test_the_number_of_changes_of_a_request_is_limited(main: IcebergClient) -> None:
    main.create("db", "a")
    main.view("db", "v")
    update = {"action": "set-properties", "updates": {"a": "b"}}
    requirement = {"type": "assert-default-spec-id", "default-spec-id": 0}
    half = MOST_CHANGES // 2
    too_many = [requirement] * half, [update] * (half + 1)
    for answer in (
        main.commit("db", "a", *too_many),
        main.post(
            "/namespaces/db/views/v", {"requirements": [], "updates": [update] * (2 * half + 1)}
        ),
        commit(main, change("a", *too_many)),
        commit(main, *(change("a", [], [update] * half) for _ in range(2))),
    ):
        assert error_of(answer) == (400, "BadRequestException")
        assert f"at most {MOST_CHANGES}" in answer.body["error"]["message"]
    assert main.commit("db", "a", [requirement] * half, [update] * half).status == 200
