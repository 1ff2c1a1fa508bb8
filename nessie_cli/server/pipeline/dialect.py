"""A dialect: the endpoints of an API, the form of its errors, and its reading threads.

The pipeline answers every request in the same way, whatever its dialect is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from nessie_cli.server.auth.access import Catalog
from nessie_cli.server.http.messages import Headers, Reply
from nessie_cli.server.pipeline.call import Call
from nessie_cli.server.pipeline.exchange import Exchange
from nessie_cli.server.pipeline.table import Match
from nessie_cli.server.runtime.thread_pool import ThreadPool


class Dialect(NamedTuple):
    """An API of the server.

    `match` returns the endpoint of a method and raw path, and raises `NoRoute`. `call` makes what
    handlers get from a request, the catalog for its caller, and its body. `failure` makes the
    answer for an error. `readers` run the handlers that read. `variant` returns everything in the
    headers on which a cacheable answer depends, or None if it must not be cached.
    """

    match: Callable[[str, str], Match]
    call: Callable[[Exchange, Match, Catalog, bytes], Call]
    failure: Callable[[Exception, Exchange], Reply]
    readers: ThreadPool
    variant: Callable[[Headers], Hashable]
