"""Answers that load a table or view, and the metadata that its content refers to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.metadata import NO_SNAPSHOT, in_state
from nessie_cli.iceberg.warehouses.metadata_files import Head, head_of
from nessie_cli.model import ContentKey, IcebergTable, IcebergView
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.iceberg.answers import answer_with, encoded
from nessie_cli.server.iceberg.delegation import FileAccess
from nessie_cli.server.iceberg.etag import digest_of, etag
from nessie_cli.server.iceberg.session import Session
from nessie_cli.wire.large_json import encode

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
        text = session.text(content.metadata_location)
        head = head_of(text, content.metadata_location)
        metadata = _table_text(session, text, head, content, snapshots)
        body = _loaded(metadata, content, for_client(session, FileAccess()))
        bodies.keep(cache_key, body)
    return answer_with(body, (b"etag", etag(digest, None)))


def _with_access(
    session: Session, key: ContentKey, content: IcebergTable, snapshots: str, digest: str
) -> Reply:
    """Returns the answer that loads a table, with access to its files."""
    text = session.text(content.metadata_location)
    head = head_of(text, content.metadata_location)
    access = session.access_to(key, content, _location_in(head))
    metadata = _table_text(session, text, head, content, snapshots)
    body = _loaded(metadata, content, for_client(session, access))
    return answer_with(body, (b"etag", etag(digest, access.expires)))


def _table_text(
    session: Session, text: bytes, head: Head, content: IcebergTable, snapshots: str
) -> bytes:
    """Returns the text of the metadata of a table in the state that its content names.

    It is that of the file if the file has this state, which is not parsed then.
    """
    if snapshots == ALL and _is_in_state(head, content):
        return text
    document = dict(in_state(session.parsed(text, content.metadata_location), content))
    return encode(_with_refs_only(document) if snapshots == REFS else document)


def _loaded(metadata: bytes, content: IcebergTable | IcebergView, more: Mapping[str, Any]) -> bytes:
    rest = encoded({"metadata-location": content.metadata_location, **more})
    return b'{"metadata":%b,%b' % (metadata, rest[1:])


def _is_in_state(head: Head, content: IcebergTable) -> bool:
    """Returns whether `in_state` would certainly change nothing."""
    snapshot_id = NO_SNAPSHOT if head.current_snapshot_id is None else head.current_snapshot_id
    ids = head.current_schema_id, head.default_spec_id, head.default_sort_order_id, snapshot_id
    return head.table_uuid is not None and ids == (
        content.schema_id,
        content.spec_id,
        content.sort_order_id,
        content.snapshot_id,
    )


def table_location(session: Session, content: IcebergTable) -> str:
    """Returns the location of a table. Raises `InvalidInput` if its metadata has none."""
    return _location_in(session.head(content.metadata_location))


def _location_in(head: Head) -> str:
    if not head.location:
        raise InvalidInput("location must be a non-empty string")
    return head.location


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
    text = session.text(content.metadata_location)
    if head_of(text, content.metadata_location).current_version_id != content.version_id:
        text = encode(read_view(session, content))
    return answer_with(_loaded(text, content, {"config": {}}))


def read_view(session: Session, content: IcebergView) -> Document:
    """Returns the metadata of a view in the version that its content names."""
    document = session.read(content.metadata_location)
    versions = document.get("versions") or ()
    if document.get("current-version-id") != content.version_id and any(
        one.get("version-id") == content.version_id for one in versions
    ):
        return {**document, "current-version-id": content.version_id}
    return document
