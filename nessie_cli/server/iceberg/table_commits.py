"""Tables: create, staged create, register, and commits of updates."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg import messages
from nessie_cli.iceberg.builder import values
from nessie_cli.iceberg.builder.document import RequirementFailed, check_requirements, creates_table
from nessie_cli.iceberg.builder.table import builder_for, new_table
from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.metadata import content_of
from nessie_cli.iceberg.state import State
from nessie_cli.iceberg.validity.metadata import check_metadata
from nessie_cli.iceberg.warehouses.locations import (
    PATH_PROPERTIES,
    LocationRefused,
    next_metadata_file,
    text_of,
)
from nessie_cli.iceberg.warehouses.tables import LOCATION, check_table_locations, new_location
from nessie_cli.model import ContentKey, Delete, IcebergTable, Namespace, Operation, Put
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.iceberg.answers import answer
from nessie_cli.server.iceberg.errors import CommitFailed, NoSuchFile
from nessie_cli.server.iceberg.loading import for_client, read_table, table_answer
from nessie_cli.server.iceberg.names import TABLE, child, namespace_in, need_free, need_table
from nessie_cli.server.iceberg.session import Proposal, Session
from nessie_cli.server.iceberg.tables import key_in_path
from nessie_cli.wire.large_json import encode

GC_ENABLED = "gc.enabled"
"""The property that allows engines to delete files.

It is false for new tables, because other branches, tags and older commits need their files.
"""
MOST_CHANGES = 100_000
"""The most requirements and updates of a request."""
_CREATE, _REGISTER, _COMMIT = "CreateTableRequest", "RegisterTableRequest", "CommitTableRequest"


def now() -> int:
    """Returns the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


# -- create ----------------------------------------------------------------------------------------


def create_table(session: Session) -> Reply:
    """`POST /v1/{prefix}/namespaces/{namespace}/tables`."""
    body = session.body(_CREATE)
    key = child(
        namespace_in(session.call.segments["namespace"]), values.text(body, "name", _CREATE)
    )
    table_uuid = session.new_uuid(key)
    if body.get("stage-create") is True:
        return _staged(session, key, body, table_uuid)

    def make(state: State) -> Proposal:
        document = _new_document(session, state, key, body, table_uuid)
        file = next_metadata_file(document["location"], document["properties"], None)
        content = content_of(document, file)
        files = [(file, encode(document))]
        return Proposal(messages.created(key), [Put(key, content)], files, {key: table_uuid})

    after = session.change(make).after
    return table_answer(session, key, need_table(after, key))


def _staged(session: Session, key: ContentKey, body: Document, table_uuid: str) -> Reply:
    """Returns the metadata of a table that a later commit will create. Commits nothing.

    Creates the table's folders on a local disk, because DuckDB does not.
    """
    state = session.state()
    session.check_may_put(state, key, IcebergTable(metadata_location="staged"))
    document = _new_document(session, state, key, body, table_uuid)
    session.files.make_folders(document[LOCATION])
    access = session.access_to(key, None, document[LOCATION])
    return answer({"metadata": document, **for_client(session, access)})


def _new_document(
    session: Session, state: State, key: ContentKey, body: Document, table_uuid: str
) -> Document:
    issued = issued_location(session, key, need_free(state, key, TABLE), table_uuid)
    location = values.text(body, LOCATION, _CREATE).rstrip("/") if body.get(LOCATION) else issued
    properties = values.text_map(body, "properties", _CREATE) if body.get("properties") else {}
    request = {**body, "properties": {GC_ENABLED: "false", **properties}}
    document = {**new_table(request, location, now()), "table-uuid": table_uuid}
    _check_locations(session, key, document, issued)
    return document


def issued_location(session: Session, key: ContentKey, namespace: Namespace, own_uuid: str) -> str:
    """Returns the location that the server gives to a new table or view with this UUID."""
    return new_location(session.warehouse, namespace, key, own_uuid)


# -- register --------------------------------------------------------------------------------------


def register_table(session: Session) -> Reply:
    """`POST /v1/{prefix}/namespaces/{namespace}/register`.

    With `overwrite`, the same table keeps its content id; another table gets a new one.
    """
    body = session.body(_REGISTER)
    key = child(
        namespace_in(session.call.segments["namespace"]), values.text(body, "name", _REGISTER)
    )
    location = values.text(body, "metadata-location", _REGISTER)
    overwrite = body.get("overwrite") is True

    def make(state: State) -> Proposal:
        there = state.content(key)
        if not (overwrite and isinstance(there, IcebergTable)):
            need_free(state, key, TABLE)
        session.check_may_put(state, key, IcebergTable(metadata_location=location))
        content, document = registered(session, key, location, IcebergTable)
        if not isinstance(there, IcebergTable):
            return Proposal(f"register table {key}", [Put(key, content)])
        same = _uuid_of(session, there) == document.get("table-uuid")
        operations: list[Operation] = (
            [Put(key, content.with_id(there.id), there)]
            if same
            else [Delete(key), Put(key, content)]
        )
        return Proposal(f"register table {key} again", operations)

    after = session.change(make).after
    return table_answer(session, key, need_table(after, key))


def registered(
    session: Session, key: ContentKey, location: str, type_: type[Any]
) -> tuple[Any, Document]:
    """Returns the content and the metadata of a file that is registered.

    Raises `InvalidInput` if it holds metadata of another type, or metadata that Iceberg's own
    parser refuses, `NotAllowed` if the caller may not choose its location.
    """
    if not session.may_choose_location(key, type_.type):
        # The file is not read: the answer would reveal its existence, and quote it.
        raise LocationRefused(
            (
                f"metadata file {location}: the caller may not choose locations, so it cannot"
                " register tables or views"
            ),
            hint="create the table without a location",
        )
    document = session.read(location, committed=False)
    try:
        content = content_of(document, location)
        check_table_locations(session.files, document, None, may_choose=True)
        check_metadata(document)
    except InvalidInput as error:
        raise InvalidInput(f"{location}: {error.message}") from None
    if not isinstance(content, type_):
        kind = "table" if isinstance(content, IcebergTable) else "view"
        raise InvalidInput(f"{location}: is the metadata of a {kind}")
    return content, document


def _uuid_of(session: Session, content: IcebergTable) -> object:
    """Returns the UUID of a table. Without one, the result never equals another UUID."""
    try:
        return session.head(content.metadata_location).table_uuid or object()
    except (InvalidInput, NoSuchFile):
        return object()


# -- commit ----------------------------------------------------------------------------------------


class Made(NamedTuple):
    """A change of a table: its new content, metadata file and message. None changes nothing.

    A new table has a content id that the server has chosen.
    """

    put: Put
    file: tuple[str, bytes]
    message: str
    new_id: str | None = None


class Changes(NamedTuple):
    """The requirements and updates of one table."""

    requirements: Sequence[Document]
    updates: Sequence[Document]


def changes_of(body: Document, where: str) -> Changes:
    """Returns the requirements and updates of a request. Raises `InvalidInput`."""
    changes = Changes(
        values.objects(body, "requirements", where) if body.get("requirements") else [],
        values.objects(body, "updates", where) if body.get("updates") else [],
    )
    check_number(len(changes.requirements) + len(changes.updates), where)
    return changes


def check_number(changes: int, where: str) -> None:
    """Raises `InvalidInput` if a request has too many requirements and updates."""
    if changes > MOST_CHANGES:
        raise InvalidInput(
            f"{where}: has {changes} requirements and updates, at most {MOST_CHANGES} are allowed"
        )


def commit_table(session: Session) -> Reply:
    """`POST /v1/{prefix}/namespaces/{namespace}/tables/{table}`."""
    key, changes = key_in_path(session), changes_of(session.body(_COMMIT), _COMMIT)

    def make(state: State) -> Proposal:
        made = made_by(session, state, key, [changes])
        return proposal_of([made], made.message) if made else Proposal()

    after = session.change(make).after
    return table_answer(session, key, need_table(after, key))


def made_by(
    session: Session, state: State, key: ContentKey, several: Sequence[Changes]
) -> Made | None:
    """Returns a table with changes made in order; each requirement is checked on their result.

    Returns None if they change nothing. Raises `CommitFailed`, `NoSuchTable`, `InvalidInput`.
    """
    try:
        if creates_table(several[0].requirements):
            return _created_by(session, state, key, several)
        return _updated_by(session, state, key, several)
    except RequirementFailed as error:
        changed = state.last_change(key)
        more = f". {key} was last changed by {changed}" if changed else ""
        raise CommitFailed(f"{error.message}{more}") from None


def _created_by(
    session: Session, state: State, key: ContentKey, several: Sequence[Changes]
) -> Made:
    """Returns a table that the changes create, with a UUID, a location and defaults."""
    there = state.content(key)
    if isinstance(there, IcebergTable):
        check_requirements(several[0].requirements, read_table(session, there))
    namespace = need_free(state, key, TABLE)
    asked = next(
        (one.get("uuid") for one in several[0].updates if one.get("action") == "assign-uuid"), None
    )
    own_uuid = session.new_uuid(key)
    issued = issued_location(session, key, namespace, own_uuid)
    if asked is not None and session.has_issued(str(asked), key):
        staged = issued_location(session, key, namespace, str(asked))
        # If a table was already created with the staged UUID, the new table gets another one.
        if not session.files.has_any(staged):
            own_uuid, issued = str(asked), staged
    defaults: list[Document] = [
        {"action": "assign-uuid", "uuid": own_uuid},
        {"action": "set-location", "location": issued},
        {"action": "set-properties", "updates": {GC_ENABLED: "false"}},
    ]
    updates, document = _applied(None, several, defaults)
    _check_locations(session, key, document, issued)
    return _made(key, None, document, messages.created(key, updates), own_uuid)


def _updated_by(
    session: Session, state: State, key: ContentKey, several: Sequence[Changes]
) -> Made | None:
    """Returns a table that exists with the changes, None if they change nothing."""
    there = need_table(state, key)
    base = read_table(session, there)
    updates, document = _applied(base, several, [], there.metadata_location)
    if document is base:
        return None
    session.check_own_metadata(key, there, text_of(base, LOCATION))
    if paths_of(document) != paths_of(base):
        _check_locations(session, key, document, base[LOCATION])
    return _made(key, there, document, messages.changed(key, updates))


def _made(
    key: ContentKey,
    there: IcebergTable | None,
    document: Document,
    message: str,
    new_id: str | None = None,
) -> Made:
    """Returns a change of a table, with its metadata as text, which takes the least memory."""
    current = there.metadata_location if there else None
    file = next_metadata_file(document["location"], document["properties"], current)
    content = content_of(document, file)
    put = Put(key, content.with_id(there.id if there else None), there)
    return Made(put, (file, encode(document)), message, new_id)


def _applied(
    base: Document | None,
    several: Sequence[Changes],
    before: Sequence[Document],
    location: str | None = None,
) -> tuple[list[Document], Document]:
    """Returns all updates, and the metadata that they make of `base`, whose file is `location`."""
    updates = [*before, *(update for changes in several for update in changes.updates)]
    builder = builder_for(base, updates, now())
    for number, changes in enumerate(several):
        builder.require(changes.requirements)
        for update in (*(before if number == 0 else ()), *changes.updates):
            builder.apply(update)
    return updates, builder.build(location)


def _check_locations(session: Session, key: ContentKey, document: Document, issued: str) -> None:
    may_choose = session.may_choose_location(key, IcebergTable.type)
    check_table_locations(session.files, document, issued, may_choose=may_choose)


def paths_of(document: Mapping[str, Any]) -> list[Any]:
    """Returns the locations in metadata that a client can choose."""
    properties = document.get("properties") or {}
    return [document.get(LOCATION), *map(properties.get, PATH_PROPERTIES)]


def proposal_of(several: Sequence[Made], message: str) -> Proposal:
    """Returns the commit of several tables: one metadata file and one Put per changed table."""
    new_ids = {made.put.key: made.new_id for made in several if made.new_id is not None}
    return Proposal(
        message, [made.put for made in several], [made.file for made in several], new_ids
    )
