"""The command line reads metadata files in S3, at the endpoint that Amazon's variables name."""

from __future__ import annotations

import os
from pathlib import Path

from tests.command.process import Forker
from tests.gc.s3 import KEY, SECRET, s3
from tests.iceberg.lake import ROWS, lake_at, new_store

FILE = "lake/t/metadata/1.metadata.json"


def test_amazon_s_variables_name_the_endpoint_of_s3(forker: Forker, tmp_path: Path) -> None:
    uri = new_store(tmp_path)
    with lake_at(uri, tmp_path) as lake, s3() as store:
        catalog = lake.catalog("main")
        catalog.create_namespace("db")
        table = catalog.create_table("db.local", ROWS.schema)
        store.put(FILE, Path(table.metadata_location).read_bytes())
        environment = os.environ | {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL_S3": store.url,
        }

        def nessie(*line: str) -> None:
            outcome = forker.run(["--store", uri, *line], tmp_path, environment)
            assert outcome.code == 0, outcome

        for name, location in (("file", f"s3://{FILE}"), ("folder", "s3://lake/t")):
            nessie("content", "put", name, "--from-metadata", location, "-m", name)
        before = len(store.requests)
        nessie("audit", "--prefix", "file")
        assert ("HEAD", f"/{FILE}") in store.requests[before:]
