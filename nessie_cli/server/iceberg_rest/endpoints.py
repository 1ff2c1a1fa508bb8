"""The table of endpoints that the configuration announces."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nessie_cli.server.http import Reply
from nessie_cli.server.iceberg_rest import (
    metrics_reports,
    namespaces,
    signatures,
    table_commits,
    tables,
    transactions,
    views,
)
from nessie_cli.server.iceberg_rest.session import Session

_NAMESPACES = "/v1/{prefix}/namespaces"
_NAMESPACE = f"{_NAMESPACES}/{{namespace}}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"
_VIEW = f"{_NAMESPACE}/views/{{view}}"


class Endpoint(NamedTuple):
    """One line of the table, with the path of the specification.

    `writes`: it changes the branch, so it is not available on a tag or a commit.
    `lasts`: the answer depends on the request and the store alone, not on the time of day. The
    endpoint for tokens has no handler, because its callers have no session yet.
    """

    method: str
    path: str
    handler: Callable[[Session], Reply] | None
    writes: bool = False
    lasts: bool = False

    @property
    def has_body(self) -> bool:
        """Whether its requests have a body."""
        return self.method == "POST"


ENDPOINTS = (
    Endpoint("GET", _NAMESPACES, namespaces.list_namespaces, lasts=True),
    Endpoint("POST", _NAMESPACES, namespaces.create_namespace, writes=True),
    Endpoint("GET", _NAMESPACE, namespaces.load_namespace, lasts=True),
    Endpoint("HEAD", _NAMESPACE, namespaces.namespace_exists, lasts=True),
    Endpoint("DELETE", _NAMESPACE, namespaces.drop_namespace, writes=True),
    Endpoint("POST", f"{_NAMESPACE}/properties", namespaces.update_properties, writes=True),
    Endpoint("GET", f"{_NAMESPACE}/tables", tables.list_tables, lasts=True),
    Endpoint("POST", f"{_NAMESPACE}/tables", table_commits.create_table, writes=True),
    Endpoint("POST", f"{_NAMESPACE}/register", table_commits.register_table, writes=True),
    Endpoint("GET", _TABLE, tables.load_table, lasts=True),
    Endpoint("HEAD", _TABLE, tables.table_exists, lasts=True),
    Endpoint("POST", _TABLE, table_commits.commit_table, writes=True),
    Endpoint("DELETE", _TABLE, tables.drop_table, writes=True),
    Endpoint("GET", f"{_TABLE}/credentials", tables.load_credentials),
    Endpoint("POST", f"{_TABLE}/metrics", metrics_reports.report_metrics),
    Endpoint("POST", "/v1/{prefix}/tables/rename", tables.rename_table, writes=True),
    Endpoint("POST", "/v1/{prefix}/transactions/commit", transactions.commit, writes=True),
    Endpoint("GET", f"{_NAMESPACE}/views", views.list_views, lasts=True),
    Endpoint("POST", f"{_NAMESPACE}/views", views.create_view, writes=True),
    Endpoint("POST", f"{_NAMESPACE}/register-view", views.register_view, writes=True),
    Endpoint("GET", _VIEW, views.load_view),
    Endpoint("HEAD", _VIEW, views.view_exists, lasts=True),
    Endpoint("POST", _VIEW, views.replace_view, writes=True),
    Endpoint("DELETE", _VIEW, views.drop_view, writes=True),
    Endpoint("POST", "/v1/{prefix}/views/rename", views.rename_view, writes=True),
)
"""The endpoints that the configuration announces."""


SIGN = Endpoint("POST", f"{_TABLE}/sign", signatures.sign_request)
"""Announced for warehouses that offer remote signing."""


def endpoints(*, writable: bool, signing: bool) -> list[str]:
    """Returns the endpoints that work on a branch, or on a tag or commit."""
    working = [one for one in ENDPOINTS if writable or not one.writes]
    return [f"{one.method} {one.path}" for one in [*working, *([SIGN] if signing else [])]]
