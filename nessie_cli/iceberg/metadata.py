"""Iceberg metadata files: their text, its JSON, and the content of the catalog that it is.

It needs no PyIceberg for local files. A file that becomes a content is checked as a whole
(`validity/`). Files of contents are checked only for the attributes that a content holds.

https://iceberg.apache.org/spec/#table-metadata-fields and https://iceberg.apache.org/view-spec/
"""

from __future__ import annotations

import json
import re
import uuid
import zlib
from codecs import BOM_UTF8, iterdecode
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder.document import NEWEST_VERSION, NO_SNAPSHOT
from nessie_cli.iceberg.files import MAX_BYTES, read_file
from nessie_cli.iceberg.locations import absolute_location, shown
from nessie_cli.iceberg.validity.metadata import check_metadata
from nessie_cli.model import IcebergTable, IcebergView
from nessie_cli.wire.large_json import decode, free, steps

_NEWEST_VIEW_FORMAT = 1
_FIRST_FORMAT_WITH_REQUIRED_IDS = 2
_STRUCTURE = re.compile(r"[\s,:{\[]\S|[}\]]")
_OTHER_FORMATS = {
    b"Obj\x01": "an Avro file (a manifest or a manifest list)",
    b"PAR1": "a Parquet data file",
    b"ORC": "an ORC data file",
}

Document = Mapping[str, Any]


def read_content(
    uri: str, properties: Mapping[str, str] | None = None
) -> IcebergTable | IcebergView:
    """Returns the content for a metadata file, plain or compressed with gzip. It has no id yet.

    `uri` is a path or a `file:` URI. With the extra `iceberg` it can be any URI that PyIceberg's
    FileIO reads, with `properties` as its options. The metadata location of the content is `uri`;
    a relative path becomes absolute.

    Raises `InvalidInput`, which names the file and the fault, also for metadata that Iceberg's own
    parser refuses, and `StoreUnavailable` if a remote file system does not answer. Cost: one read
    of the file.
    """
    data = read_file(uri, properties)
    try:
        document = _document(data)
        content = content_of(document, absolute_location(uri))
        check_metadata(document)
    except InvalidInput as error:
        raise InvalidInput(f"{shown(uri)}: {error.message}") from None
    return content


def read_document(uri: str, properties: Mapping[str, str] | None = None) -> Document:
    """Returns the JSON of a metadata file. Raises `InvalidInput` for members of a content only."""
    return parse_document(read_file(uri, properties), uri)


def parse_document(data: bytes, uri: str) -> Document:
    """Returns the JSON of the bytes of a metadata file. Messages name it `uri`."""
    try:
        document = _document(data)
    except InvalidInput as error:
        raise InvalidInput(f"{shown(uri)}: {error.message}") from None
    try:
        content_of(document, uri)
    except InvalidInput as error:
        # The frames of the traceback refer to the document.
        error.__traceback__ = None
        values = [document]
        del document
        free(values)
        raise InvalidInput(f"{shown(uri)}: {error.message}") from None
    parsed: Document = document
    return parsed


def content_of(document: Any, location: str) -> IcebergTable | IcebergView:
    """Returns the content for the JSON of a metadata file."""
    if not isinstance(document, dict):
        raise InvalidInput("not an Iceberg metadata file: it is not a JSON object")
    if "format-version" not in document:
        raise InvalidInput("not an Iceberg metadata file: 'format-version' is missing")
    return _view(document, location) if "view-uuid" in document else _table(document, location)


def in_state(document: Document, content: IcebergTable) -> Document:
    """Returns table metadata with the current ids of a content, and with a UUID.

    A metadata file holds many states of a table. The content says which one is current. A table of
    format version 1 may have no UUID: it has that of its content, which its first change stores.
    """
    members = (
        ("current-schema-id", content.schema_id, "schemas", "schema-id"),
        ("default-spec-id", content.spec_id, "partition-specs", "spec-id"),
        ("default-sort-order-id", content.sort_order_id, "sort-orders", "order-id"),
        ("current-snapshot-id", content.snapshot_id, "snapshots", "snapshot-id"),
    )
    changed: dict[str, Any] = {
        member: id_
        for member, id_, items, id_member in members
        if id_ != document.get(member)
        and any(item.get(id_member) == id_ for item in document.get(items) or ())
    }
    if "current-snapshot-id" in changed:
        main = {"snapshot-id": content.snapshot_id, "type": "branch"}
        changed["refs"] = {**(document.get("refs") or {}), "main": main}
    if document.get("table-uuid") is None and content.id is not None:
        changed["table-uuid"] = _as_uuid(content.id)
    return {**document, **changed} if changed else document


def oldest_snapshot(document: Any) -> datetime | None:
    """Returns the time of the oldest snapshot in table metadata, None without snapshots."""
    times = [snapshot["timestamp-ms"] for snapshot in document.get("snapshots") or ()]
    return datetime.fromtimestamp(min(times) / 1000, UTC) if times else None


def _as_uuid(content_id: str) -> str:
    """Returns the UUID of a content. Only other programs assign ids that are none themselves."""
    try:
        return str(uuid.UUID(content_id))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, content_id))


# -- bytes to JSON --------------------------------------------------------------------------------

# Texts are read as Iceberg reads them: Java's `GZIPInputStream` joins the members of a compressed
# file and ignores what follows them, and Jackson skips a byte order mark. UTF-16 is refused.
#
# A file may have tens of megabytes. No call on all of it takes long, because no other thread of a
# server runs meanwhile.

MAX_DEPTH = 200
"""Levels of JSON. A level of a nested column takes three."""
MOST_VALUES_OF_ITEM = 500_000
"""The most JSON values of one schema, snapshot or other item. A column has about five."""
MOST_MEMBERS = 1_000
"""The most gzip members of a file; programs that compress in blocks make one per 64 KiB."""

MOST_PLACED = 1 << 20
"""The most bytes of a text in which the place of a fault is looked for."""

GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_FED = 1 << 16


class TooLarge(InvalidInput):
    """The text of a file has more bytes than the limit."""


class NoJson(InvalidInput):
    """A text is not JSON."""


def _document(data: bytes) -> Any:
    try:
        text = unpacked(data, MAX_BYTES)
    except TooLarge:
        raise InvalidInput(
            f"larger than {MAX_BYTES // 2**20} MiB when decompressed, the limit for metadata files"
        ) from None
    for magic, description in _OTHER_FORMATS.items():
        if text.startswith(magic):
            raise InvalidInput(f"{description}, not an Iceberg metadata file")
    try:
        value = json_of(text)
    except NoJson:
        raise InvalidInput(_fault(text)) from None
    if value is None and b"null" not in text:
        raise InvalidInput("empty, not an Iceberg metadata file")
    return value


def _fault(text: bytes) -> str:
    """Returns why a text is not JSON. The standard library accepts more, but names places."""
    if len(text) > MOST_PLACED:
        return _fault_of_large(text)
    try:
        json.loads(text.decode())
    except UnicodeDecodeError:
        fault = "it is not UTF-8 text"
    except json.JSONDecodeError as error:
        if _is_cut_off(error):
            return f"truncated: the JSON ends in line {error.lineno}, in the middle of a value"
        fault = f"invalid JSON at line {error.lineno} column {error.colno}"
    except (RecursionError, ValueError):
        fault = "its JSON is nested too deeply or has a number with too many digits"
    else:
        fault = (
            "its JSON has NaN, Infinity, a number out of range, half of a surrogate pair,"
            " or a text of more than 4 MiB"
        )
    return f"not an Iceberg metadata file: {fault}"


def _fault_of_large(text: bytes) -> str:
    """Returns why a text is not JSON, without the place: one call would read all of it."""
    try:
        for _ in iterdecode(steps(text), "utf-8"):
            pass
    except UnicodeDecodeError:
        return "not an Iceberg metadata file: it is not UTF-8 text"
    if not text[-MOST_PLACED:].rstrip().endswith(b"}"):
        return "truncated: the JSON ends in the middle of a value"
    return "not an Iceberg metadata file: invalid JSON"


def _is_cut_off(error: json.JSONDecodeError) -> bool:
    """Whether the JSON ends too early, also inside a string or a word."""
    begun = error.pos > 0 and not _STRUCTURE.search(error.doc, error.pos)
    return begun or error.msg.startswith("Unterminated")


def unpacked(data: bytes, most: int) -> bytes:
    """Returns the text of a file, which may be compressed by gzip and has at most `most` bytes.

    Raises `TooLarge`, and `InvalidInput` if the compressed data is damaged.
    """
    text = _decompressed(data, most) if data.startswith(GZIP) else data
    if len(text) > most:
        raise TooLarge(f"larger than {most} bytes")
    return text.removeprefix(BOM_UTF8)


def _decompressed(data: bytes, most: int) -> bytes:
    parts, size, at = [], 0, 0
    for _ in range(MOST_MEMBERS):
        unpacking = zlib.decompressobj(_GZIP_WINDOW)
        while not unpacking.eof:
            fed = data[at : at + _FED]
            if not fed:
                raise InvalidInput("truncated: the compressed data ends too early")
            try:
                part = unpacking.decompress(fed, most + 1 - size)
            except zlib.error:
                raise InvalidInput("damaged: it cannot be decompressed with gzip") from None
            parts.append(part)
            size += len(part)
            at += len(fed) - len(unpacking.unused_data)
            if size > most:
                raise TooLarge(f"larger than {most} bytes when decompressed")
        if not data.startswith(GZIP, at):
            return b"".join(parts)
    raise InvalidInput(f"compressed in more than {MOST_MEMBERS:,} gzip members")


def json_of(text: bytes) -> Any:
    """Returns the JSON value of a text; None for an empty one.

    Raises `NoJson`, and `InvalidInput` if it exceeds a limit.
    """
    try:
        value = decode(text)
    except RecursionError:
        raise too_deep() from None
    except ValueError:
        raise NoJson("not JSON") from None
    try:
        _check_items(value)
    except InvalidInput as error:
        # The frames of the traceback refer to the values.
        error.__traceback__ = None
        values = [value]
        del value
        free(values)
        raise
    return value


def _check_items(document: Any) -> None:
    for member in _items_of(document):
        for item in _items_of(member):
            if type(item) in (dict, list):
                _check_item(item)


def _items_of(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _check_item(item: Any) -> None:
    level, count = [item], 0
    for _ in range(MAX_DEPTH - 2):
        count += sum(map(len, level))
        if count > MOST_VALUES_OF_ITEM:
            raise InvalidInput(
                "one schema, snapshot or other item has more than"
                f" {MOST_VALUES_OF_ITEM:,} JSON values"
            )
        level = [
            value
            for parent in level
            for value in (parent.values() if type(parent) is dict else parent)
            if type(value) in (dict, list)
        ]
        if not level:
            return
    raise too_deep()


def too_deep() -> InvalidInput:
    """Returns the error for JSON of too many levels."""
    return InvalidInput(f"its JSON has more than {MAX_DEPTH} levels")


# -- tables ---------------------------------------------------------------------------------------


def _table(document: Document, location: str) -> IcebergTable:
    version = _format(document, "table", NEWEST_VERSION)
    _need(document, "location", str, "a string")
    _whole_number(document, "last-column-id")
    required = version >= _FIRST_FORMAT_WITH_REQUIRED_IDS
    schema = _identified(
        document,
        "current-schema-id",
        "schemas",
        "schema-id",
        None if required else _old_schema_id(document),
    )
    spec = _identified(
        document, "default-spec-id", "partition-specs", "spec-id", None if required else 0
    )
    order = _identified(
        document, "default-sort-order-id", "sort-orders", "order-id", None if required else 0
    )
    return IcebergTable(
        metadata_location=location,
        snapshot_id=_snapshot_id(document),
        schema_id=schema,
        spec_id=spec,
        sort_order_id=order,
    )


def _old_schema_id(document: Document) -> int | None:
    """Returns the id of the only schema of an old file, 0 if it has no id.

    Returns None for a file that lists its schemas, which names the current one.
    """
    if "schemas" in document:
        return None
    schema = _need(document, "schema", dict, "an object")
    return _whole_number(schema, "schema-id") if "schema-id" in schema else 0


def _snapshot_id(document: Document) -> int:
    if document.get("current-snapshot-id") is None:
        return NO_SNAPSHOT
    current = _whole_number(document, "current-snapshot-id")
    if current != NO_SNAPSHOT:
        _find(document, "current-snapshot-id", current, "snapshots", "snapshot-id")
    return current


def _identified(
    document: Document, attribute: str, items: str, item_id: str, default: int | None
) -> int:
    """Returns an id that must be among `items`. Older formats may omit it: then `default`."""
    if default is not None and attribute not in document:
        return default
    current = _whole_number(document, attribute)
    if default is None or items in document:
        _find(document, attribute, current, items, item_id)
    return current


# -- views ----------------------------------------------------------------------------------------


def _view(document: Document, location: str) -> IcebergView:
    _format(document, "view", _NEWEST_VIEW_FORMAT)
    _need(document, "view-uuid", str, "a string")
    current = _whole_number(document, "current-version-id")
    version = _find(document, "current-version-id", current, "versions", "version-id")
    sql = [
        r
        for r in _need(version, "representations", list, "a list")
        if isinstance(r, dict) and r.get("type") == "sql"
    ]
    only = sql[0] if len(sql) == 1 else {}
    return IcebergView(
        metadata_location=location,
        version_id=current,
        schema_id=_whole_number(version, "schema-id"),
        sql_text=only.get("sql"),
        dialect=only.get("dialect"),
    )


# -- attributes -----------------------------------------------------------------------------------


def _format(document: Document, kind: str, newest: int) -> int:
    version = _whole_number(document, "format-version")
    if version < 1:
        raise InvalidInput(f"not an Iceberg metadata file: 'format-version' is {version}")
    if version > newest:
        raise InvalidInput(
            f"Iceberg {kind} metadata of format version {version}, "
            f"which is not supported; supported: 1 to {newest}"
        )
    return version


def _need(document: Document, attribute: str, kind: type, description: str) -> Any:
    value = document.get(attribute)
    if value is None:
        raise InvalidInput(f"not an Iceberg metadata file: {attribute!r} is missing")
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InvalidInput(f"not an Iceberg metadata file: {attribute!r} is not {description}")
    return value


def _whole_number(document: Document, attribute: str) -> int:
    return int(_need(document, attribute, int, "an integer"))


def _find(document: Document, attribute: str, id_: int, items: str, item_id: str) -> Document:
    """Returns the item with this id. Raises `InvalidInput`."""
    for item in _need(document, items, list, "a list"):
        if isinstance(item, dict) and _id_of(item, item_id) == id_:
            return item
    raise InvalidInput(
        f"not valid Iceberg metadata: {attribute!r} is {id_}, which is not among its {items!r}"
    )


def _id_of(item: Document, item_id: str) -> object:
    """Returns the id of an item. A schema without one has the id 0."""
    given = item.get(item_id)
    return 0 if given is None and item_id == "schema-id" else given
