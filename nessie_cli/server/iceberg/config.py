"""The configuration that clients load first: path prefix and capabilities of the server."""

from __future__ import annotations

from nessie_cli.iceberg.warehouses.warehouse import REMOTE_SIGNING
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.iceberg import idempotency
from nessie_cli.server.iceberg.answers import answer
from nessie_cli.server.iceberg.endpoints import endpoints
from nessie_cli.server.iceberg.prefix import announced
from nessie_cli.server.iceberg.session import Session


def configuration(session: Session) -> Reply:
    """`GET /v1/config`. On a tag or a commit only endpoints that read are announced."""
    warehouse = session.warehouse
    reference = session.state().reference
    named = warehouse.name if session.names_warehouse else None
    return answer(
        {
            "defaults": {
                **warehouse.client_config,
                "prefix": announced(session.reference_text, named),
            },
            "overrides": {},
            "endpoints": endpoints(
                writable=session.may_write_to(reference),
                signing=REMOTE_SIGNING in warehouse.delegation,
            ),
            "idempotency-key-lifetime": idempotency.LIFETIME_TEXT,
        }
    )
