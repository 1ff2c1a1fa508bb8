"""Several calls made durable at once: the disk is waited for once, and each call still has an answer of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from nessie_cli.errors import OutcomeUnknown
from nessie_cli.store.base import Store

R = TypeVar("R")


def together(store: Store, calls: Sequence[Callable[[], R]]) -> list[R | Exception]:
    """See `Grouping.together`."""
    answers: list[R | Exception] = []
    requests: list[str] = []
    try:
        with store.exclusive():
            for call in calls:
                answers.append(_alone(store, call))
                requests.append(_newest_request(store))
    except OutcomeUnknown as unknown:
        # Where the last write of the transaction is, all of them are.
        if requests and store.find_request(requests[-1]):
            return answers
        return [OutcomeUnknown(unknown.message, request) for request in requests]
    except Exception as error:  # noqa: BLE001 - nothing was written, and each caller is to hear why
        return [error] * len(calls)
    return answers


def _alone(store: Store, call: Callable[[], R]) -> R | Exception:
    """What one call answers or raises; one that raises leaves nothing behind."""
    try:
        with store.exclusive():
            return call()
    except Exception as error:  # noqa: BLE001 - it is the answer of this call, the others go on
        return error


def _newest_request(store: Store) -> str:
    """The request id of the last move of any reference."""
    return next((row.move.request_id for row in store.reflog(limit=1)), "")
