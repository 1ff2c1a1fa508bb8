"""Answers that load a table or view, and the metadata that its content refers to."""

from __future__ import annotations

from typing import Any

from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.metadata import in_state
from nessie_cli.model import ContentKey, IcebergTable, IcebergView
from nessie_cli.server.http import Reply
from nessie_cli.server.iceberg_rest.answers import answer, answer_with, encoded
from nessie_cli.server.iceberg_rest.delegation import FileAccess
from nessie_cli.server.iceberg_rest.etag import digest_of, etag
from nessie_cli.server.iceberg_rest.session import Session

ALL, REFS = "all", "refs"


def read_table(session: Session, content: IcebergTable) -> Document:
    """Returns the metadata of a table in the state that its content names."""
    return dict(in_state(session.read(content.metadata_location), content))


def table_answer(
    session: Session, key: ContentKey, content: IcebergTable, snapshots: str = ALL
) -> Reply:
    """Returns the answer that loads a table."""
    digest = digest_for(session, content, snapshots)
    if session.delegation_mode:
        return _with_access(session, key, content, snapshots, digest)
    bodies = session.services.bodies
    cache_key = digest, session.identity_of(content.metadata_location)
    body = bodies.find(cache_key)
    if body is None:
        body = encoded(_loaded(session, content, snapshots, FileAccess()))
        bodies.keep(cache_key, body)
    return answer_with(body, (b"etag", etag(digest, None)))


def _with_access(
    session: Session, key: ContentKey, content: IcebergTable, snapshots: str, digest: str
) -> Reply:
    """Returns the answer that loads a table, with access to its files."""
    access = session.access_to(key, content, read_table(session, content))
    body = _loaded(session, content, snapshots, access)
    return answer(body, (b"etag", etag(digest, access.expires)))


def _loaded(
    session: Session, content: IcebergTable, snapshots: str, access: FileAccess
) -> dict[str, Any]:
    document = read_table(session, content)
    return {
        "metadata-location": content.metadata_location,
        "metadata": _with_refs_only(document) if snapshots == REFS else document,
        **for_client(session, access),
    }


def digest_for(session: Session, content: IcebergTable, snapshots: str) -> str:
    """Returns the digest of the answer that loads a table; reads no file."""
    config = session.warehouse.client_config
    return digest_of(content, snapshots, config, session.delegation_mode)


def for_client(session: Session, access: FileAccess) -> dict[str, Any]:
    """Returns the members of an answer that give a client access to the files of a table."""
    config = {**session.warehouse.client_config, **access.config}
    if not access.credentials:
        return {"config": config}
    return {"config": config, "storage-credentials": access.credentials}


def _with_refs_only(document: Document) -> Document:
    """Returns metadata with the snapshots that a branch or tag of the table refers to."""
    referenced = {one["snapshot-id"] for one in (document.get("refs") or {}).values()}
    referenced.add(document.get("current-snapshot-id"))
    kept = [one for one in document.get("snapshots") or () if one["snapshot-id"] in referenced]
    return {**document, "snapshots": kept} if "snapshots" in document else document


def view_answer(session: Session, content: IcebergView) -> Reply:
    """Returns the answer that loads a view."""
    return answer(
        {
            "metadata-location": content.metadata_location,
            "metadata": read_view(session, content),
            "config": {},
        }
    )


def read_view(session: Session, content: IcebergView) -> Document:
    """Returns the metadata of a view in the version that its content names."""
    document = session.read(content.metadata_location)
    versions = document.get("versions") or ()
    if document.get("current-version-id") != content.version_id and any(
        one.get("version-id") == content.version_id for one in versions
    ):
        return {**document, "current-version-id": content.version_id}
    return document
