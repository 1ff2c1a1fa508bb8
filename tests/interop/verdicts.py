"""Iceberg's own parser judges the metadata files of `tests/iceberg/mutants.py`.

`make test-original` compares its verdicts with the recorded ones.
`python -m tests.interop.verdicts` records them.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.iceberg.mutants import VALUES, VERDICTS, Mutant, mutants
from tests.interop.machine import PATIENCE, Machine, compiled, machine

__all__ = ["machine"]

UNTRIED = "."


def judged(machine: Machine, given: Sequence[Mutant]) -> list[str]:
    """Returns a verdict for each file, with Iceberg's reason."""
    lines = "".join(json.dumps(one.document) + "\n" for one in given)
    done = subprocess.run(
        machine.command("MetadataParser"),
        input=lines,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return done.stdout.splitlines()


def text(given: Sequence[Mutant], verdicts: Sequence[str]) -> str:
    """Returns the content of the file: a line for each place, a letter for each value."""
    rows: dict[tuple[str, str], list[str]] = {}
    for one, verdict in zip(given, verdicts, strict=True):
        size = 1 if one.place == "-" or one.place.startswith("edit:") else len(VALUES)
        row = rows.setdefault((one.base, one.place), [UNTRIED] * size)
        row[one.number] = verdict[0]
    return "".join(f"{base} {''.join(row)} {place}\n" for (base, place), row in rows.items())


def test_the_recorded_verdicts_are_icebergs(machine: Machine) -> None:
    given = list(mutants())
    assert text(given, judged(machine, given)) == VERDICTS.read_text(encoding="utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        given = list(mutants())
        found = judged(compiled(Path(folder)), given)
    VERDICTS.write_text(text(given, found), encoding="utf-8")


if __name__ == "__main__":
    main()
