"""Makes time and random numbers repeatable in each Python program of a documents session.

Python imports this module at its start, because its folder is on `PYTHONPATH`. The programs of a
session are numbered. The number is the seed of `os.urandom` and decides the time, which does not
change while the program runs. `secrets` takes its numbers from there, too. So ids and times on a
page are the same after each run.
"""

from __future__ import annotations

import fcntl
import os
import random
import time
from pathlib import Path

_BEGIN = 1_772_442_000  # 2026-03-02T09:00:00Z
_STEP = 60


def _number() -> int:
    with Path(os.environ["DOCUMENTS_COUNTER"]).open("r+", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        number = int(file.read() or 0) + 1
        file.seek(0)
        file.write(str(number))
    return number


def _make_repeatable() -> None:
    number = _number()
    now = (_BEGIN + _STEP * number) * 1_000_000_000
    time.time_ns = lambda: now
    time.time = lambda: now / 1e9
    os.urandom = random.Random(number).randbytes  # noqa: S311
    # `secrets` uses `random.SystemRandom`, which has a name of its own for `os.urandom`.
    random._urandom = os.urandom  # type: ignore[attr-defined]  # noqa: SLF001


if "DOCUMENTS_COUNTER" in os.environ:
    _make_repeatable()
