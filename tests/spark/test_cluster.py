"""The data source on a real cluster, where all values must be serialized."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from nessie_cli import connect
from tests.repository.vocabulary import Catalog
from tests.server.guarding import guarded
from tests.spark.cluster import PATIENCE, cluster
from tests.spark.conftest import fill


def test_a_program_on_a_cluster(tmp_path: Path, store: str) -> None:
    folder = tmp_path / "cluster"
    (folder / "events").mkdir(parents=True)
    with guarded(tmp_path) as server, cluster(folder) as master:
        fill(Catalog(server.repository))
        token = server.as_("ann", "admin").token
        assert token
        # A file, because every user can read command lines. The driver has the token in its
        # environment, the executors by the setting.
        secret = folder / "secret.conf"
        secret.touch(0o600)
        secret.write_text(f"spark.executorEnv.NESSIE_AUTH_TOKEN {token}\n")
        references = [found.name for found in server.repository.references()]
        contents = [
            [name, server.repository.reference(name).hash]
            for name in references
            for _ in server.repository.entries(name)
        ]
        hashes = {entry.hash for name in references for entry in server.repository.log(name)}
        command = [
            sys.executable,
            "-W",
            "error",
            "-m",
            "tests.spark.job",
            master,
            str(folder),
            f"{server.url}/api/v2",
            store,
        ]
        done = subprocess.run(
            command,
            cwd=Path(__file__).parents[2],
            env=os.environ
            | {
                "NESSIE_AUTH_TOKEN": token,
                "PYSPARK_SUBMIT_ARGS": f"--properties-file {secret} pyspark-shell",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-6000:]
        *plan, last = done.stdout.splitlines()
        answer = json.loads(last)
        (newest, *_) = server.repository.log("main")
        left = {entry.type for entry in server.repository.entries("main")}

    assert answer["executors"] == 2
    assert answer["rows"]["contents"] == sorted(contents)
    assert sorted(hash_ for _, hash_ in answer["rows"]["log"]) == sorted(hashes)
    with connect(store.replace("catalog.sqlite", "away-catalog.sqlite")) as repository:
        assert answer["rows"]["file"] == sorted(
            ["main", entry.hash] for entry in repository.log("main")
        )
    assert (newest.meta.message, newest.meta.committer) == ("from the cluster", "ann")
    assert "ICEBERG_TABLE" not in left
    assert answer["no file"].startswith(f"nessie: {store}, table log: ")
    assert "has no such file" in answer["no file"] or "no such file" in answer["no file"]

    with connect(store.replace("catalog.sqlite", "away-catalog.sqlite")) as repository:
        keys = {
            operation.key
            for entry in repository.log("main", operations=True)
            for operation in entry.operations or ()
        }
        assert answer["stats"] == [len(answer["rows"]["file"]), len(keys)]

    secret.unlink()
    arguments = answer["arguments"]
    assert sum("spark" in line for line in arguments) > 4 or not Path("/proc/self").exists(), (
        "the master, the workers, the driver, the executors"
    )
    said = [
        done.stderr,
        "\n".join(plan),
        *arguments,
        *(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()),
    ]
    assert any("RelationV2" in text for text in said)
    assert any("spark.executorEnv.NESSIE_AUTH_TOKEN" in text for text in said), (
        "the event log tells the settings"
    )
    assert not any(token in text for text in said)
