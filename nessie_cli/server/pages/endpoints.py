"""The pages beside the API: health, metrics, and the description of the API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from ssl import CERT_REQUIRED
from time import monotonic

from msgspec import json

from nessie_cli.errors import NessieError
from nessie_cli.repository.base import Repository
from nessie_cli.server.http.failures import RETRY_AFTER
from nessie_cli.server.http.messages import JSON, Reply
from nessie_cli.server.nessie.openapi import openapi, security
from nessie_cli.server.pages.manual import manual
from nessie_cli.server.pages.urls import HOME
from nessie_cli.server.pipeline.call import Call
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.pipeline.table import Endpoint, Handler
from nessie_cli.server.runtime.metrics import CONTENT_TYPE, Metrics
from nessie_cli.server.runtime.thread_pool import ThreadPool
from nessie_cli.wire.scalars import Json

METRICS_PAUSE = 0.5
"""Seconds between two texts of the metrics."""
READY_WITHIN = 5.0
"""Seconds that the store has to answer a health check."""


def pages(parts: Parts) -> tuple[Endpoint, ...]:
    """Returns the endpoints that describe the API."""
    # Created on first use, so that the start does not wait for them.
    described = cache(lambda: json.encode(openapi(_ways(parts))))
    page = cache(lambda: manual(openapi(_ways(parts))).encode())

    def api_description(_: Call) -> Reply:
        return Reply(200, [(b"content-type", JSON)], described())

    def api_manual(_: Call) -> Reply:
        return Reply(200, [(b"content-type", b"text/html; charset=utf-8")], page())

    return (
        HOME_PAGE,
        _page("/api/openapi.json", api_description),
        _page("/q/openapi", api_description),
        _page("/api/docs", api_manual),
    )


def checks(parts: Parts, health: Health, thread: ThreadPool) -> tuple[Endpoint, ...]:
    """Returns the endpoints of health checks and metrics, which are also on the management port.

    `thread` makes the text of the metrics.
    """
    metrics = MetricsText(parts.metrics or Metrics(), thread)
    is_open = parts.gate is None or parts.gate.open_metrics
    return (
        _page("/q/health", health.ready),
        _page("/q/health/live", health.live),
        _page("/q/health/ready", health.ready),
        _page("/q/metrics", metrics.answer, is_open=is_open),
    )


class MetricsText:
    """The text of the metrics, made once for all requests that wait for it.

    It takes tens of milliseconds, so there is a pause before the next one. A request never gets one
    that was made before it arrived.
    """

    def __init__(self, metrics: Metrics, thread: ThreadPool) -> None:
        self._metrics = metrics
        self._thread = thread
        self._next: asyncio.Task[bytes] | None = None
        self._not_before = 0.0

    async def answer(self, _: Call) -> Reply:
        """Returns the metrics."""
        if self._next is None:
            self._next = asyncio.create_task(self._made())
        # One client that leaves does not cancel it for the others.
        body = await asyncio.shield(self._next)
        return Reply(200, [(b"content-type", CONTENT_TYPE)], body)

    async def _made(self) -> bytes:
        await asyncio.sleep(self._not_before - monotonic())
        self._next = None
        self._not_before = monotonic() + METRICS_PAUSE
        return await self._thread.submit(self._metrics.text)


class Health:
    """Health checks of the server and its store."""

    def __init__(self, repository: Repository, default_branch: str, checker: ThreadPool) -> None:
        self._read: Callable[[], object] = lambda: repository.reference(default_branch)
        self._checker = checker

    async def live(self, _: Call) -> Reply:
        """Says that the server answers."""
        return _health([])

    async def ready(self, _: Call) -> Reply:
        """Says whether the store answers."""
        try:
            async with asyncio.timeout(READY_WITHIN):
                await self._checker.submit(self._read)
        except (NessieError, OSError, TimeoutError):
            return _health([{"name": "store", "status": "DOWN"}])
        return _health([{"name": "store", "status": "UP"}])


def _page(path: str, handler: Handler, *, is_open: bool = True) -> Endpoint:
    return Endpoint("GET", path, handler, is_open=is_open, is_page=True)


async def _home(_: Call) -> Reply:
    return Reply(307, [(b"location", HOME.encode())])


HOME_PAGE = _page("/", _home)
"""The address without a path, which leads to the first page."""


def _ways(parts: Parts) -> list[Json]:
    """Returns the ways in which callers of a server authenticate."""
    gate, tls = parts.gate, parts.tls
    return security(
        credentials=gate is not None and gate.authenticates,
        anonymous=gate is None or gate.anonymous,
        certificates=tls is not None and tls.verify_mode is CERT_REQUIRED,
    )


def _health(results: list[dict[str, str]]) -> Reply:
    up = all(check["status"] == "UP" for check in results)
    body = json.encode({"status": "UP" if up else "DOWN", "checks": results})
    headers = [(b"content-type", JSON)]
    return (
        Reply(200, headers, body)
        if up
        else Reply(503, [*headers, (b"retry-after", RETRY_AFTER.encode())], body)
    )
