"""Views: list, create, register, load, exists, replace, drop, rename."""

from __future__ import annotations

import uuid

from nessie_cli.iceberg.builder import values
from nessie_cli.iceberg.builder.document import check_requirements
from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.builder.view import new_view, updated
from nessie_cli.iceberg.metadata import content_of
from nessie_cli.iceberg.state import State
from nessie_cli.iceberg.validity.metadata import check_additions, placed_faults
from nessie_cli.iceberg.warehouses.metadata_files import head_of, next_metadata_file
from nessie_cli.iceberg.warehouses.warehouse import LOCATION, new_location
from nessie_cli.model import CommitResult, ContentKey, IcebergView, Put
from nessie_cli.server.http.messages import Reply, json_reply
from nessie_cli.server.iceberg.call import IcebergCall
from nessie_cli.server.iceberg.contents import drop, identifiers, rename
from nessie_cli.server.iceberg.errors import illegal_arguments
from nessie_cli.server.iceberg.names import (
    VIEW,
    child,
    namespace_in,
    need_free,
    need_view,
)
from nessie_cli.server.iceberg.new_tables import registered
from nessie_cli.server.iceberg.tables import (
    changed_file,
    changes_of,
    check_locations,
    loaded,
    now,
)
from nessie_cli.server.pipeline.call import NO_CONTENT, Answer, Proposal
from nessie_cli.wire.large_json import encode

_CREATE, _REGISTER = "CreateViewRequest", "RegisterViewRequest"
_COMMIT = "CommitViewRequest"


def _key_in_path(call: IcebergCall) -> ContentKey:
    segments = call.segments
    return child(namespace_in(segments["namespace"]), segments["view"])


def list_views(call: IcebergCall) -> Answer | Reply:
    """`GET /v1/{prefix}/namespaces/{namespace}/views`."""
    return identifiers(call, IcebergView.type)


def create_view(call: IcebergCall) -> Answer | Reply:
    """`POST /v1/{prefix}/namespaces/{namespace}/views`."""
    body = call.json_object(_CREATE)
    key = child(namespace_in(call.segments["namespace"]), values.text(body, "name", _CREATE))
    schema = values.object_(body, "schema", _CREATE)
    version = values.object_(body, "view-version", _CREATE)
    properties = values.text_map(body, "properties", _CREATE) if body.get("properties") else {}
    view_uuid = str(uuid.uuid4())

    def make(state: State) -> Proposal[CommitResult] | None:
        namespace = need_free(state, key, VIEW)
        issued = new_location(call.warehouse, namespace, key, view_uuid)
        location = (
            values.text(body, LOCATION, _CREATE).rstrip("/") if body.get(LOCATION) else issued
        )
        with illegal_arguments():
            made = new_view(schema, version, location, properties, now())
            check_additions(made)
        document = {**made, "view-uuid": view_uuid}
        check_locations(call, key, IcebergView.type, document, issued)
        file = next_metadata_file(location, properties, None)
        put = Put(key, content_of(document, file))
        files = [(file, encode(document))]
        return call.proposal(state, f"create view {key}", [put], files, {key: view_uuid})

    return _view_answer(call, need_view(call.change(make).after, key))


def register_view(call: IcebergCall) -> Answer | Reply:
    """`POST /v1/{prefix}/namespaces/{namespace}/register-view`."""
    body = call.json_object(_REGISTER)
    key = child(namespace_in(call.segments["namespace"]), values.text(body, "name", _REGISTER))
    location = values.text(body, "metadata-location", _REGISTER)

    def make(state: State) -> Proposal[CommitResult] | None:
        need_free(state, key, VIEW)
        view = IcebergView(metadata_location=location, version_id=1, schema_id=0)
        call.check_may_put(state, key, view, exists=False)
        content, _ = registered(call, key, location, IcebergView)
        return call.proposal(state, f"register view {key}", [Put(key, content)])

    return _view_answer(call, need_view(call.change(make).after, key))


def load_view(call: IcebergCall) -> Answer | Reply:
    """`GET /v1/{prefix}/namespaces/{namespace}/views/{view}`."""
    return _view_answer(call, need_view(call.state(), _key_in_path(call)))


def view_exists(call: IcebergCall) -> Answer | Reply:
    """`HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}`."""
    need_view(call.state(), _key_in_path(call))
    return NO_CONTENT


def replace_view(call: IcebergCall) -> Answer | Reply:
    """`POST /v1/{prefix}/namespaces/{namespace}/views/{view}`."""
    key, changes = _key_in_path(call), changes_of(call.json_object(_COMMIT), _COMMIT)

    def make(state: State) -> Proposal[CommitResult] | None:
        there = need_view(state, key)
        base = _read_view(call, there)
        with placed_faults(base, there.metadata_location):
            check_requirements(changes.requirements, base, of_view=True)
            with illegal_arguments():
                document = updated(base, changes.updates, now())
                check_additions(document, base)
            if document is base:
                return None
            file = changed_file(call, key, there, base, document)
        put = Put(key, content_of(document, file).with_id(there.id), there)
        return call.proposal(state, f"replace view {key}", [put], [(file, encode(document))])

    return _view_answer(call, need_view(call.change(make).after, key))


def drop_view(call: IcebergCall) -> Answer | Reply:
    """`DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}`."""
    return drop(call, _key_in_path(call), need_view, "view")


def rename_view(call: IcebergCall) -> Answer | Reply:
    """`POST /v1/{prefix}/views/rename`. The view keeps its content id."""
    return rename(call, need_view, "view")


def _view_answer(call: IcebergCall, content: IcebergView) -> Reply:
    """Returns the answer that loads a view."""
    text = call.file_text(content.metadata_location)
    if head_of(text, content.metadata_location).current_version_id != content.version_id:
        text = encode(_read_view(call, content))
    return json_reply(loaded(text, content, {"config": {}}))


def _read_view(call: IcebergCall, content: IcebergView) -> Document:
    """Returns the metadata of a view in the version that its content names."""
    document = call.read(content.metadata_location)
    with placed_faults(document, content.metadata_location):
        versions = document.get("versions") or ()
        if document.get("current-version-id") != content.version_id and any(
            version.get("version-id") == content.version_id for version in versions
        ):
            return {**document, "current-version-id": content.version_id}
    return document
