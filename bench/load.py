"""The first load of a million keys through the Python API, and listing them.

Each runs in its own process, so that its memory can be measured.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench import corpus
from bench.report import Line

KEYS = 1_000_000
GIGABYTE = 1e9
SETTLED = KEYS // 2
"""Entries after which the cache of nodes (at most 16,384) is full and memory must not grow."""

STORE = "million.sqlite"


def measure(scratch: Path) -> Iterator[Line]:
    """Measures seconds and bytes of the load, and the growth of memory while listing."""
    path = scratch / STORE
    done = _in_new_process("load", path)
    size = path.stat().st_size / KEYS
    made_of = (
        f"{KEYS / done['seconds']:,.0f} keys a second; {done['cpu']:.0f} s of processor time;"
        f" {size:.0f} bytes of store per key"
    )
    yield Line(f"first load of {KEYS:,} keys", done["seconds"], "s", 60, made_of)
    yield Line("its memory", done["peak"] / GIGABYTE, "GB", 1, "peak of the process")
    for what, name in (
        ("listing them, keys only", "list"),
        ("listing them with contents", "list_contents"),
    ):
        done = _in_new_process(name, path)
        grown = (done["peak"] - done["settled"]) / 1e6
        made_of = (
            f"peak {done['peak'] / 1e6:.0f} MB, {done['settled'] / 1e6:.0f} MB after {SETTLED:,}"
            f" keys; {done['seconds']:.1f} s"
        )
        yield Line(f"{what}: memory that grows with them", grown, "MB", 10, made_of)


def peak() -> float:
    """Returns the most bytes of memory that this process has had."""
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux, the other counter starts with the memory of the parent process.
        return float(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) * 1024  # type: ignore[index]
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def _in_new_process(what: str, path: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.load", what, str(path)],
        check=True,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    )
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def _load(path: Path) -> dict[str, float]:
    corpus.load(path, KEYS)
    return {}


def _list(path: Path, *, content: bool = False) -> dict[str, float]:
    repository, _ = corpus.open_repository(path)
    settled = 0.0
    with repository:
        for number, _ in enumerate(repository.entries("main", content=content)):
            if number == SETTLED:
                settled = peak()
    assert number >= KEYS
    return {"settled": settled}


def _main() -> None:
    what, path = sys.argv[1], Path(sys.argv[2])
    begun = time.perf_counter()
    found = _load(path) if what == "load" else _list(path, content=what == "list_contents")
    print(
        json.dumps(
            {
                "seconds": time.perf_counter() - begun,
                "cpu": time.process_time(),
                "peak": peak(),
                **found,
            }
        )
    )


if __name__ == "__main__":
    _main()
