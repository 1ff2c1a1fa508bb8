"""Tables that exist: list, load, commits of updates, drop, rename, credentials.

A load with a current ETag reads no file. An ETag is a digest, and behind a dot the second until
which a client can go on with the credentials that it got with it.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import msgpack, structs

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg import messages
from nessie_cli.iceberg.builder import values
from nessie_cli.iceberg.builder.document import (
    GC_ENABLED,
    NO_SNAPSHOT,
    RequirementFailed,
    check_requirements,
    creates_table,
)
from nessie_cli.iceberg.builder.table import builder_for
from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.metadata import content_of, in_state
from nessie_cli.iceberg.state import State
from nessie_cli.iceberg.validity.metadata import check_additions, placed_faults
from nessie_cli.iceberg.warehouses.metadata_files import Head, head_of, next_metadata_file
from nessie_cli.iceberg.warehouses.warehouse import (
    LOCATION,
    VENDED_CREDENTIALS,
    NewMetadata,
    check_table_locations,
    new_location,
)
from nessie_cli.model import (
    CommitResult,
    ContentKey,
    IcebergTable,
    IcebergView,
    Put,
)
from nessie_cli.server.http.messages import Reply, encoded, json_reply
from nessie_cli.server.iceberg.call import IcebergCall, mode_of
from nessie_cli.server.iceberg.contents import drop, identifiers, rename
from nessie_cli.server.iceberg.delegation import FileAccess
from nessie_cli.server.iceberg.errors import CommitConflict
from nessie_cli.server.iceberg.names import (
    TABLE,
    child,
    identifier_of,
    namespace_in,
    need_free,
    need_table,
)
from nessie_cli.server.iceberg.obeyed_properties import (
    check_properties,
    may_be_in,
    without_obeyed,
)
from nessie_cli.server.pipeline.call import NO_CONTENT, Answer, Proposal
from nessie_cli.wire.large_json import encode

ALL, REFS = "all", "refs"
MOST_CHANGES = 100_000
"""The most requirements and updates of a request."""
_COMMIT, _TRANSACTION = "CommitTableRequest", "CommitTransactionRequest"
_REPORT = "ReportMetricsRequest"
MARGIN = 300
"""Before credentials expire, the seconds in which a client gets new ones instead of a 304."""
_DIGITS = 32
_MOST_DIGITS = 12
"""The most digits of the second until which credentials are valid."""
_encode = msgpack.Encoder(order="sorted").encode


def key_in_path(call: IcebergCall) -> ContentKey:
    """Returns the key of the table that the path names."""
    segments = call.segments
    return child(namespace_in(segments["namespace"]), segments["table"])


def list_tables(call: IcebergCall) -> Answer | Reply:
    """`GET /v1/{prefix}/namespaces/{namespace}/tables`."""
    return identifiers(call, IcebergTable.type)


def load_table(call: IcebergCall) -> Answer | Reply:
    """`GET /v1/{prefix}/namespaces/{namespace}/tables/{table}`."""
    key = key_in_path(call)
    snapshots = call.text("snapshots") or ALL
    if snapshots not in (ALL, REFS):
        raise InvalidInput(f"snapshots: must be {ALL} or {REFS}, not {snapshots!r}")
    content = need_table(call.state(), key)
    tags = call.header(b"if-none-match")
    if tags:
        digest, delegated = _digest_for(call, content, snapshots), bool(call.delegation_mode)
        if current := _current_tag(tags, digest, delegated=delegated):
            return Reply(304, [(b"etag", current)])
    return table_answer(call, key, content, snapshots)


def table_exists(call: IcebergCall) -> Answer | Reply:
    """`HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}`."""
    need_table(call.state(), key_in_path(call))
    return NO_CONTENT


def load_credentials(call: IcebergCall) -> Answer | Reply:
    """`GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials`."""
    key = key_in_path(call)
    content = need_table(call.state(), key)
    location = _location_in(call.head(content.metadata_location))
    mode = mode_of(VENDED_CREDENTIALS, call.warehouse)
    access = call.access_to(key, content, location, mode)
    return Answer({"storage-credentials": access.credentials})


def drop_table(call: IcebergCall) -> Answer | Reply:
    """`DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}`.

    No file is deleted, even if the client asks for it: other branches, tags and older commits may
    need them. Garbage collection deletes those that nothing needs.
    """
    return drop(call, key_in_path(call), need_table, "table")


def rename_table(call: IcebergCall) -> Answer | Reply:
    """`POST /v1/{prefix}/tables/rename`. The table keeps its content id."""
    return rename(call, need_table, "table")


def report_metrics(call: IcebergCall) -> Answer | Reply:
    """`POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics`."""
    values.text(call.json_object(_REPORT), "report-type", _REPORT)
    need_table(call.state(), key_in_path(call))
    return NO_CONTENT


# -- load ----------------------------------------------------------------------------------------


def read_table(call: IcebergCall, content: IcebergTable) -> Document:
    """Returns the metadata of a table in the state that its content names."""
    document = call.read(content.metadata_location)
    with placed_faults(document, content.metadata_location):
        return dict(in_state(document, content))


def table_answer(
    call: IcebergCall, key: ContentKey, content: IcebergTable, snapshots: str = ALL
) -> Reply:
    """Returns the answer that loads a table."""
    digest = _digest_for(call, content, snapshots)
    if call.delegation_mode:
        return _with_access(call, key, content, snapshots, digest)
    bodies = call.services.bodies
    cache_key = digest, call.identity_of(content.metadata_location)
    body = bodies.get(cache_key)
    if body is None:
        text = call.file_text(content.metadata_location)
        head = head_of(text, content.metadata_location)
        metadata = _table_text(call, text, head, content, snapshots)
        body = loaded(metadata, content, for_client(call, FileAccess()))
        bodies[cache_key] = body
    return json_reply(body, (b"etag", _etag(digest, None)))


def _with_access(
    call: IcebergCall, key: ContentKey, content: IcebergTable, snapshots: str, digest: str
) -> Reply:
    """Returns the answer that loads a table, with access to its files."""
    text = call.file_text(content.metadata_location)
    head = head_of(text, content.metadata_location)
    access = call.access_to(key, content, _location_in(head))
    metadata = _table_text(call, text, head, content, snapshots)
    body = loaded(metadata, content, for_client(call, access))
    return json_reply(body, (b"etag", _etag(digest, access.expires)))


def _table_text(
    call: IcebergCall, text: bytes, head: Head, content: IcebergTable, snapshots: str
) -> bytes:
    """Returns the text of the metadata of a table in the state that its content names.

    It is that of the file if the file has this state, which is not parsed then. Properties that
    PyIceberg must not obey are left out.
    """
    if snapshots == ALL and _is_in_state(head, content) and not may_be_in(text):
        return text
    document = call.parsed(text, content.metadata_location)
    with placed_faults(document, content.metadata_location):
        made = without_obeyed(dict(in_state(document, content)))
        return encode(_with_refs_only(made) if snapshots == REFS else made)


def loaded(metadata: bytes, content: IcebergTable | IcebergView, more: Mapping[str, Any]) -> bytes:
    """Returns the body of the answer that loads a table or view."""
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


def _location_in(head: Head) -> str:
    """Returns the location of a table. Raises `InvalidInput` if its metadata has none."""
    if not head.location:
        raise InvalidInput("location must be a non-empty string")
    return head.location


def for_client(call: IcebergCall, access: FileAccess) -> dict[str, Any]:
    """Returns the members of an answer that give a client access to the files of a table."""
    config = {**call.warehouse.client_config, **access.config}
    if not access.credentials:
        return {"config": config}
    return {"config": config, "storage-credentials": access.credentials}


def _with_refs_only(document: Document) -> Document:
    """Returns metadata with the snapshots that a branch or tag of the table refers to."""
    referenced = {ref["snapshot-id"] for ref in (document.get("refs") or {}).values()}
    referenced.add(document.get("current-snapshot-id"))
    snapshots = [
        snapshot
        for snapshot in document.get("snapshots") or ()
        if snapshot["snapshot-id"] in referenced
    ]
    return {**document, "snapshots": snapshots} if "snapshots" in document else document


def _digest_for(call: IcebergCall, content: IcebergTable, snapshots: str) -> str:
    """Returns the digest of the answer that loads a table; reads no file."""
    config = dict(call.warehouse.client_config)
    depends_on = (structs.astuple(content), snapshots, config, call.delegation_mode)
    return hashlib.sha256(_encode(depends_on)).hexdigest()[:_DIGITS]


def _etag(digest: str, expires: int | None) -> bytes:
    """Returns the ETag of an answer whose credentials expire at a second, if it has any."""
    return f'"{digest}"'.encode() if expires is None else f'"{digest}.{expires}"'.encode()


def _current_tag(header: str, digest: str, *, delegated: bool) -> bytes | None:
    """Returns the ETag of the answer if `If-None-Match` says that the client has this answer."""
    if header.strip() == "*":
        # How long the credentials of the client are good is unknown.
        return None if delegated else f'"{digest}"'.encode()
    for part in header.split(","):
        # Our ETags contain no commas and no quotes.
        quoted = part.strip().removeprefix("W/")
        tag = quoted[1:-1] if quoted[:1] == quoted[-1:] == '"' else ""
        of_client, _, expires = tag.partition(".")
        if of_client == digest and (not expires or _is_far(expires)):
            return f'"{tag}"'.encode()
    return None


def _is_far(expires: str) -> bool:
    """Whether credentials are good for a while."""
    return (
        expires.isdecimal() and len(expires) <= _MOST_DIGITS and int(expires) - MARGIN > time.time()
    )


# -- commit ----------------------------------------------------------------------------------------


class TableChange(NamedTuple):
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
    _check_number(len(changes.requirements) + len(changes.updates), where)
    return changes


def _check_number(changes: int, where: str) -> None:
    """Raises `InvalidInput` if a request has too many requirements and updates."""
    if changes > MOST_CHANGES:
        raise InvalidInput(
            f"{where}: has {changes} requirements and updates, at most {MOST_CHANGES} are allowed"
        )


def commit_table(call: IcebergCall) -> Answer | Reply:
    """`POST /v1/{prefix}/namespaces/{namespace}/tables/{table}`."""
    key, changes = key_in_path(call), changes_of(call.json_object(_COMMIT), _COMMIT)

    def make(state: State) -> Proposal[CommitResult] | None:
        made = _made_by(call, state, key, [changes])
        return _proposal_of(call, state, [made], made.message) if made else None

    after = call.change(make).after
    return table_answer(call, key, need_table(after, key))


def _made_by(
    call: IcebergCall, state: State, key: ContentKey, several: Sequence[Changes]
) -> TableChange | None:
    """Returns a table with changes made in order; each requirement is checked on their result.

    Returns None if they change nothing. Raises `CommitConflict`, `NoSuchTable`, `InvalidInput`.
    """
    try:
        if creates_table(several[0].requirements):
            return _created_by(call, state, key, several)
        return _updated_by(call, state, key, several)
    except RequirementFailed as error:
        changed = state.last_change(key)
        more = f". {key} was last changed by {changed}" if changed else ""
        raise CommitConflict(f"{error.message}{more}") from None


def _created_by(
    call: IcebergCall, state: State, key: ContentKey, several: Sequence[Changes]
) -> TableChange:
    """Returns a table that the changes create, with a UUID, a location and defaults."""
    there = state.content(key)
    if isinstance(there, IcebergTable):
        check_requirements(several[0].requirements, read_table(call, there))
    namespace = need_free(state, key, TABLE)
    asked = next(
        (
            update.get("uuid")
            for update in several[0].updates
            if update.get("action") == "assign-uuid"
        ),
        None,
    )
    own_uuid = str(uuid.uuid4())
    issued = new_location(call.warehouse, namespace, key, own_uuid)
    if isinstance(asked, str) and call.has_staged(state, asked, key):
        staged = new_location(call.warehouse, namespace, key, asked)
        # A branch that was moved back no longer knows a table that another branch may have.
        if not call.files.has_any(staged):
            own_uuid, issued = asked, staged
    defaults: list[Document] = [
        {"action": "assign-uuid", "uuid": own_uuid},
        {"action": "set-location", "location": issued},
        {"action": "set-properties", "updates": {GC_ENABLED: "false"}},
    ]
    updates, document = _applied(None, several, defaults)
    check_locations(call, key, IcebergTable.type, document, issued)
    file = next_metadata_file(document["location"], document["properties"], None)
    message = messages.created(key, updates)
    return _made(key, None, document, file, message=message, new_id=own_uuid)


def _updated_by(
    call: IcebergCall, state: State, key: ContentKey, several: Sequence[Changes]
) -> TableChange | None:
    """Returns a table that exists with the changes, None if they change nothing."""
    there = need_table(state, key)
    base = read_table(call, there)
    with placed_faults(base, there.metadata_location):
        updates, document = _applied(base, several, [], there.metadata_location)
        if document is base:
            return None
        file = changed_file(call, key, there, base, document)
    return _made(key, there, document, file, message=messages.changed(key, updates))


def _made(
    key: ContentKey,
    there: IcebergTable | None,
    document: Document,
    file: str,
    *,
    message: str,
    new_id: str | None = None,
) -> TableChange:
    """Returns a change of a table, with its metadata as text, which takes the least memory."""
    content = content_of(document, file)
    put = Put(key, content.with_id(there.id if there else None), there)
    return TableChange(put, (file, encode(document)), message, new_id)


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
    document = builder.build(location)
    if document is not base:
        check_additions(document, base)
        check_properties(document, base)
    return updates, document


def _proposal_of(
    call: IcebergCall, state: State, several: Sequence[TableChange], message: str
) -> Proposal[CommitResult]:
    """Returns the commit of several tables: one metadata file and one Put per changed table."""
    return call.proposal(
        state,
        message,
        [made.put for made in several],
        [made.file for made in several],
        {made.put.key: made.new_id for made in several if made.new_id is not None},
    )


def commit_tables(call: IcebergCall) -> Answer | Reply:
    """`POST /v1/{prefix}/transactions/commit`. Each table is put once."""
    by_key: dict[ContentKey, list[Changes]] = {}
    count = 0
    for number, body in enumerate(
        values.objects(call.json_object(_TRANSACTION), "table-changes", _TRANSACTION)
    ):
        where = f"{_TRANSACTION}: table-changes[{number}]"
        key = identifier_of(body, "identifier", where)
        changes = changes_of(body, where)
        by_key.setdefault(key, []).append(changes)
        count += 1 + len(changes.requirements) + len(changes.updates)
    _check_number(count, _TRANSACTION)
    if not by_key:
        raise InvalidInput(f"{_TRANSACTION}: table-changes is empty")

    def make(state: State) -> Proposal[CommitResult] | None:
        several = [
            made for key, changes in by_key.items() if (made := _made_by(call, state, key, changes))
        ]
        messages = [made.message for made in several]
        message = f"change {len(several)} tables\n\n" + "\n".join(messages)
        if not several:
            return None
        message = messages[0] if len(several) == 1 else message
        return _proposal_of(call, state, several, message)

    call.change(make)
    return NO_CONTENT


def check_locations(
    call: IcebergCall, key: ContentKey, type_: str, document: Document, issued: str
) -> None:
    """Raises an error if new metadata names a location that the caller may not choose.

    `issued` is the location that the server issued for the table or view.
    """
    may_choose = call.may_choose_location(key, type_)
    check_table_locations(call.files.allowed, document, issued, may_choose=may_choose)


def changed_file(
    call: IcebergCall,
    key: ContentKey,
    there: IcebergTable | IcebergView,
    base: Document,
    document: Document,
) -> str:
    """Returns the name of the next metadata file of a table or view.

    Raises an error if it, or a location in the new metadata, is not allowed.
    """
    file = next_metadata_file(document[LOCATION], document["properties"], there.metadata_location)
    call.check_new_metadata(key, NewMetadata(there, base, document, file))
    return file


def now() -> int:
    """Returns the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
