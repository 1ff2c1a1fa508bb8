"""Several calls made durable at once: the disk is waited for once, and each call still has an answer of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from nessie_cli.errors import OutcomeUnknown
from nessie_cli.kernel.objects import Decoded
from nessie_cli.store.base import Store

R = TypeVar("R")


def together(store: Store, cache: Decoded, calls: Sequence[Callable[[], R]]) -> list[R | Exception]:
    """See `Grouping.together`. What the cache has learnt of writes that were undone is forgotten."""
    answers: list[R | Exception] = []
    requests: list[str] = []
    try:
        with store.exclusive():
            newest = _newest_move(store)
            for call in calls:
                answers.append(_alone(store, cache, call, newest))
                newest = _newest_move(store)
                requests.append(newest[1])
    except OutcomeUnknown as unknown:
        # Where the last write of the transaction is, all of them are.
        if requests and store.find_request(requests[-1]):
            return answers
        cache.clear()
        return [OutcomeUnknown(unknown.message, request) for request in requests]
    except Exception as error:  # noqa: BLE001 - nothing was written, and each caller is to hear why
        cache.clear()
        return [error] * len(calls)
    except BaseException:
        cache.clear()
        raise
    return answers


def _alone(store: Store, cache: Decoded, call: Callable[[], R], newest: tuple[int, str]) -> R | Exception:
    """What one call answers or raises; one that raises leaves nothing behind."""
    wrote = False
    try:
        with store.exclusive():
            try:
                return call()
            except Exception:
                wrote = _newest_move(store) != newest
                raise
    except Exception as error:  # noqa: BLE001 - it is the answer of this call, the others go on
        if wrote:
            cache.clear()
        return error


def _newest_move(store: Store) -> tuple[int, str]:
    """Number and request id of the last move of any reference."""
    return next(((row.number, row.move.request_id) for row in store.reflog(limit=1)), (0, ""))
