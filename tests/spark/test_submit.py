"""A command as a program of spark-submit, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nessie_cli.submit
from tests.gc.lakes import ROWS, later, shore
from tests.spark.sessions import SETTINGS, environment

SUBMIT = str(Path(sys.executable).parent / "spark-submit")
PATIENCE = 480


def test_a_command_is_a_program_of_spark_submit(tmp_path: Path) -> None:
    with shore(tmp_path) as lake:
        for name in ("kept", "gone", "sick"):
            table = lake.create(name)
            table.append(ROWS)
        Path(table.metadata_location).write_text("{")
        lake.on().drop_table("db.gone")
        when = later().isoformat()
        words = (
            "--store",
            lake.repository.url,
            "gc",
            "mark",
            "--default-cutoff",
            "1",
            "--reference-time",
            when,
            "--runs",
            "runs",
            "--json",
            "--quiet",
        )
        options = [
            word for name, value in SETTINGS.items() for word in ("--conf", f"{name}={value}")
        ]
        with environment(tmp_path):
            done = subprocess.run(
                [
                    SUBMIT,
                    "--master",
                    "local[1]",
                    "--conf",
                    "spark.app.name=garbage",
                    *options,
                    nessie_cli.submit.__file__,
                    *words,
                ],
                cwd=tmp_path,
                env=os.environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
        assert done.returncode == 8, (done.stdout, done.stderr[-6000:])
        answer = json.loads(done.stdout)
        (run,) = lake.runs.all()
        here = lake.planned(lake.settings("1"))
        live, needed = (
            {row["path"] for row in one.dataset("live").records()} for one in (run, here)
        )
    assert (answer["run"], answer["state"], answer["engine"], answer["counts"]["broken"]) == (
        run.id,
        "MARKED",
        "spark",
        1,
    )
    assert live == needed
