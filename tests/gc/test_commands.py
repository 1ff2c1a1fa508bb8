"""The commands of a run, as interrupted processes on a lake in S3. They print no secrets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nessie_cli.errors import StoreUnavailable
from nessie_cli.gc.mark import mark
from nessie_cli.gc.run import Runs, RunSettings, RunState
from tests.gc.s3 import KEY, SECRET, Store, s3
from tests.iceberg.lake import ROWS, Lake, lake_at, new_store, sorted_rows

PATIENCE = 240
INTERRUPTED = 130
LATER = "2999-01-01T00:00:00Z"
"""Nothing that was done by now is in the reflog then."""


@pytest.fixture
def store() -> Iterator[Store]:
    with s3() as found:
        yield found


@pytest.fixture
def lake(store: Store, tmp_path: Path) -> Iterator[Lake]:
    """A lake with old states of two tables as garbage, and a dropped table."""
    with lake_at(new_store(tmp_path), tmp_path) as found:
        catalog = found.catalog(**store.properties, warehouse="s3://lake/warehouse")
        catalog.create_namespace("db")
        for name in ("db.a", "db.b", "db.gone"):
            catalog.create_table(name, ROWS.schema).append(ROWS)
        catalog.drop_table("db.gone")
        yield found


class Nessie:
    """The command and its output.

    Credentials are in the environment and in a catalog of PyIceberg's configuration.
    """

    def __init__(self, lake: Lake, store: Store) -> None:
        self.folder = lake.folder
        self.said = ""
        amazon = {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": store.url,
        }
        catalog = {
            f"PYICEBERG_CATALOG__KNOWN__{name.upper().replace('-', '_').replace('.', '__')}": text
            for name, text in store.properties.items()
        }
        self._environments = {None: amazon, "known": catalog}

    def start(self, *words: str, catalog: str | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "nessie_cli",
                "--store",
                str(self.folder / "catalog.sqlite"),
                "gc",
                *words,
                "--runs",
                "runs",
            ],
            cwd=self.folder,
            env=os.environ | self._environments[catalog],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        out, err = process.communicate(timeout=PATIENCE)
        self.said += out + err
        return process.returncode, out

    def __call__(self, *words: str, catalog: str | None = None) -> Any:
        code, out = self.end(self.start(*words, "--json", catalog=catalog))
        assert code == 0, self.said
        return json.loads(out)

    def stopped(
        self,
        store: Store,
        request: tuple[str, str],
        number: signal.Signals,
        *words: str,
        catalog: str,
    ) -> int:
        """Starts the command and sends it a signal while it waits for an answer of the store."""
        store.held.add(request)
        process = self.start(*words, catalog=catalog)
        assert store.waits.wait(PATIENCE)
        process.send_signal(number)
        store.held.clear()
        store.go.set()
        code, _ = self.end(process)
        store.waits.clear()
        store.go.clear()
        return code


def test_an_interrupted_run_on_s3_is_resumed(lake, store):
    nessie = Nessie(lake, store)
    settings = ("--default-cutoff", "1", "--catalog", "known", "--reference-time", LATER)
    assert (
        nessie.stopped(store, ("GET", ".avro"), signal.SIGINT, "mark", *settings, catalog="known")
        == INTERRUPTED
    )
    runs = Runs(lake.folder / "runs")
    assert runs.open().info.state is RunState.MARKING
    resumed = nessie("mark", "--resume", runs.open().id, catalog="known")
    assert (resumed["state"], resumed["counts"]["broken"], resumed["catalog"]) == (
        "MARKED",
        0,
        "known",
    )
    planned = nessie(
        "plan", "--warehouse", "s3a://lake/warehouse/", "--grace", "0s", catalog="known"
    )
    listing = nessie("show", "--candidates")["candidates"]
    assert {item["location"].split("/")[5].split("_")[0] for item in listing} == {"a", "b", "gone"}
    assert len(listing) == planned["counts"]["candidates"] > 3
    nessie("approve")
    assert (
        nessie.stopped(store, ("DELETE", ".avro"), signal.SIGTERM, "apply", catalog="known")
        == -signal.SIGTERM
    )
    assert runs.open().info.state is RunState.APPLYING
    applied = nessie("apply", catalog="known")
    assert applied["counts"]["deleted"] + applied["counts"]["gone"] == len(listing)
    left = [
        info.path
        for info in store.files.get_file_info(
            [item["location"].removeprefix("s3://") for item in listing]
        )
        if info.size is not None
    ]
    assert left == []
    for name in ("db.a", "db.b"):
        assert len(sorted_rows(lake.catalog(**store.properties).load_table(name))) == 3

    nessie("mark", "--default-cutoff", "1", "--reference-time", LATER)
    again = nessie("plan", "--warehouse", "s3://lake", "--grace", "0s")
    assert (again["counts"]["candidates"], again["counts"]["broken"], again["catalog"]) == (
        0,
        0,
        None,
    )
    kept = b"".join(
        path.read_bytes() for path in (lake.folder / "runs").rglob("*") if path.is_file()
    )
    for output in (kept, nessie.said.encode()):
        assert SECRET.encode() not in output
        assert KEY.encode() not in output


def terms_of(lake: Lake) -> Any:
    when = datetime.now(UTC)
    return Runs(lake.folder / "runs").new(RunSettings(store=lake.uri, reference_time=when), when)


def test_a_store_that_stops_answering_breaks_no_table(lake, store):
    run = terms_of(lake)

    def away(what: str, done: int, _total: int | None) -> None:
        if (what, done) == ("live files", 2):
            store.close()

    with (
        pytest.raises(
            StoreUnavailable, match=r"s3://lake/warehouse/db/\S+ cannot be read"
        ) as caught,
        run.changing(),
        run.failing(),
    ):
        mark(lake.repository, run.info.settings, run.marks(), store.properties, away)
    assert SECRET not in caught.value.message
    assert (run.info.state, run.info.error, run.marks().live.exists) == (
        RunState.FAILED,
        caught.value.message,
        False,
    )


def test_a_store_that_never_answers_is_asked_three_times_and_its_tables_are_broken(lake, store):
    store.close()
    run = terms_of(lake)
    with run.changing():
        counts = mark(
            lake.repository, run.info.settings, run.marks(), store.properties, lambda *_: None
        ).counts
    assert counts["broken"] == 3
    said = [record["message"] for record in run.marks().findings.records()]
    assert len([message for message in said if message.endswith("s3://lake does not answer")]) > 0
