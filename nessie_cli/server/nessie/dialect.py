"""The dialect of Nessie's REST API, and of the pages of the server."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from msgspec import json

from nessie_cli.server.auth.gate import Catalog
from nessie_cli.server.http.failures import HttpFault, error_body
from nessie_cli.server.http.messages import JSON, Headers, Reply, header, takes_gzip
from nessie_cli.server.pipeline.call import Call
from nessie_cli.server.pipeline.exchange import Exchange
from nessie_cli.server.pipeline.failures import failure_headers, shown_error
from nessie_cli.server.pipeline.pipeline import Dialect
from nessie_cli.server.pipeline.table import Endpoint, Match, NoRoute, RouteTable
from nessie_cli.server.runtime.thread_pool import ThreadPool
from nessie_cli.wire.extensions import HEADER

READERS = 2
"""The number of reading threads. The second one runs while the store reads its file."""
_OURS = HEADER.lower().encode()
_encode = json.Encoder().encode


def nessie_dialect(endpoints: Iterable[Endpoint], most_waiting: int) -> Dialect:
    """Returns the dialect with these endpoints. At most `most_waiting` reads wait."""
    table = RouteTable(endpoints)
    return Dialect(
        table.match, call, failure, ThreadPool(READERS, most_waiting=most_waiting), variant
    )


def call(exchange: Exchange, match: Match, catalog: Catalog, body: bytes) -> Call:
    """Returns what handlers get from a request."""
    query = exchange.scope["query_string"].decode("latin-1")
    request = Call(catalog, match.segments, query, exchange.headers, body)
    request.most_values = match.endpoint.most_values
    request.watch_client = lambda: exchange.lost
    return request


def variant(headers: Headers) -> Hashable:
    """Returns everything in the headers on which the answer to a read depends."""
    return takes_gzip(headers), _OURS in dict(headers)


def failure(error: Exception, exchange: Exchange) -> Reply:
    """Returns the answer for a failure. Details that clients must not see go into the log."""
    if isinstance(error, NoRoute):
        return _no_route(error, exchange)
    shown = shown_error(error, exchange)
    client_spec = header(exchange.headers, b"nessie-client-spec").decode("latin-1")
    headers = [(b"content-type", JSON), *failure_headers(shown, shown.status)]
    return Reply(shown.status, headers, _encode(error_body(shown, client_spec)))


def _no_route(missing: NoRoute, exchange: Exchange) -> Reply:
    """Returns the answer for an unknown path, or for a method that the path does not have."""
    if not missing.allowed:
        return failure(HttpFault(404, "The API has no such path"), exchange)
    taken = sorted({*missing.allowed, "OPTIONS", *(["HEAD"] if "GET" in missing.allowed else [])})
    allow = (b"allow", ", ".join(taken).encode())
    if exchange.method == "OPTIONS":
        return Reply(200, [allow])
    refused = failure(
        HttpFault(405, f"This path takes {', '.join(missing.allowed)}, not {exchange.method}"),
        exchange,
    )
    return Reply(refused.status, [*refused.headers, allow], refused.body)
