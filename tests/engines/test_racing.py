"""Writers that race through the Iceberg REST catalog lose nothing."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pyarrow as pa
import requests
from pyiceberg.catalog import load_catalog

from tests.engines.served import Served

WRITERS = 2
APPENDS = 15
TABLES = 6
CHANGES = 15
EMPTY = pa.schema([("writer", pa.int64()), ("number", pa.int64())])


def test_every_append_of_two_writers_is_in_the_table_once(served: Served) -> None:
    served.nessie("branch", "feature/race", "main")
    options = served.pyiceberg("feature/race")
    catalog = load_catalog("lake", **options)
    catalog.create_namespace("db")
    patience = {"commit.retry.num-retries": "100", "commit.retry.max-wait-ms": "200"}
    catalog.create_table("db.t", EMPTY, properties=patience)

    def write(writer: int) -> None:
        table = load_catalog("lake", **options).load_table("db.t")
        barrier.wait()
        for number in range(APPENDS):
            table.append(pa.table({"writer": [writer], "number": [number]}))

    barrier = threading.Barrier(WRITERS)
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))

    table = catalog.load_table("db.t")
    found = Counter((row["writer"], row["number"]) for row in table.scan().to_arrow().to_pylist())
    assert found == Counter((one, two) for one in range(WRITERS) for two in range(APPENDS))
    assert len(table.snapshots()) == WRITERS * APPENDS
    files = list(served.warehouse.glob("db/t_*/metadata/*.metadata.json"))
    commits = [entry for entry in served.log("feature/race") if "db.t" in entry.meta.message]
    assert len(files) == len(commits) == WRITERS * APPENDS + 1, "lost races leave no files"


def test_writers_of_different_tables_never_see_a_conflict(served: Served) -> None:
    served.nessie("branch", "feature/apart", "main")
    catalog = load_catalog("lake", **served.pyiceberg("feature/apart"))
    catalog.create_namespace("db")
    for number in range(TABLES):
        catalog.create_table(f"db.t{number}", EMPTY)
    barrier = threading.Barrier(TABLES)

    def write(number: int) -> list[int]:
        with requests.Session() as session:
            config = session.get(f"{served.rest('feature/apart')}/v1/config", timeout=60).json()
            prefix = config["defaults"]["prefix"]
            url = f"{served.url}/iceberg/v1/{prefix}/namespaces/db/tables/t{number}"
            uuid = session.get(url, timeout=60).json()["metadata"]["table-uuid"]
            barrier.wait()
            return [
                session.post(url, json=change(uuid, {"step": str(step)}), timeout=60).status_code
                for step in range(CHANGES)
            ]

    with ThreadPoolExecutor(TABLES) as pool:
        statuses = [one for made in pool.map(write, range(TABLES)) for one in made]
    assert statuses == [200] * TABLES * CHANGES
    for number in range(TABLES):
        assert catalog.load_table(f"db.t{number}").properties["step"] == str(CHANGES - 1)


def change(uuid: str, properties: dict[str, str]) -> dict[str, Any]:
    """Returns the body of a commit that sets properties of a table."""
    return {
        "requirements": [{"type": "assert-table-uuid", "uuid": uuid}],
        "updates": [{"action": "set-properties", "updates": properties}],
    }


def test_one_request_that_is_sent_many_times_is_one_commit(served: Served) -> None:
    served.nessie("branch", "feature/again", "main")
    catalog = load_catalog("lake", **served.pyiceberg("feature/again"))
    catalog.create_namespace("db")
    uuid = catalog.create_table("db.t", EMPTY).metadata.table_uuid
    url = f"{served.rest('feature/again')}/v1/feature%2Fagain/namespaces/db/tables/t"
    headers = {"Idempotency-Key": str(uuid4())}
    before = len(served.log("feature/again"))

    def send(_: int) -> tuple[int, str]:
        body = change(str(uuid), {"step": "1"})
        answer = requests.post(url, json=body, headers=headers, timeout=60)
        return answer.status_code, answer.json().get("metadata-location")

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(send, range(24)))
    assert len(answers) == 1
    assert next(iter(answers))[0] == 200
    assert len(served.log("feature/again")) == before + 1
