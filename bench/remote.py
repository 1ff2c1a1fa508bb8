"""The processor time of commands that call a server, relative to Python's own start-up.

Most of it is the import of requests.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import startup
from bench.commands import SCRIPT, How, Measured, ratios, run
from bench.corpus import table_key
from bench.report import Line

GOAL = 12.0
LINES = {
    f"nessie {' '.join(words)}, of a server": Measured(words, GOAL)
    for words in (
        ("status",),
        ("log", "-n", "20"),
        ("content", "list"),
        ("content", "show", ".".join(table_key(0).elements)),
        ("branch",),
        ("diff", "main~5"),
    )
}


def measure(scratch: Path, how: How) -> Iterator[Line]:
    """Returns the ratios to `python -c pass`, by processor time: the server is another process."""
    served = startup.workspace_with_tables(scratch / "startup")
    with _serving(served) as url:
        folder = scratch / "remote"
        folder.mkdir(exist_ok=True)
        run(folder, "init", "--store", url)
        yield from ratios(
            folder, LINES, how if how.by == "instructions" else how._replace(by="processor")
        )


@contextmanager
def _serving(folder: Path) -> Iterator[str]:
    command = [SCRIPT, "serve", "--port", "0"]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://\S+/api/v2", line)
        try:
            if found is None:
                raise SystemExit(f"nessie serve: {line}")
            yield found[0]
        finally:
            process.terminate()
