"""Views: list, create, register, load, exists, replace, drop, rename."""

from __future__ import annotations

from nessie_cli.iceberg.builder import values
from nessie_cli.iceberg.builder.document import check_requirements
from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.builder.view import new_view, updated
from nessie_cli.iceberg.metadata import content_of
from nessie_cli.iceberg.state import State
from nessie_cli.iceberg.warehouses.locations import next_metadata_file, text_of
from nessie_cli.iceberg.warehouses.tables import LOCATION, check_table_locations
from nessie_cli.model import ContentKey, IcebergView, Put
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.iceberg.answers import NO_CONTENT
from nessie_cli.server.iceberg.drop_rename import drop, rename
from nessie_cli.server.iceberg.errors import illegal_arguments
from nessie_cli.server.iceberg.listing import identifiers
from nessie_cli.server.iceberg.loading import read_view, view_answer
from nessie_cli.server.iceberg.names import (
    VIEW,
    child,
    namespace_in,
    need_free,
    need_view,
)
from nessie_cli.server.iceberg.session import Proposal, Session
from nessie_cli.server.iceberg.table_commits import (
    changes_of,
    issued_location,
    now,
    paths_of,
    registered,
)
from nessie_cli.wire.large_json import encode

_CREATE, _REGISTER = "CreateViewRequest", "RegisterViewRequest"
_COMMIT = "CommitViewRequest"


def _key_in_path(session: Session) -> ContentKey:
    segments = session.call.segments
    return child(namespace_in(segments["namespace"]), segments["view"])


def list_views(session: Session) -> Reply:
    """`GET /v1/{prefix}/namespaces/{namespace}/views`."""
    return identifiers(session, IcebergView.type)


def create_view(session: Session) -> Reply:
    """`POST /v1/{prefix}/namespaces/{namespace}/views`."""
    body = session.body(_CREATE)
    key = child(
        namespace_in(session.call.segments["namespace"]), values.text(body, "name", _CREATE)
    )
    schema = values.object_(body, "schema", _CREATE)
    version = values.object_(body, "view-version", _CREATE)
    properties = values.text_map(body, "properties", _CREATE) if body.get("properties") else {}
    view_uuid = session.new_uuid(key)

    def make(state: State) -> Proposal:
        issued = issued_location(session, key, need_free(state, key, VIEW), view_uuid)
        location = (
            values.text(body, LOCATION, _CREATE).rstrip("/") if body.get(LOCATION) else issued
        )
        with illegal_arguments():
            made = new_view(schema, version, location, properties, now())
        document = {**made, "view-uuid": view_uuid}
        _check_locations(session, key, document, issued)
        file = next_metadata_file(location, properties, None)
        put = Put(key, content_of(document, file))
        return Proposal(f"create view {key}", [put], [(file, encode(document))], {key: view_uuid})

    return view_answer(session, need_view(session.change(make).after, key))


def _check_locations(session: Session, key: ContentKey, document: Document, issued: str) -> None:
    may_choose = session.may_choose_location(key, IcebergView.type)
    check_table_locations(session.files, document, issued, may_choose=may_choose)


def register_view(session: Session) -> Reply:
    """`POST /v1/{prefix}/namespaces/{namespace}/register-view`."""
    body = session.body(_REGISTER)
    key = child(
        namespace_in(session.call.segments["namespace"]), values.text(body, "name", _REGISTER)
    )
    location = values.text(body, "metadata-location", _REGISTER)

    def make(state: State) -> Proposal:
        need_free(state, key, VIEW)
        session.check_may_put(
            state, key, IcebergView(metadata_location=location, version_id=1, schema_id=0)
        )
        content, _ = registered(session, key, location, IcebergView)
        return Proposal(f"register view {key}", [Put(key, content)])

    return view_answer(session, need_view(session.change(make).after, key))


def load_view(session: Session) -> Reply:
    """`GET /v1/{prefix}/namespaces/{namespace}/views/{view}`."""
    return view_answer(session, need_view(session.state(), _key_in_path(session)))


def view_exists(session: Session) -> Reply:
    """`HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}`."""
    need_view(session.state(), _key_in_path(session))
    return NO_CONTENT


def replace_view(session: Session) -> Reply:
    """`POST /v1/{prefix}/namespaces/{namespace}/views/{view}`."""
    key, changes = _key_in_path(session), changes_of(session.body(_COMMIT), _COMMIT)

    def make(state: State) -> Proposal:
        there = need_view(state, key)
        base = read_view(session, there)
        check_requirements(changes.requirements, base, of_view=True)
        with illegal_arguments():
            document = updated(base, changes.updates, now())
        if document is base:
            return Proposal()
        session.check_own_metadata(key, there, text_of(base, LOCATION))
        if paths_of(document) != paths_of(base):
            _check_locations(session, key, document, base[LOCATION])
        properties = document["properties"]
        file = next_metadata_file(document[LOCATION], properties, there.metadata_location)
        put = Put(key, content_of(document, file).with_id(there.id), there)
        return Proposal(f"replace view {key}", [put], [(file, encode(document))])

    return view_answer(session, need_view(session.change(make).after, key))


def drop_view(session: Session) -> Reply:
    """`DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}`."""
    return drop(session, _key_in_path(session), need_view, "view")


def rename_view(session: Session) -> Reply:
    """`POST /v1/{prefix}/views/rename`. The view keeps its content id."""
    return rename(session, need_view, "view")
