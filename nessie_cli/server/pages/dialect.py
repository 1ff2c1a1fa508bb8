"""The dialect of the pages: answers in HTML, forms of the same origin, errors for people."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from nessie_cli.errors import NessieError
from nessie_cli.server.auth.gate import Admission, Catalog, Gate, host_of_origin
from nessie_cli.server.http.failures import HttpFault
from nessie_cli.server.http.messages import Headers, Reply, header
from nessie_cli.server.nessie.dialect import READERS
from nessie_cli.server.pages.call import PageCall
from nessie_cli.server.pages.html import html_reply
from nessie_cli.server.pages.login import LoginPages, LoginRequired
from nessie_cli.server.pages.urls import ROOT
from nessie_cli.server.pipeline.exchange import Exchange
from nessie_cli.server.pipeline.failures import failure_headers, shown_error
from nessie_cli.server.pipeline.pipeline import Dialect
from nessie_cli.server.pipeline.table import Endpoint, Match, NoRoute, RouteTable
from nessie_cli.server.runtime.thread_pool import ThreadPool

_SAFE = frozenset({"GET", "HEAD"})


def pages_dialect(
    endpoints: Iterable[Endpoint], most_waiting: int, login: LoginPages | None = None
) -> Dialect:
    """Returns the dialect with these endpoints. At most `most_waiting` reads wait.

    `login` admits callers, if the server has authentication.
    """
    readers = ThreadPool(READERS, most_waiting=most_waiting)
    if login is None:
        return Dialect(RouteTable(endpoints).match, call, failure, readers, lambda _: None)

    async def admit(_: Gate, headers: Headers) -> Admission:
        return await login.admit(readers, headers)

    def call_of(exchange: Exchange, match: Match, catalog: Catalog, body: bytes) -> PageCall:
        request = call(exchange, match, catalog, body)
        request.login = login.state(exchange)
        return request

    def failure_of(error: Exception, exchange: Exchange) -> Reply:
        if isinstance(error, LoginRequired):
            return login.refusal(exchange)
        return failure(error, exchange)

    table = RouteTable((*endpoints, *login.endpoints))
    return Dialect(table.match, call_of, failure_of, readers, lambda _: None, admit, login.pools)


def call(exchange: Exchange, match: Match, catalog: Catalog, body: bytes) -> PageCall:
    """Returns what handlers get from a request.

    Raises `HttpFault` for a change that no page of this server asks for.
    """
    if exchange.method not in _SAFE:
        _check_origin(exchange.headers)
    query = exchange.scope["query_string"].decode("latin-1")
    request = PageCall(catalog, match.segments, query, exchange.headers, body)
    request.path = match.endpoint.path
    request.is_head = exchange.method == "HEAD"
    request.watch_client = lambda: exchange.lost
    return request


def _check_origin(headers: Headers) -> None:
    """Refuses a form that does not come from a page of this server.

    Browsers tell it by `Sec-Fetch-Site` on HTTPS and loopback, and by `Origin` everywhere. Programs
    that send neither have the API.
    """
    site = header(headers, b"sec-fetch-site")
    origin, host = header(headers, b"origin"), header(headers, b"host")
    if site:
        is_own = site == b"same-origin"
    else:
        is_own = bool(origin) and host_of_origin(origin) == host.decode("latin-1").lower()
    if not is_own:
        raise HttpFault(403, "Only pages of this server may send its forms", "FORBIDDEN")


def failure(error: Exception, exchange: Exchange) -> Reply:
    """Returns the page for a failure. Details that clients must not see go into the log."""
    if isinstance(error, NoRoute):
        return _no_page(error, exchange)
    shown = shown_error(error, exchange)
    reply = _error_page(shown)
    headers = [*reply.headers, *failure_headers(shown, shown.status)]
    if exchange.method not in _SAFE:
        headers.append((b"hx-push-url", _page_of_form(exchange.headers)))
    return reply._replace(headers=headers)


def _page_of_form(headers: Headers) -> bytes:
    """Returns the address of the page with a form, which a browser shows with a refusal.

    Reload and Back then lead to this page again. It is `false`, no address, if htmx names none.
    """
    try:
        parts = urlsplit(header(headers, b"hx-current-url"))
    except ValueError:
        return b"false"
    if not parts.path.startswith(f"{ROOT}/".encode()):
        return b"false"
    return parts._replace(scheme=b"", netloc=b"", fragment=b"").geturl()


def _no_page(missing: NoRoute, exchange: Exchange) -> Reply:
    if not missing.allowed:
        return _error_page(HttpFault(404, "The server has no such page"))
    refused = _error_page(HttpFault(405, f"This page does not take {exchange.method}"))
    allow = (b"allow", ", ".join(missing.allowed).encode())
    return refused._replace(headers=[*refused.headers, allow])


def _error_page(error: NessieError) -> Reply:
    status = HTTPStatus(error.status) if error.status in set(HTTPStatus) else HTTPStatus.BAD_REQUEST
    values: dict[str, Any] = {
        "title": status.phrase,
        "message": error.message,
        "hint": error.hint,
        "at": None,
        "ref": "",
        "revision": "",
        "default_branch": "",
        "caller": None,
        "login": None,
        "query": {},
        "fixed_url": "",
    }
    return html_reply("error.html", values, error.status)
