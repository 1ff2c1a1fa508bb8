"""Tables: list, load, exists, drop, rename, credentials."""

from __future__ import annotations

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.warehouses.warehouse import VENDED_CREDENTIALS
from nessie_cli.model import ContentKey, IcebergTable
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.iceberg.answers import NO_CONTENT, answer
from nessie_cli.server.iceberg.drop_rename import drop, rename
from nessie_cli.server.iceberg.etag import known_to
from nessie_cli.server.iceberg.listing import identifiers
from nessie_cli.server.iceberg.loading import (
    ALL,
    REFS,
    digest_for,
    table_answer,
    table_location,
)
from nessie_cli.server.iceberg.names import (
    child,
    namespace_in,
    need_table,
)
from nessie_cli.server.iceberg.session import Session


def key_in_path(session: Session) -> ContentKey:
    """Returns the key of the table that the path names."""
    segments = session.call.segments
    return child(namespace_in(segments["namespace"]), segments["table"])


def list_tables(session: Session) -> Reply:
    """`GET /v1/{prefix}/namespaces/{namespace}/tables`."""
    return identifiers(session, IcebergTable.type)


def load_table(session: Session) -> Reply:
    """`GET /v1/{prefix}/namespaces/{namespace}/tables/{table}`."""
    key = key_in_path(session)
    snapshots = session.call.text("snapshots") or ALL
    if snapshots not in (ALL, REFS):
        raise InvalidInput(f"snapshots: must be {ALL} or {REFS}, not {snapshots!r}")
    content = need_table(session.state(), key)
    asked = session.header(b"if-none-match")
    if asked:
        digest, delegated = digest_for(session, content, snapshots), bool(session.delegation_mode)
        if known := known_to(asked, digest, delegated=delegated):
            return Reply(304, [(b"etag", known)])
    return table_answer(session, key, content, snapshots)


def table_exists(session: Session) -> Reply:
    """`HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}`."""
    need_table(session.state(), key_in_path(session))
    return NO_CONTENT


def load_credentials(session: Session) -> Reply:
    """`GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials`."""
    key = key_in_path(session)
    content = need_table(session.state(), key)
    mode = session.services.delegation.mode(VENDED_CREDENTIALS, session.warehouse)
    access = session.access_to(key, content, table_location(session, content), mode)
    return answer({"storage-credentials": access.credentials})


def drop_table(session: Session) -> Reply:
    """`DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}`.

    No file is deleted, even if the client asks for it: other branches, tags and older commits may
    need them. Garbage collection deletes those that nothing needs.
    """
    return drop(session, key_in_path(session), need_table, "table")


def rename_table(session: Session) -> Reply:
    """`POST /v1/{prefix}/tables/rename`. The table keeps its content id."""
    return rename(session, need_table, "table")
