"""Reads metadata files of a source, and writes copies with which engines delete no files.

An engine that expires snapshots of a table deletes files that branches, tags and older commits here
still need. The property `gc.enabled=false` prevents that, and the one below keeps metadata files.
The source's own file stays as it is, so a copy with both properties is committed.

The name of a copy depends only on its original, so a repeated import finds the copy of one that was
interrupted. Other branches and repositories share the copy, so a refused import leaves it. It
begins with a dot: readers of a folder that take its newest version skip the file, and so does
Spark's removal of orphan files at the source.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from posixpath import basename
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nessie_cli.errors import InvalidInput, NessieError, StoreUnavailable
from nessie_cli.iceberg.builder.document import GC_ENABLED
from nessie_cli.iceberg.builder.table import updated
from nessie_cli.iceberg.files import Files, MissingFile
from nessie_cli.iceberg.locations import PATH_PROPERTIES, absolute_location, normalised, shown
from nessie_cli.iceberg.metadata import Document, content_of, in_state, parse_document
from nessie_cli.iceberg.validity.metadata import check_metadata
from nessie_cli.importing.source import SourceContent, SourceKind
from nessie_cli.model import IcebergTable, IcebergView

KEEPS_FILES = {
    GC_ENABLED: "false",
    "write.metadata.delete-after-commit.enabled": "false",
}
"""The properties with which engines delete no file of a table."""
_COPY = ".nessie-import-"
"""The beginning of the names of copies."""


class SourceMetadata(Struct, frozen=True):
    """The metadata of a content of a source.

    `content` is what is committed, without an id: of the source's file or, if `is_copied`, of its
    copy. `location` is the folder of the table or view, and `other_places` are other ones that its
    properties name for new files. `uuid` is None in old tables.
    """

    content: IcebergTable | IcebergView
    location: str
    uuid: str | None
    other_places: tuple[str, ...] = ()
    is_copied: bool = False


def normal_place(location: str) -> str:
    """Returns a location in the form in which locations are compared."""
    try:
        return normalised(location)
    except InvalidInput:
        return location


def folder_of(location: str) -> str:
    """Returns the folder of a file in the form in which locations are compared."""
    return normal_place(location).rpartition("/")[0]


def is_copy(location: str) -> bool:
    """Whether a metadata file is a copy that an import wrote."""
    return basename(location).startswith(_COPY)


def copy_location(content: SourceContent) -> str:
    """Returns the location of the copy of a content's metadata file."""
    original = absolute_location(content.metadata_location)
    state = content.content
    ids = "" if state is None else repr(replace(state, id=None))
    name = uuid.uuid5(uuid.NAMESPACE_URL, original + ids + content.version)
    return f"{original.rpartition('/')[0]}/{_COPY}{name}.metadata.json"


def read_source(files: Files, content: SourceContent, *, copies: bool) -> SourceMetadata:
    """Reads and checks the metadata file of a content, and tries whether it can be copied.

    Raises `InvalidInput` or `StoreUnavailable`, which name the file. Cost: one read.
    """
    location = absolute_location(content.metadata_location)
    document = checked_document(files, content)
    kind = SourceKind.VIEW if "view-uuid" in document else SourceKind.TABLE
    if kind is not content.kind:
        raise InvalidInput(
            f"{shown(location)} is the metadata of a {kind}, but the source has a {content.kind}"
        )
    taken = content_of(document, location)
    if isinstance(content.content, IcebergView) and isinstance(taken, IcebergView):
        taken = replace(content.content, id=None)
    is_copied = copies and isinstance(taken, IcebergTable) and not _keeps_files(document)
    if is_copied:
        copied(document, location)
        taken = replace(taken, metadata_location=copy_location(content))
    properties = document.get("properties") or {}
    places = tuple(properties[name] for name in PATH_PROPERTIES if properties.get(name))
    return SourceMetadata(taken, document["location"], uuid_of(document), places, is_copied)


def write_copy(files: Files, content: SourceContent) -> None:
    """Writes the copy of a table's metadata file, unless an earlier import has written it.

    Raises `InvalidInput` or `StoreUnavailable`, which name the file.
    """
    place, original = copy_location(content), absolute_location(content.metadata_location)
    after = copied(checked_document(files, content), original)
    try:
        if _is_copy_of(after, files.read(place), place):
            return
        # Its writer was stopped. Nothing names such a file.
        files.remove(place)
    except MissingFile:
        pass
    files.write(place, msgspec.json.encode(after))


def checked_document(files: Files, content: SourceContent) -> Document:
    """Reads the metadata of a content in the state of the source.

    Raises `InvalidInput`, also if Iceberg's own parser refuses it, or `StoreUnavailable`.
    """
    location = absolute_location(content.metadata_location)
    document = parse_document(files.read(location), location)
    try:
        check_metadata(document)
    except InvalidInput as error:
        raise InvalidInput(f"{shown(location)}: {error.message}") from None
    if isinstance(content.content, IcebergTable):
        return in_state(document, replace(content.content, id=None))
    return document


def copied(document: Document, original: str) -> dict[str, Any]:
    """Returns table metadata that keeps files, and whose log names the original.

    It depends on the original alone: the time of the last change stays the same. Raises
    `InvalidInput`, which names the file.
    """
    update = {"action": "set-properties", "updates": KEEPS_FILES}
    try:
        return updated(dict(document), [update], 0, original)
    except InvalidInput as error:
        raise InvalidInput(f"{shown(original)} cannot be copied: {error.message}") from None


def uuid_of(document: Document) -> str | None:
    """Returns the UUID of a table or view."""
    value = document.get("view-uuid" if "view-uuid" in document else "table-uuid")
    return value.lower() if isinstance(value, str) else None


def is_earlier_view(before: Document, after: Document) -> bool:
    """Whether the view `before` is an earlier state of `after`, with the same properties."""
    versions, later = before.get("version-log") or (), after.get("version-log") or ()
    return (
        "view-uuid" in after
        and uuid_of(before) == uuid_of(after)
        and (before.get("properties") or {}) == (after.get("properties") or {})
        and all(version in later for version in versions)
    )


def names_in_log(document: Document) -> set[str]:
    """Returns the metadata files in the log of a table, in the form in which they are compared."""
    return {
        normal_place(entry["metadata-file"])
        for entry in document.get("metadata-log") or ()
        if isinstance(entry, Mapping) and isinstance(entry.get("metadata-file"), str)
    }


def cannot_write(error: NessieError) -> StoreUnavailable:
    """Returns the error for a metadata file that cannot be written beside its original."""
    return StoreUnavailable(
        error.message,
        hint="--pointers-only registers the source's own file, and writes nothing into its folder",
    )


def _keeps_files(document: Document) -> bool:
    properties = document.get("properties") or {}
    return all(properties.get(name) == value for name, value in KEEPS_FILES.items())


def _is_copy_of(after: Document, data: bytes, location: str) -> bool:
    """Whether the bytes are a copy, perhaps with its members in another order.

    It is False for the beginning of a copy, because a writer may have been stopped at any byte.
    Raises `InvalidInput` for other metadata, which a commit may name.
    """
    try:
        there = dict(parse_document(data, location))
    except InvalidInput:
        return False
    if there != after:
        raise InvalidInput(
            f"{shown(location)} is the copy of another state: the metadata file of the source was"
            " replaced by one with the same name"
        )
    return True
