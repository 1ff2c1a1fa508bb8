"""A user's program on a cluster: reads and writes a catalog on a server. Prints JSON."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path

from nessie_cli import NessieError, connect
from nessie_cli.spark import history_of, nessie_errors, register
from tests.spark.sessions import session


def arguments() -> list[str]:
    """Returns the command lines of all processes, which every user can read."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        # Processes may end meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def main(master: str, folder: Path, server: str, store: str) -> dict[str, object]:
    more = {
        "spark__executorEnv__PYTHONPATH": str(Path(__file__).parents[2]),
        "spark__executor__memory": "512m",
        "spark__eventLog__enabled": "true",
        "spark__eventLog__compress": "false",
        "spark__eventLog__dir": (folder / "events").as_uri(),
        "spark__task__maxFailures": "1",
    }
    with session(folder, master, **more) as spark:
        register(spark)
        spark.sparkContext.setLogLevel("INFO")

        def nessie(**options: str):  # type: ignore[no-untyped-def]
            return (
                spark.read.format("nessie")
                .options(**{"url": server, "rowsPerPartition": "10"} | options)
                .load()
            )

        contents = nessie(table="contents", ref="*")
        contents.explain(extended=True)
        from_file = nessie(url=store, table="log")
        parts = {"contents": contents, "log": nessie(table="log", ref="*"), "file": from_file}
        frames = [
            frame.selectExpr(f"'{name}' as name", "reference", "hash")
            for name, frame in parts.items()
        ]
        found = frames[0].union(frames[1]).union(frames[2]).collect()
        answer: dict[str, object] = {
            "executors": spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1,
            "rows": {
                name: sorted(
                    (row["reference"], row["hash"]) for row in found if row["name"] == name
                )
                for name in parts
            },
        }
        with connect(store) as repository:
            head = repository.reference("main").hash
        history = history_of(spark, store, head, None, 5, rows=10)
        answer |= {"stats": [history.commits.commits, history.keys], "arguments": arguments()}
        tables = contents.where("reference = 'main' and type = 'ICEBERG_TABLE'").selectExpr(
            "'DELETE' as operation", "key"
        )
        tables.write.format("nessie").mode("append").options(
            url=server, ref="main", message="from the cluster"
        ).save()
        for file in Path(store.removeprefix("sqlite:///")).parent.glob("catalog.sqlite*"):
            file.rename(file.with_name(f"away-{file.name}"))
        try:
            with nessie_errors():
                from_file.foreach(print)
        except NessieError as error:
            answer["no file"] = error.message
    return answer


if __name__ == "__main__":
    _, master, folder, server, store = sys.argv
    print(json.dumps(main(master, Path(folder), server, store)))
