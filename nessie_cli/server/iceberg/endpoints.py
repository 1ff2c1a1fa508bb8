"""The table of endpoints that the configuration announces."""

from __future__ import annotations

from nessie_cli.server.iceberg import (
    metrics_reports,
    namespaces,
    signatures,
    table_commits,
    tables,
    transactions,
    views,
)
from nessie_cli.server.iceberg.prefix import BELOW
from nessie_cli.server.pipeline.table import READS, WRITES_FILES, Doc, Endpoint, Param

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
        table_commits.create_table,
        WRITES_FILES,
        body="CreateTableRequest",
    ),
    Endpoint(
        "POST",
        f"{_NAMESPACE}/register",
        table_commits.register_table,
        WRITES_FILES,
        body="RegisterTableRequest",
    ),
    Endpoint(
        "GET", _TABLE, tables.load_table, cacheable=True, doc=Doc(query=(Param("snapshots"),))
    ),
    Endpoint("HEAD", _TABLE, tables.table_exists, cacheable=True),
    Endpoint("POST", _TABLE, table_commits.commit_table, WRITES_FILES, body="CommitTableRequest"),
    Endpoint("DELETE", _TABLE, tables.drop_table, WRITES_FILES),
    Endpoint("GET", f"{_TABLE}/credentials", tables.load_credentials),
    Endpoint(
        "POST", f"{_TABLE}/metrics", metrics_reports.report_metrics, body="ReportMetricsRequest"
    ),
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
        transactions.commit,
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
    working = [one for one in ENDPOINTS if writable or one.effect is READS]
    announced = [*working, *([SIGN] if signing else [])]
    return [f"{one.method} {one.path.removeprefix(BELOW)}" for one in announced]
