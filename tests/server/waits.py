"""How long health checks wait while a server answers other requests."""

import os
import time

from tests.server.client import Client

PATIENCE = 60
ATTEMPTS = 4
SOON = 1.0 if "CI" in os.environ else 0.5
"""Seconds in which a health check is answered, whatever others send, on a busy machine."""


def shortest(measure):
    """Returns the shortest of some waits: other programs on the machine only lengthen them."""
    waits = []
    while len(waits) < ATTEMPTS and not (waits and min(waits) < SOON):
        waits.append(measure())
    return min(waits)


def worst_wait(url, pending):
    """Returns the longest wait of a health check until all futures are done."""
    waits = []
    health = Client(url, PATIENCE)
    while not waits or not all(one.done() for one in pending):
        begun = time.monotonic()
        assert health.get("/q/health/live").status == 200
        waits.append(time.monotonic() - begun)
        time.sleep(0.01)
    health.close()
    return max(waits)
