"""Tables that do not exist: create, staged create, register."""

from __future__ import annotations

import uuid
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg import messages
from nessie_cli.iceberg.builder import values
from nessie_cli.iceberg.builder.document import GC_ENABLED
from nessie_cli.iceberg.builder.table import new_table
from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.locations import LocationRefused
from nessie_cli.iceberg.metadata import content_of
from nessie_cli.iceberg.state import State
from nessie_cli.iceberg.validity.metadata import check_additions, check_metadata
from nessie_cli.iceberg.warehouses.metadata_files import next_metadata_file
from nessie_cli.iceberg.warehouses.warehouse import LOCATION, check_table_locations, new_location
from nessie_cli.model import (
    CommitResult,
    ContentKey,
    Delete,
    IcebergTable,
    Operation,
    Put,
)
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.iceberg.call import IcebergCall
from nessie_cli.server.iceberg.errors import NoSuchFile
from nessie_cli.server.iceberg.names import (
    TABLE,
    child,
    namespace_in,
    need_free,
    need_table,
)
from nessie_cli.server.iceberg.obeyed_properties import check_properties
from nessie_cli.server.iceberg.tables import (
    check_locations,
    for_client,
    now,
    table_answer,
)
from nessie_cli.server.pipeline.call import Answer, Proposal
from nessie_cli.wire.large_json import encode

_CREATE, _REGISTER = "CreateTableRequest", "RegisterTableRequest"


# -- create ----------------------------------------------------------------------------------------


def create_table(call: IcebergCall) -> Answer | Reply:
    """`POST /v1/{prefix}/namespaces/{namespace}/tables`."""
    body = call.json_object(_CREATE)
    key = child(namespace_in(call.segments["namespace"]), values.text(body, "name", _CREATE))
    if body.get("stage-create") is True:
        return _staged(call, key, body)
    table_uuid = str(uuid.uuid4())

    def make(state: State) -> Proposal[CommitResult]:
        document = _new_document(call, state, key, body, table_uuid)
        file = next_metadata_file(document["location"], document["properties"], None)
        content = content_of(document, file)
        files = [(file, encode(document))]
        created = messages.created(key)
        return call.proposal(state, created, [Put(key, content)], files, {key: table_uuid})

    after = call.change(make).after
    return table_answer(call, key, need_table(after, key))


def _staged(call: IcebergCall, key: ContentKey, body: Document) -> Answer | Reply:
    """Returns the metadata of a table that a later commit will create. Commits nothing.

    Creates the table's folders on a local disk, because DuckDB does not.
    """
    state = call.state()
    call.check_may_put(state, key, IcebergTable(metadata_location="staged"), exists=False)
    table_uuid = call.staged_uuid(state, key)
    document = _new_document(call, state, key, body, table_uuid)
    call.files.make_folders(document[LOCATION])
    access = call.access_to_staged(key, table_uuid, document[LOCATION])
    return Answer({"metadata": document, **for_client(call, access)})


def _new_document(
    call: IcebergCall, state: State, key: ContentKey, body: Document, table_uuid: str
) -> Document:
    namespace = need_free(state, key, TABLE)
    issued = new_location(call.warehouse, namespace, key, table_uuid)
    location = values.text(body, LOCATION, _CREATE).rstrip("/") if body.get(LOCATION) else issued
    properties = values.text_map(body, "properties", _CREATE) if body.get("properties") else {}
    request = {**body, "properties": {GC_ENABLED: "false", **properties}}
    document = {**new_table(request, location, now()), "table-uuid": table_uuid}
    check_additions(document)
    check_properties(document)
    check_locations(call, key, IcebergTable.type, document, issued)
    return document


# -- register --------------------------------------------------------------------------------------


def register_table(call: IcebergCall) -> Answer | Reply:
    """`POST /v1/{prefix}/namespaces/{namespace}/register`.

    With `overwrite`, the same table keeps its content id; another table gets a new one.
    """
    body = call.json_object(_REGISTER)
    key = child(namespace_in(call.segments["namespace"]), values.text(body, "name", _REGISTER))
    location = values.text(body, "metadata-location", _REGISTER)
    overwrite = body.get("overwrite") is True

    def make(state: State) -> Proposal[CommitResult]:
        there = state.content(key)
        if not (overwrite and isinstance(there, IcebergTable)):
            need_free(state, key, TABLE)
        # Only the file, which is read then, says whether an existing table is updated or replaced.
        exists = None if isinstance(there, IcebergTable) else False
        call.check_may_put(state, key, IcebergTable(metadata_location=location), exists=exists)
        content, document = registered(call, key, location, IcebergTable)
        if not isinstance(there, IcebergTable):
            return call.proposal(state, f"register table {key}", [Put(key, content)])
        same = _uuid_of(call, there) == document.get("table-uuid")
        operations: list[Operation] = (
            [Put(key, content.with_id(there.id), there)]
            if same
            else [Delete(key), Put(key, content)]
        )
        return call.proposal(state, f"register table {key} again", operations)

    after = call.change(make).after
    return table_answer(call, key, need_table(after, key))


def registered(
    call: IcebergCall, key: ContentKey, location: str, type_: type[Any]
) -> tuple[Any, Document]:
    """Returns the content and the metadata of a file that is registered.

    Raises `InvalidInput` if it holds metadata of another type, or metadata that Iceberg's own
    parser refuses, `NotAllowed` if the caller may not choose its location.
    """
    if not call.may_choose_location(key, type_.type):
        # The file is not read: the answer would reveal its existence, and quote it.
        raise LocationRefused(
            (
                f"metadata file {location}: the caller may not choose locations, so it cannot"
                " register tables or views"
            ),
            hint="create the table without a location",
        )
    document = call.read(location, committed=False)
    try:
        content = content_of(document, location)
        check_table_locations(call.files.allowed, document, None, may_choose=True)
        check_metadata(document)
        check_properties(document)
    except InvalidInput as error:
        raise InvalidInput(f"{location}: {error.message}") from None
    if not isinstance(content, type_):
        kind = "table" if isinstance(content, IcebergTable) else "view"
        raise InvalidInput(f"{location}: is the metadata of a {kind}")
    return content, document


def _uuid_of(call: IcebergCall, content: IcebergTable) -> object:
    """Returns the UUID of a table. Without one, the result never equals another UUID."""
    try:
        return call.head(content.metadata_location).table_uuid or object()
    except (InvalidInput, NoSuchFile):
        return object()
