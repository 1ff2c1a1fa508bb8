"""One check of `nessie doctor`."""

from enum import StrEnum
from typing import Annotated

from nessie_cli.wire.record import OPTIONAL, Record


class Status(StrEnum):
    """The outcome of a check. ABSENT: optional, and not set or not installed."""

    OK = "OK"
    ABSENT = "ABSENT"
    FAILED = "FAILED"


class Check(Record, frozen=True):
    """A check: its name, its outcome, what was detected, and a command that fixes it."""

    name: str
    status: Status
    fact: str
    fix: Annotated[str | None, OPTIONAL] = None
