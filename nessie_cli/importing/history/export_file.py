"""The export of the original server (`nessie-server-admin-tool export`) as a source.

An export is a ZIP or a folder with messages of Protocol Buffers. Its files of commits and
references are messages one after the other, each after its length. Versions 1 to 3 are read.
"""

from __future__ import annotations

import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

from msgspec import MsgspecError, json

from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.importing.history.export_messages import messages
from nessie_cli.importing.history.source import SourceReferences
from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    Delete,
    Entry,
    LogEntry,
    Operation,
    Put,
    Reference,
    ReferenceType,
)
from nessie_cli.model.progress import Progress
from nessie_cli.wire import answers
from nessie_cli.wire.json_text import parse_json
from nessie_cli.wire.values import decode_instant

_META, _DESCRIPTION = "export-metadata", "repository-description"
_VERSIONS = (1, 2, 3)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST = 1 << 30
"""The most bytes of one message. A commit with a million operations has a third of it."""
_PREFIXES = {"refs/heads/": ReferenceType.BRANCH, "refs/tags/": ReferenceType.TAG}
_CONTENT = "C"
"""The last part of a stored key of a content: `M`, NUL, elements between U+0001, NUL, `C`."""
_PUT, _DELETE = 0, 1
_LARGEST_META = 1 << 24
"""The most bytes of the export's metadata, which has a name for each file."""
_HEADERS = frozenset({"author", "committer", "signed-off-by", "date", "author-date"})
"""The headers of a commit that are not properties."""


_DAMAGES = (EOFError, zipfile.BadZipFile, zlib.error)
"""The errors of reading a damaged file of an export."""


class ExportFile:
    """A ZIP or folder that the original server's admin tool exported."""

    def __init__(self, path: Path) -> None:
        """Read the export's metadata. Raises `InvalidInput` for anything but an export."""
        self._path = path
        self._zip = None
        if not path.is_dir():
            try:
                self._zip = zipfile.ZipFile(path)
            except FileNotFoundError:
                raise InvalidInput(f"{path}: there is no such file or folder") from None
            except zipfile.BadZipFile:
                raise InvalidInput(
                    f"{path} is not an export: it is neither a ZIP file nor a folder"
                ) from None
        meta = self._message(_META, "ExportMeta")
        if meta is None:
            raise InvalidInput(
                f"{path} is not an export of a Nessie server: it has no file {_META}",
                hint="an export is made by `nessie-server-admin-tool export`",
            )
        if meta.version not in _VERSIONS:
            raise InvalidInput(
                f"{path}: its export version is {meta.version}; this program reads 1, 2 and 3"
            )
        self._meta = meta
        self._left_out: Counter[str] = Counter()

    @property
    def label(self) -> str:
        """The path."""
        return str(self._path)

    def close(self) -> None:
        """Closes the ZIP."""
        if self._zip is not None:
            self._zip.close()

    # -- references --------------------------------------------------------------------------------

    def references(self) -> SourceReferences:
        """Reads all branches and tags. Raises `InvalidInput` if the export has not all of them."""
        name = "NamedReference" if self._meta.version == 1 else "Ref"
        stored = list(self._messages(self._meta.named_references_files, name))
        self._check_count("references", len(stored), self._meta.named_references_count)
        references = [reference for ref in stored if (reference := _reference(ref)) is not None]
        description = self._message(_DESCRIPTION, "RepositoryDescriptionProto")
        default = "main" if description is None else description.default_branch_name
        return SourceReferences(references, default)

    # -- commits -----------------------------------------------------------------------------------

    def commits(self, references: Sequence[Reference], progress: Progress) -> Iterator[LogEntry]:  # noqa: ARG002 - an export has one list of commits
        """Yields all commits of the export, also those that no reference reaches."""
        count, total = 0, self._meta.commit_count
        for stored in self._messages(self._meta.commits_files, "Commit"):
            try:
                yield self._commit(stored)
            except (NessieError, OverflowError) as error:
                reason = error.message if isinstance(error, NessieError) else "its time is invalid"
                raise InvalidInput(
                    f"{self._path}: commit {stored.commit_id.hex()}: {reason}"
                ) from None
            count += 1
            progress(count, total)
        self._check_count("commits", count, total)

    def state(self, hash_: str) -> Iterator[Entry] | None:  # noqa: ARG002 - an export has no states
        """Returns None: an export has only the changes of each commit."""
        return None

    def left_out(self) -> Mapping[str, int]:
        """Returns the numbers of internal objects, and of keys that are not those of contents."""
        generic = self._messages(self._meta.generic_obj_files, "RelatedObj")
        return self._left_out + Counter(stored.type_name for stored in generic)

    def _commit(self, stored: Any) -> LogEntry:
        meta = _meta_of(stored)
        operations: dict[ContentKey, Operation] = {}
        for operation in stored.operations:
            key = self._key(operation.content_key)
            if key is None:
                self._left_out["key of another kind"] += 1
            elif operation.operation_type == _PUT:
                operations[key] = Put(key, _content(operation, key))
            elif operation.operation_type == _DELETE:
                operations[key] = Delete(key)
            else:
                raise InvalidInput(f"{key}: unknown operation {operation.operation_type}")
        return LogEntry(meta, 0, tuple(operations.values()))

    def _key(self, elements: Sequence[str]) -> ContentKey | None:
        """Returns the key of a content, or None for another key of the server's store."""
        if not elements:
            raise InvalidInput("an operation has no key")
        if self._meta.version == 1:
            return ContentKey(tuple(elements))
        universe, _, rest = elements[0].partition("\0")
        joined, _, kind = rest.rpartition("\0")
        if universe != "M" or kind != _CONTENT:
            return None
        return ContentKey(tuple(joined.split("\x01")))

    # -- files -------------------------------------------------------------------------------------

    def _check_count(self, what: str, read: int, announced: int) -> None:
        if read != announced:
            raise InvalidInput(
                f"{self._path} has {read:,} {what}, but its metadata says {announced:,}",
                hint="export again: it is incomplete or damaged",
            )

    def _open(self, name: str) -> IO[bytes]:
        """Opens a file of the export. Raises FileNotFoundError."""
        if name in ("", ".", "..") or not name.isprintable() or "/" in name or "\\" in name:
            raise InvalidInput(f"{self._path}: the export names the file {name!r} outside of it")
        try:
            return (self._path / name).open("rb") if self._zip is None else self._zip.open(name)
        except KeyError:
            raise FileNotFoundError(name) from None
        except FileNotFoundError:
            raise
        except (RuntimeError, NotImplementedError, OSError) as error:
            raise InvalidInput(f"{self._path} cannot be read: {error}") from None

    def _message(self, name: str, type_: str) -> Any | None:
        """Returns the only message of a file, or None without the file."""
        try:
            with self._open(name) as file:
                data = file.read(_LARGEST_META + 1)
        except FileNotFoundError:
            return None
        except _DAMAGES as error:
            raise self._damaged(name, error) from None
        if len(data) > _LARGEST_META:
            raise self._damaged(name, "it is too large")
        return self._decoded(type_, data, name)

    def _messages(self, names: Iterable[str], type_: str) -> Iterator[Any]:
        """Yields the messages of several files, one at a time in memory."""
        for name in names:
            try:
                with self._open(name) as file:
                    while (data := _next_message(file)) is not None:
                        yield self._decoded(type_, data, name)
            except FileNotFoundError:
                raise InvalidInput(f"{self._path}: the file {name} is missing") from None
            except _DAMAGES as error:
                raise self._damaged(name, error) from None

    def _damaged(self, name: str, reason: object) -> InvalidInput:
        text = str(reason) or "it ends too early"
        return InvalidInput(f"{self._path}: the file {name} is damaged: {text}")

    def _decoded(self, type_: str, data: bytes, name: str) -> Any:
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

        try:
            return messages()[type_].FromString(data)
        except DecodeError as error:
            raise self._damaged(name, error) from None


def _next_message(file: IO[bytes]) -> bytes | None:
    """Returns the bytes of the next message, which follow their length, or None at the end."""
    size = shift = 0
    while True:
        byte = file.read(1)
        if not byte:
            if shift:
                raise EOFError
            return None
        size |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:  # noqa: PLR2004 - the last byte of a number has no highest bit
            break
        shift += 7
        if size > _LARGEST:
            raise EOFError("a message is too long")
    data = file.read(size) if size <= _LARGEST else b""
    if len(data) < size:
        raise EOFError
    return data


def _reference(stored: Any) -> Reference | None:
    """Returns a branch or tag, or None for an internal reference."""
    if stored.DESCRIPTOR.name == "NamedReference":
        type_ = ReferenceType.TAG if stored.ref_type else ReferenceType.BRANCH
        return Reference(type_, stored.name, stored.commit_id.hex())
    for prefix, type_ in _PREFIXES.items():
        if stored.name.startswith(prefix):
            return Reference(type_, stored.name.removeprefix(prefix), stored.pointer.hex())
    return None


def _content(operation: Any, key: ContentKey) -> Any:
    place = f"the content of {key}"
    content = answers.decode_content(parse_json(operation.value, place), place)
    return content.with_id(operation.content_id or content.id)


def _meta_of(stored: Any) -> CommitMeta:
    """Returns the metadata of a commit: of headers, or of JSON as in version 1."""
    parents = tuple(id_.hex() for id_ in (stored.parent_commit_id, *stored.additional_parents))
    created = _EPOCH + timedelta(microseconds=stored.created_time_micros)
    if stored.metadata:
        return _meta_of_json(stored, parents, created)
    headers = {header.name: tuple(header.values) for header in stored.headers}
    committer = headers.get("committer")
    return CommitMeta(
        message=stored.message,
        authors=headers.get("author", ()),
        signed_off_by=headers.get("signed-off-by", ()),
        author_time=_time(headers.get("author-date")),
        properties={name: values for name, values in headers.items() if name not in _HEADERS},
        committer=committer[0] if committer else None,
        commit_time=_time(headers.get("date")) or created,
        hash=stored.commit_id.hex(),
        parents=parents,
    )


def _time(values: Sequence[str] | None) -> datetime | None:
    """Returns the time of a header. The original ignores one that it cannot read, too."""
    if values:
        with suppress(InvalidInput):
            return decode_instant(values[0], "time")
    return None


def _meta_of_json(stored: Any, parents: tuple[str, ...], created: datetime) -> CommitMeta:
    try:
        document = json.decode(stored.metadata, type=dict[str, Any])
    except MsgspecError as error:
        raise InvalidInput(f"its metadata is not JSON: {error}") from None
    for plural, single in (("authors", "author"), ("allSignedOffBy", "signedOffBy")):
        if not document.get(plural) and document.get(single):
            document[plural] = [document[single]]
    if not document.get("allProperties"):
        properties = document.get("properties") or {}
        document["allProperties"] = {name: [value] for name, value in properties.items()}
    meta = answers.decode_meta(
        {name: value for name, value in document.items() if value is not None}, "metadata"
    )
    return CommitMeta(
        message=meta.message,
        authors=meta.authors,
        signed_off_by=meta.signed_off_by,
        author_time=meta.author_time,
        properties=meta.properties,
        committer=meta.committer,
        commit_time=meta.commit_time or created,
        hash=stored.commit_id.hex(),
        parents=parents,
    )
