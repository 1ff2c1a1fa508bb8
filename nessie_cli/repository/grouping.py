"""Several calls made durable at once: the disk is waited for once, and each call still has an answer of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from nessie_cli.errors import OutcomeUnknown
from nessie_cli.kernel.objects import Decoded
from nessie_cli.store.base import Held, Store

R = TypeVar("R")


def together(store: Store, cache: Decoded, calls: Sequence[Callable[[], R]]) -> list[R | Exception]:
    """See `Grouping.together`. What the cache has learnt of writes that were undone is forgotten."""
    answers: list[R | Exception] = []
    requests: list[str] = []
    newest = ""
    try:
        with store.exclusive() as held:
            for call in calls:
                before = held.written()
                answers.append(_alone(store, cache, call, held))
                after = held.written()
                # What a call that failed has written was undone.
                newest = after[1] if after != before and not isinstance(answers[-1], Exception) else newest
                requests.append(newest)
    except OutcomeUnknown as unknown:
        # Where the last write of the transaction is, all of them are.
        if newest and store.find_request(newest):
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


def _alone(store: Store, cache: Decoded, call: Callable[[], R], held: Held) -> R | Exception:
    """What one call answers or raises; one that raises leaves nothing behind."""
    before, wrote = held.written(), False
    try:
        with store.exclusive():
            try:
                return call()
            except Exception:
                wrote = held.written() != before
                raise
    except Exception as error:  # noqa: BLE001 - it is the answer of this call, the others go on
        if wrote:
            cache.clear()
        return error
