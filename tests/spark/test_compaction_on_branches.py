"""Spark compacts a table on a branch while another program appends to it on main.

`NESSIE_TEST_COMPACTION=SECONDS` is how long appends go on.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from nessie_cli.iceberg.catalog import NessieCatalog
from tests.engines.served import Served, serving
from tests.spark.iceberg import MISSING, RUNTIME
from tests.spark.lakes import Sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(not RUNTIME.path.exists(), reason=MISSING)
SECONDS = float(os.environ.get("NESSIE_TEST_COMPACTION", "8"))
LEAST = 3
"""Rounds, on a machine where Spark is slow. The second one expires snapshots on main."""
TABLE = "shop.orders"
SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("lake")) as running:
        yield running


def catalog(server: Served, ref: str = "main") -> closing[NessieCatalog]:
    return closing(NessieCatalog("lake", **server.embedded(ref)))


class Appender(threading.Thread):
    """Appends rows to main at random times until it is stopped."""

    def __init__(self, server: Served, rng: random.Random) -> None:
        super().__init__()
        self._server, self._rng = server, rng
        self._stopped = threading.Event()
        self.ids: list[int] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        numbers = count(1000)
        try:
            with catalog(self._server) as main:
                while not self._stopped.wait(self._rng.uniform(0, 0.6)):
                    new = [next(numbers) for _ in range(self._rng.randint(1, 3))]
                    main.load_table(TABLE).append(pa.table({"id": new}, schema=SCHEMA))
                    self.ids += new
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self.error = error

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def ids(server: Served, ref: str = "main") -> Counter[int]:
    with catalog(server, ref) as opened:
        return Counter(opened.load_table(TABLE).scan().to_arrow()["id"].to_pylist())


def data_files(server: Served) -> int:
    with catalog(server) as main:
        return len(list(main.load_table(TABLE).scan().plan_files()))


def test_no_row_is_lost_or_doubled_by_compactions_while_others_append(
    spark: SparkSession, server: Served
) -> None:
    rng = random.Random(33)
    with catalog(server) as main:
        main.create_namespace("shop")
        table = main.create_table(TABLE, SCHEMA)
        for id_ in range(6):
            table.append(pa.table({"id": [id_]}, schema=SCHEMA))
    appender = Appender(server, random.Random(34))
    appender.start()
    rounds, end = 0, time.monotonic() + SECONDS
    rewritten = []
    try:
        while rounds < LEAST or time.monotonic() < end:
            rounds += 1
            branch = f"compact-{rounds}"
            server.nessie("branch", branch, "main")
            sql = Sql(spark, server, "rest", ref=branch)
            options = "map('rewrite-all', 'true')"
            ((files, *_),) = sql(
                f"CALL lake.system.rewrite_data_files(table => '{TABLE}', options => {options})"
            )
            rewritten.append(files)
            time.sleep(rng.uniform(0, 1))
            server.nessie("merge", branch)
            server.nessie("branch", "-D", branch)
            if rng.random() < 0.5:
                server.nessie("content", "expire", TABLE, "--older-than", "0s")
            assert set(ids(server).values()) == {1}
            assert appender.error is None
    finally:
        appender.stop()
    assert appender.error is None
    assert min(rewritten) > 1
    assert ids(server) == Counter([*range(6), *appender.ids])
    # Only what was appended since the last compaction is in files of its own.
    assert data_files(server) < len(appender.ids)
    server.nessie("audit")
