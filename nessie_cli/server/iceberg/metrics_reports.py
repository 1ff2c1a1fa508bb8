"""Reports of engines about scans and commits: counted in `/q/metrics`, not stored."""

from __future__ import annotations

from nessie_cli.iceberg.builder import values
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.iceberg.answers import NO_CONTENT
from nessie_cli.server.iceberg.names import need_table
from nessie_cli.server.iceberg.session import Session
from nessie_cli.server.iceberg.tables import key_in_path

_REQUEST = "ReportMetricsRequest"


def report_metrics(session: Session) -> Reply:
    """`POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics`."""
    values.text(session.body(_REQUEST), "report-type", _REQUEST)
    need_table(session.state(), key_in_path(session))
    return NO_CONTENT
