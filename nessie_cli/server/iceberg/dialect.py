"""The dialect of the Iceberg REST catalog."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.locations import scheme_of
from nessie_cli.iceberg.warehouses.issuing import UuidIssuer
from nessie_cli.iceberg.warehouses.metadata_files import MetadataFiles, byte_cache
from nessie_cli.iceberg.warehouses.warehouse import REMOTE_SIGNING, Warehouses
from nessie_cli.server.auth.gate import Gate
from nessie_cli.server.http.messages import Headers, takes_gzip
from nessie_cli.server.iceberg import (
    errors,
    idempotency,
    namespaces,
    new_tables,
    oauth,
    signatures,
    tables,
    views,
)
from nessie_cli.server.iceberg.call import DELEGATION, IcebergCall, Services
from nessie_cli.server.iceberg.delegation import Delegation
from nessie_cli.server.iceberg.idempotency import Idempotency
from nessie_cli.server.iceberg.names import BELOW, announced
from nessie_cli.server.pipeline.call import Answer
from nessie_cli.server.pipeline.pipeline import Dialect
from nessie_cli.server.pipeline.table import (
    FORM,
    READS,
    WRITES_FILES,
    Doc,
    Endpoint,
    Param,
    RouteTable,
    decode_segment,
)
from nessie_cli.server.runtime.thread_pool import ThreadPool
from nessie_cli.server.runtime.threads import Threads
from nessie_cli.wire.rest import REPOSITORY_CREATED
from nessie_cli.wire.scalars import instant

_MOST_SEGMENTS = 40
"""The most segments of a path: the number of its readings grows with their square."""
_LONGEST_CONDITION = 500
"""The longest `If-None-Match` of a cached answer. An entity tag has less than 100 bytes."""
LOCAL_READERS, REMOTE_READERS = 2, 16
"""Reading threads if all warehouses are local, and if threads wait for object stores.

Python runs one thread at a time. More of them only hinder each other unless they wait.
"""


def iceberg_dialect(
    warehouses: Warehouses, gate: Gate | None, threads: Threads, most_waiting: int
) -> Dialect:
    """Returns the dialect over these warehouses. At most `most_waiting` reads wait."""
    new_call = partial(IcebergCall, services=_services(warehouses, gate, threads))
    is_local = all(scheme_of(warehouse.location) == "file" for warehouse in warehouses.all)
    readers = ThreadPool(
        LOCAL_READERS if is_local else REMOTE_READERS,
        name="iceberg-reader",
        most_waiting=most_waiting,
    )
    return Dialect(ROUTES.match, new_call, errors.failure, readers, variant)


def variant(headers: Headers) -> Hashable:
    """Returns everything in the headers on which the answer to a read depends.

    None if the answer grants access to files, which expires, and for long conditions: only the path
    and the query count for the size of a cached answer.
    """
    conditions = []
    for name, value in headers:
        if name == DELEGATION:
            return None
        if name == b"if-none-match":
            conditions.append(value)
    if sum(map(len, conditions)) > _LONGEST_CONDITION:
        return None
    return takes_gzip(headers), tuple(conditions)


def _services(warehouses: Warehouses, gate: Gate | None, threads: Threads) -> Services:
    return Services(
        warehouses,
        {warehouse.name: MetadataFiles(warehouse) for warehouse in warehouses.all},
        threads.bodies.files,
        UuidIssuer(warehouses.secret),
        Delegation(warehouses),
        Idempotency(),
        byte_cache(),
        gate,
    )


def configuration(call: IcebergCall) -> Answer:
    """`GET /v1/config`. On a tag or a commit only endpoints that read are announced."""
    warehouse = call.warehouse
    reference = call.state().reference
    named = warehouse.name if call.names_warehouse else None
    created = call.repository.config().created
    return Answer(
        {
            "defaults": {
                **warehouse.client_config,
                **({REPOSITORY_CREATED: instant(created)} if created else {}),
                "prefix": announced(call.reference_text, named),
            },
            "overrides": {},
            "endpoints": endpoints(
                writable=call.may_write_to(reference),
                signing=REMOTE_SIGNING in warehouse.delegation,
            ),
            "idempotency-key-lifetime": idempotency.LIFETIME_TEXT,
        }
    )


_NAMESPACES = f"{BELOW}/v1/{{prefix}}/namespaces"
_NAMESPACE = f"{_NAMESPACES}/{{namespace}}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"
_VIEW = f"{_NAMESPACE}/views/{{view}}"


_PAGE = (Param("pageToken"), Param("pageSize", "integer"))


ENDPOINTS = (
    Endpoint(
        "GET",
        _NAMESPACES,
        namespaces.list_namespaces,
        cacheable=True,
        doc=Doc(query=(Param("parent"), *_PAGE)),
    ),
    Endpoint(
        "POST",
        _NAMESPACES,
        namespaces.create_namespace,
        WRITES_FILES,
        body="CreateNamespaceRequest",
    ),
    Endpoint("GET", _NAMESPACE, namespaces.load_namespace, cacheable=True),
    Endpoint("HEAD", _NAMESPACE, namespaces.namespace_exists, cacheable=True),
    Endpoint("DELETE", _NAMESPACE, namespaces.drop_namespace, WRITES_FILES),
    Endpoint(
        "POST",
        f"{_NAMESPACE}/properties",
        namespaces.update_properties,
        WRITES_FILES,
        body="UpdateNamespacePropertiesRequest",
    ),
    Endpoint(
        "GET", f"{_NAMESPACE}/tables", tables.list_tables, cacheable=True, doc=Doc(query=_PAGE)
    ),
    Endpoint(
        "POST",
        f"{_NAMESPACE}/tables",
        new_tables.create_table,
        WRITES_FILES,
        body="CreateTableRequest",
    ),
    Endpoint(
        "POST",
        f"{_NAMESPACE}/register",
        new_tables.register_table,
        WRITES_FILES,
        body="RegisterTableRequest",
    ),
    Endpoint(
        "GET", _TABLE, tables.load_table, cacheable=True, doc=Doc(query=(Param("snapshots"),))
    ),
    Endpoint("HEAD", _TABLE, tables.table_exists, cacheable=True),
    Endpoint("POST", _TABLE, tables.commit_table, WRITES_FILES, body="CommitTableRequest"),
    Endpoint("DELETE", _TABLE, tables.drop_table, WRITES_FILES),
    Endpoint("GET", f"{_TABLE}/credentials", tables.load_credentials),
    Endpoint("POST", f"{_TABLE}/metrics", tables.report_metrics, body="ReportMetricsRequest"),
    Endpoint(
        "POST",
        f"{BELOW}/v1/{{prefix}}/tables/rename",
        tables.rename_table,
        WRITES_FILES,
        body="RenameTableRequest",
    ),
    Endpoint(
        "POST",
        f"{BELOW}/v1/{{prefix}}/transactions/commit",
        tables.commit_tables,
        WRITES_FILES,
        body="CommitTransactionRequest",
    ),
    Endpoint("GET", f"{_NAMESPACE}/views", views.list_views, cacheable=True, doc=Doc(query=_PAGE)),
    Endpoint(
        "POST", f"{_NAMESPACE}/views", views.create_view, WRITES_FILES, body="CreateViewRequest"
    ),
    Endpoint(
        "POST",
        f"{_NAMESPACE}/register-view",
        views.register_view,
        WRITES_FILES,
        body="RegisterViewRequest",
    ),
    Endpoint("GET", _VIEW, views.load_view),
    Endpoint("HEAD", _VIEW, views.view_exists, cacheable=True),
    Endpoint("POST", _VIEW, views.replace_view, WRITES_FILES, body="CommitViewRequest"),
    Endpoint("DELETE", _VIEW, views.drop_view, WRITES_FILES),
    Endpoint(
        "POST",
        f"{BELOW}/v1/{{prefix}}/views/rename",
        views.rename_view,
        WRITES_FILES,
        body="RenameTableRequest",
    ),
)
"""The endpoints that the configuration announces."""


SIGN = Endpoint(
    "POST",
    f"{_TABLE}/sign",
    signatures.sign_request,
    body="RemoteSignRequest",
    hides_query=True,
)
"""Announced for warehouses that offer remote signing. Its query contains the grant."""


def endpoints(*, writable: bool, signing: bool) -> list[str]:
    """Returns the endpoints that work on a branch, or on a tag or commit."""
    working = [endpoint for endpoint in ENDPOINTS if writable or endpoint.effect is READS]
    announced = [*working, *([SIGN] if signing else [])]
    return [f"{endpoint.method} {endpoint.path.removeprefix(BELOW)}" for endpoint in announced]


CONFIG = Endpoint(
    "GET", f"{BELOW}/v1/config", configuration, cacheable=True, doc=Doc(query=(Param("warehouse"),))
)
TOKEN = Endpoint(
    "POST", f"{BELOW}/v1/oauth/tokens", oauth.token, body=FORM, is_open=True, is_page=True
)


class IcebergRoutes(RouteTable):
    """Finds the endpoint that a path names, with the reference before `v1` as the segment `ref`.

    Each segment is decoded once, so an encoded slash stays inside a name. As Java's clients encode
    names as forms do, a `+` is a space. A reference may have slashes that its client did not
    encode, before `v1` and as the prefix.
    """

    answers_head = False
    is_final = True

    def pattern(self, endpoint: Endpoint) -> tuple[str, ...]:
        """Returns the segments of the path of an endpoint, behind the reference."""
        return ("{ref}", *endpoint.path.removeprefix(f"{BELOW}/").split("/"))

    def readings(self, raw_path: str) -> Iterator[Sequence[str]]:
        """Yields the segments of a path, an empty one for a reference that it does not name.

        The shortest reference comes first: so a branch `v1` can be named on both sides of the
        segment `v1`.
        """
        segments = raw_path.removeprefix(BELOW).strip("/").split("/", _MOST_SEGMENTS)
        if len(segments) > _MOST_SEGMENTS:
            return
        places = [place for place, segment in enumerate(segments) if segment == "v1"]
        readings = [["/".join(segments[:place]), *segments[place:]] for place in places]
        yield from readings
        for reference, version, *rest in readings:
            for end in range(2, len(rest)):
                yield [reference, version, "/".join(rest[:end]), *rest[end:]]

    def decoded(self, bound: Mapping[str, str]) -> Mapping[str, str]:
        """Returns the decoded segments. Raises `InvalidInput` also for an empty name."""
        segments = {
            name: decode_segment(text.replace("+", " "))
            for name, text in bound.items()
            if text or name != "ref"
        }
        for name, text in segments.items():
            if not text and name != "prefix":
                raise InvalidInput(
                    f"{name}: is empty. Tables and views at the root have no namespace; Iceberg"
                    " REST cannot address them"
                )
        return segments


ROUTES = IcebergRoutes((CONFIG, TOKEN, *ENDPOINTS, SIGN))
