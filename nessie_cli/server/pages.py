"""The pages beside the API: health, metrics, and the description of the API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from ssl import CERT_REQUIRED

from msgspec import json
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from nessie_cli.errors import NessieError
from nessie_cli.server.app import Application, Server
from nessie_cli.server.auth.identity import KeysUnavailable, Unauthenticated
from nessie_cli.server.failures import RETRY_AFTER, HttpFault, error_body
from nessie_cli.server.http import Headers, check_single
from nessie_cli.server.manual import manual
from nessie_cli.server.openapi import openapi, security
from nessie_cli.wire.encode import Json

READY_WITHIN = 5.0
"""Seconds that the store has to answer a health check."""


def pages(server: Server) -> Application:
    """Returns the application for paths outside of the API."""
    # Created on first use, so that the start does not wait for them.
    described = cache(lambda: json.encode(openapi(_ways(server))))
    page = cache(lambda: manual(openapi(_ways(server))))

    async def api_description(_: Request) -> Response:
        return Response(await server.read(described), media_type="application/json")

    async def api_manual(_: Request) -> Response:
        return HTMLResponse(await server.read(page))

    async def home(_: Request) -> Response:
        return RedirectResponse("/api/docs")

    return Starlette(
        routes=[
            Route("/", home),
            *_checks(server),
            Route("/api/openapi.json", api_description),
            Route("/q/openapi", api_description),
            Route("/api/docs", api_manual),
        ]
    )


def management_pages(server: Server) -> Application:
    """Returns the application of the management port: health and metrics."""
    return Starlette(routes=_checks(server))


def _checks(server: Server) -> list[Route]:
    async def live(_: Request) -> Response:
        return _health([])

    async def ready(_: Request) -> Response:
        return _health([await _store(server)])

    async def metrics(request: Request) -> Response:
        if (refusal := await _metrics_refusal(server, request.scope["headers"])) is not None:
            return refusal
        server.metrics.sample()
        return Response(
            await asyncio.to_thread(server.metrics.text), media_type=CONTENT_TYPE_PLAIN_0_0_4
        )

    return [
        *_with_and_without_slash("/q/health", ready),
        *_with_and_without_slash("/q/health/live", live),
        *_with_and_without_slash("/q/health/ready", ready),
        *_with_and_without_slash("/q/metrics", metrics),
    ]


async def _metrics_refusal(server: Server, headers: Headers) -> Response | None:
    """Returns the refusal of a caller who may not see the metrics."""
    if server.gate is None or server.gate.open_metrics:
        return None
    try:
        check_single(headers)
        await server.gate.admit(headers)
    except (HttpFault, KeysUnavailable, Unauthenticated) as error:
        more = {}
        if isinstance(error, KeysUnavailable):
            more["retry-after"] = RETRY_AFTER
        if isinstance(error, Unauthenticated):
            more["www-authenticate"] = error.challenge.decode()
        return Response(json.encode(error_body(error, "")), error.status, more, "application/json")
    return None


def _with_and_without_slash(
    path: str, answer: Callable[[Request], Awaitable[Response]]
) -> tuple[Route, Route]:
    """Returns routes with and without a final slash, for probes that do not follow redirects."""
    return Route(path, answer), Route(f"{path}/", answer)


def _ways(server: Server) -> list[Json]:
    """Returns the ways in which callers of a server authenticate."""
    gate, tls = server.gate, server.tls
    return security(
        credentials=gate is not None and gate.authenticates,
        anonymous=gate is None or gate.anonymous,
        certificates=tls is not None and tls.verify_mode is CERT_REQUIRED,
    )


async def _store(server: Server) -> dict[str, str]:
    try:
        async with asyncio.timeout(READY_WITHIN):
            await server.check(
                lambda: server.catalog.repository.reference(server.catalog.default_branch)
            )
    except (NessieError, OSError, TimeoutError):
        return {"name": "store", "status": "DOWN"}
    return {"name": "store", "status": "UP"}


def _health(checks: list[dict[str, str]]) -> Response:
    up = all(check["status"] == "UP" for check in checks)
    body = json.encode({"status": "UP" if up else "DOWN", "checks": checks})
    return Response(
        body, 200 if up else 503, {} if up else {"retry-after": RETRY_AFTER}, "application/json"
    )
