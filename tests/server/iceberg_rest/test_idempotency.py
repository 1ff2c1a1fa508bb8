"""Requests that are repeated with the same idempotency key are carried out once."""

from __future__ import annotations

import gc
import threading
import weakref
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from nessie_cli import connect, create
from nessie_cli.errors import NessieError
from nessie_cli.iceberg.warehouses.configuration import from_options
from nessie_cli.server.auth.gate import Security, open_gate
from nessie_cli.server.auth.tokens import add_token
from nessie_cli.server.iceberg.errors import CommitConflict
from nessie_cli.server.iceberg.idempotency import Idempotency
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from tests.server.client import Answer, Client
from tests.server.guarding import TokenClient
from tests.server.iceberg_rest.lake import (
    SCHEMA,
    VIEW_VERSION,
    IcebergClient,
    Lake,
    appending,
    error_of,
)
from tests.server.iceberg_rest.test_transactions import at, change, commit
from tests.server.serving import serving


def key() -> str:
    return str(uuid4())


def commits(served: Lake) -> int:
    return len(list(served.repository.log("main")))


def test_every_kind_of_change_is_carried_out_once(main: IcebergClient, served: Lake) -> None:
    def twice(method: str, path: str, body: object = None) -> Answer:
        before, given = commits(served), key()
        first = main.send(method, path, body, idempotency_key=given)
        assert first.status in (200, 204), first.body
        files = served.files()
        again = main.send(method, path, body, idempotency_key=given)
        assert (again.status, again.body) == (first.status, first.body)
        assert commits(served) == before + 1
        assert served.files() == files
        return first

    table = {"name": "t", "schema": SCHEMA}
    view = {"name": "v", "schema": SCHEMA, "view-version": VIEW_VERSION, "properties": {}}
    twice("POST", "/namespaces", {"namespace": ["n"], "properties": {"a": "1"}})
    twice("POST", "/namespaces/n/properties", {"removals": ["a", "x"], "updates": {"b": "2"}})
    location = twice("POST", "/namespaces/n/tables", table).body["metadata-location"]
    twice("POST", "/namespaces/n/register", {"name": "u", "metadata-location": location})
    updates = {"requirements": [], "updates": appending(1, None)}
    twice("POST", "/namespaces/n/tables/t", updates)
    rename = {
        "source": {"namespace": ["n"], "name": "u"},
        "destination": {"namespace": ["n"], "name": "w"},
    }
    twice("POST", "/tables/rename", rename)
    twice("DELETE", "/namespaces/n/tables/w")
    twice("POST", "/namespaces/n/views", view)
    set_ = [{"action": "set-properties", "updates": {"a": "b"}}]
    twice("POST", "/namespaces/n/views/v", {"requirements": [], "updates": set_})
    twice("DELETE", "/namespaces/n/views/v")
    twice("DELETE", "/namespaces/n/tables/t")
    twice("DELETE", "/namespaces/n")
    main.create("db", "t")
    changes = [change("t", [at(None)], appending(2, None))]
    twice("POST", "/transactions/commit", {"table-changes": changes})


def test_a_repetition_gets_the_result_of_the_first_request(
    main: IcebergClient, served: Lake
) -> None:
    main.create("db", "t")
    given = key()
    first = main.set_properties("db", "t", idempotency_key=given)
    main.append("db", "t", 1, None)
    again = main.set_properties("db", "t", idempotency_key=given)
    assert again.body == first.body
    assert main.load("db", "t").body["metadata"]["current-snapshot-id"] == 1


def test_a_key_that_was_used_for_another_request_is_refused(
    main: IcebergClient, served: Lake
) -> None:
    main.create("db", "t")
    main.create("db", "u")
    given = key()
    assert main.set_properties("db", "t", idempotency_key=given).status == 200
    for answer in (
        main.set_properties("db", "t", idempotency_key=given, properties={"c": "d"}),
        main.set_properties("db", "u", idempotency_key=given),
        main.send("DELETE", "/namespaces/db/tables/t", idempotency_key=given),
    ):
        assert error_of(answer) == (400, "BadRequestException")
        assert given in answer.body["error"]["message"]
    assert main.load("db", "t").status == 200


def test_other_callers_cannot_use_a_key_up(tmp_path: Path) -> None:
    """The reflog shows the keys of all callers; a refused repetition looks like a failed commit."""
    tokens = tmp_path / "tokens"
    named = {
        name: add_token(tokens, name, [], None, datetime.now(UTC))[0] for name in ("ann", "bob")
    }
    parts = Parts(
        gate=open_gate(Security(tokens=tokens)), warehouses=from_options([str(tmp_path / "lake")])
    )
    body, given = {"namespace": ["n"], "properties": {"a": "1"}}, key()

    def send(url: str, name: str) -> Answer:
        with closing(TokenClient(url, named[name])) as client:
            return IcebergClient(client).post("/namespaces", body, idempotency_key=given)

    with (
        connect("memory:") as repository,
        serving(app=application(repository, parts)) as first,
        serving(app=application(repository, parts)) as second,
    ):
        answer = send(first, "ann")
        assert answer.status == 200
        for url in (first, second):
            assert error_of(send(url, "bob")) == (400, "BadRequestException")
            again = send(url, "ann")
            assert (again.status, again.body) == (200, answer.body)


@pytest.mark.parametrize("wrong", ["x", "1" * 36, "0123456789abcdef0123456789abcdef", ""])
def test_a_key_must_be_a_uuid(main: IcebergClient, wrong: str) -> None:
    answer = main.post("/namespaces", {"namespace": ["n"]}, idempotency_key=wrong)
    assert error_of(answer) == (400, "BadRequestException")


def test_a_request_that_changed_nothing_is_not_carried_out_later(
    main: IcebergClient, served: Lake
) -> None:
    def set_to(value: str, given: str) -> Answer:
        body = {"updates": {"x": value}, "removals": ["y"]}
        return main.post("/namespaces/a/properties", body, idempotency_key=given)

    main.namespace("a", x="1")
    before, given = commits(served), key()
    first = set_to("1", given)
    assert (first.status, commits(served)) == (200, before)
    assert set_to("2", key()).status == 200
    again = set_to("1", given)
    assert (again.status, again.body) == (200, first.body)
    assert commits(served) == before + 1
    assert set_to("1", key()).status == 200
    assert commits(served) == before + 2


def test_a_commit_without_updates_is_answered_alike_later(main: IcebergClient) -> None:
    main.namespace("a")
    main.create("a", "t")
    given = key()
    first = main.commit("a", "t", [], [], idempotency_key=given)
    assert main.set_properties("a", "t").status == 200
    again = main.commit("a", "t", [], [], idempotency_key=given)
    assert (again.status, again.body) == (200, first.body)


def test_refusals_are_repeated(main: IcebergClient, served: Lake) -> None:
    main.create("db", "t")
    missing, stale = key(), key()
    assert error_of(main.set_properties("db", "u", idempotency_key=missing))[0] == 404
    answer = commit(main, change("t", [at(5)], appending(1, None)), idempotency_key=stale)
    assert error_of(answer) == (409, "CommitFailedException")
    main.create("db", "u")
    assert error_of(main.set_properties("db", "u", idempotency_key=missing))[0] == 404
    again = commit(main, change("t", [at(5)], appending(1, None)), idempotency_key=stale)
    assert again.body == answer.body
    assert main.set_properties("db", "u", idempotency_key=key()).status == 200


def test_a_long_refusal_is_repeated_in_short(main: IcebergClient) -> None:
    """A message can repeat megabytes of the request, and there are thousands of keys."""
    main.create("db", "t")
    given, name = key(), "x" * 100_000
    requirement = {"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": 1}
    body = [change("t", [requirement], appending(1, None))]
    answers = [commit(main, *body, idempotency_key=given) for _ in range(2)]
    assert [error_of(answer) for answer in answers] == [(409, "CommitFailedException")] * 2
    first, again = (answer.body["error"]["message"] for answer in answers)
    assert name in first
    assert len(again) < 2_010
    assert first.startswith(again.removesuffix("..."))


def test_of_a_refusal_only_its_answer_is_remembered() -> None:
    """Its frames, causes and facts refer to the request."""
    uses = Idempotency()
    refusals: list[weakref.ref[CommitConflict]] = []

    def refuse() -> None:
        refusal = CommitConflict("stale")
        refusals.append(weakref.ref(refusal))
        raise refusal

    for message in ("stale", "stale"):
        with pytest.raises(NessieError, match=message):
            uses.once(("ann", "a"), b"", lambda: None, refuse)
    gc.collect()
    [refusal] = refusals
    assert refusal() is None


def test_concurrent_repetitions_wait_for_the_first_request(served: Lake) -> None:
    served.main.create("db", "t")
    given, before = key(), commits(served)
    answers: list[Answer] = []

    def send() -> None:
        client = served.another_client()
        answers.append(client.set_properties("db", "t", idempotency_key=given))
        client.client.close()

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status for answer in answers] == [200] * 8
    assert len({answer.raw for answer in answers}) == 1
    assert commits(served) == before + 1
    assert len(served.files()) == 2


def test_keys_are_shared_between_servers_of_one_store(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.sqlite"
    create(url).close()
    warehouses = from_options([str(tmp_path / "warehouse")])
    given, seen = key(), []
    for _ in range(2):
        with connect(url) as repository:
            app = application(repository, Parts(warehouses=warehouses))
            with serving(app=app) as address:
                client = IcebergClient(Client(address))
                seen.append(client.post("/namespaces", {"namespace": ["n"]}, idempotency_key=given))
                other = client.post("/namespaces", {"namespace": ["m"]}, idempotency_key=given)
                assert error_of(other)[0] == 400
                client.client.close()
    assert [answer.status for answer in seen] == [200, 200]
    assert seen[0].body == seen[1].body
