"""One check of `nessie doctor`."""

from enum import StrEnum

from msgspec import UNSET, Struct, UnsetType


class CheckStatus(StrEnum):
    """The outcome of a check. ABSENT: optional, and not set or not installed."""

    OK = "OK"
    ABSENT = "ABSENT"
    FAILED = "FAILED"


class Check(Struct, frozen=True):
    """A check: its name, its outcome, what was detected, and a command that fixes it."""

    name: str
    status: CheckStatus
    fact: str
    fix: str | UnsetType = UNSET
