"""Random input gives a documented exit code and one line; a failed command changes nothing.

A case depends only on the seed and its number. `NESSIE_TEST_FUZZ=SEED:FIRST:COUNT pytest
tests/fuzz` runs other cases than the suite does.
"""

from __future__ import annotations

import json
import os
import random
from typing import NamedTuple

from tests.command.outcome import Outcome
from tests.command.process import Forker
from tests.fuzz.damage import Folder, environment, stdin
from tests.fuzz.lines import line

SEED, FIRST, COUNT = map(int, os.environ.get("NESSIE_TEST_FUZZ", "20261122:0:120").split(":"))
LONGEST = 120
"""Seconds after which a command counts as hanging."""
CODES = {0, 1, 2, 3, 4, 5, 6, 7, 8, 126, 127}
CHANGED_NOTHING = CODES - {0, 8}


class Case(NamedTuple):
    """A command and its environment."""

    words: list[str]
    variables: dict[str, str]
    given: str
    broken: str


def case(number: int, folder: Folder) -> Case:
    """Returns the case of this number; damages the folder in some cases."""
    chance = random.Random(f"{SEED}:{number}")
    words = line(chance)
    variables = environment(chance) if chance.random() < 0.3 else {}
    given = stdin(chance)
    broken = folder.break_something(chance) if chance.random() < 0.4 else "nothing"
    return Case(words, variables, given, broken)


def run(forker: Forker, folder: Folder, found: Case) -> Outcome:
    home = folder.path / "home"
    own = {
        "PATH": os.defpath,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "LOGNAME": "tester",
        "LC_ALL": "C.UTF-8",
    }
    return forker.run(
        found.words, folder.work, {**own, **found.variables}, found.given, seconds=LONGEST
    )


def faults(found: Case, outcome: Outcome) -> list[str]:
    """Returns the faults in the outcome of a command."""
    said = [text for text in outcome.err.splitlines() if text.startswith("nessie: ")]
    wrong = [word for word in ("Traceback", "internal error") if word in outcome.err]
    if outcome.code not in CODES:
        wrong.append(f"exit code {outcome.code}")
    failed = outcome.code >= 2 and outcome.code != 8
    if failed and len(said) != 1 and "Usage:" not in outcome.err:
        wrong.append(f"{len(said)} lines that say what is wrong")
    if outcome.code == 1 and not said and not {"fsck", "diff", "audit"} & set(found.words):
        wrong.append("failed without a word")
    if (
        "--json" in found.words[: found.words.index("--") if "--" in found.words else None]
        and found.words[0] != "__complete"
    ):
        try:
            json.loads(outcome.out)
        except ValueError:
            wrong.append("stdout is not a JSON document")
    return wrong


def test_every_command_line_ends_with_a_documented_code_and_one_line(forker, folder) -> None:
    print(f"NESSIE_TEST_FUZZ={SEED}:{FIRST}:{COUNT}")
    complaints = []
    for number in range(FIRST, FIRST + COUNT):
        found = case(number, folder)
        before = folder.state()
        outcome = run(forker, folder, found)
        wrong = faults(found, outcome)
        after = folder.state()
        if outcome.code in CHANGED_NOTHING and after != before:
            wrong.append(
                "changed"
                f" {[name for name in {*before, *after} if before.get(name) != after.get(name)]}"
            )
        if wrong:
            complaints.append(
                f"NESSIE_TEST_FUZZ={SEED}:{number}:1 {wrong} {found} -> {outcome.code}"
                f" {outcome.out[:300]!r} {outcome.err[-1500:]!r}"
            )
        if after != before or found.broken != "nothing":
            folder.make_whole()
    assert not complaints, f"{len(complaints)} of {COUNT}:\n" + "\n".join(complaints)
