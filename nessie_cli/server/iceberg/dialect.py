"""The dialect of the Iceberg REST catalog."""

from __future__ import annotations

from collections.abc import Hashable

from nessie_cli.iceberg.files import scheme_of
from nessie_cli.iceberg.warehouses.issuing import Issuer
from nessie_cli.iceberg.warehouses.metadata_files import ByteCache, MetadataFiles
from nessie_cli.iceberg.warehouses.warehouse import Warehouse, Warehouses
from nessie_cli.server.auth.access import Catalog
from nessie_cli.server.auth.gate import Gate
from nessie_cli.server.http.messages import Headers, takes_gzip
from nessie_cli.server.iceberg import errors, routes
from nessie_cli.server.iceberg.delegation import Delegation
from nessie_cli.server.iceberg.idempotency import Idempotency
from nessie_cli.server.iceberg.session import DELEGATION, IcebergCall, Services
from nessie_cli.server.pipeline.call import Call
from nessie_cli.server.pipeline.dialect import Dialect
from nessie_cli.server.pipeline.exchange import Exchange
from nessie_cli.server.pipeline.table import Match
from nessie_cli.server.runtime.thread_pool import ThreadPool
from nessie_cli.server.runtime.threads import Threads

LOCAL_READERS, REMOTE_READERS = 2, 16
"""Reading threads if all warehouses are local, and if threads wait for object stores.

Python runs one thread at a time. More of them only hinder each other unless they wait.
"""


def iceberg_dialect(
    warehouses: Warehouses, gate: Gate | None, threads: Threads, most_waiting: int
) -> Dialect:
    """Returns the dialect over these warehouses. At most `most_waiting` reads wait."""
    services = _services(warehouses, gate, threads)

    def call(exchange: Exchange, match: Match, catalog: Catalog, body: bytes) -> Call:
        return IcebergCall(exchange, match, catalog, body, services)

    is_local = all(scheme_of(warehouse.location) == "file" for warehouse in warehouses.all)
    readers = ThreadPool(
        LOCAL_READERS if is_local else REMOTE_READERS,
        name="iceberg-reader",
        most_waiting=most_waiting,
    )
    return Dialect(routes.match, call, errors.failure, readers, variant)


def variant(headers: Headers) -> Hashable:
    """Returns everything in the headers on which the answer to a read depends.

    None if the answer grants access to files, which expires.
    """
    conditions = []
    for name, value in headers:
        if name == DELEGATION:
            return None
        if name == b"if-none-match":
            conditions.append(value)
    return takes_gzip(headers), tuple(conditions)


def _services(warehouses: Warehouses, gate: Gate | None, threads: Threads) -> Services:
    files = {warehouse.name: MetadataFiles(warehouse) for warehouse in warehouses.all}

    def files_of(warehouse: Warehouse) -> MetadataFiles:
        return files[warehouse.name]

    return Services(
        warehouses,
        files_of,
        threads.writer,
        threads.bodies.files,
        Issuer(warehouses.secret),
        Delegation(warehouses),
        Idempotency(),
        ByteCache(),
        gate,
    )
