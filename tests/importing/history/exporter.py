"""Writes exports in the format of the original's `transfer.proto`, byte by byte.

It does not use the reader's descriptors, so a wrong number there is a failing test.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    Content,
    ContentKey,
    LogEntry,
    Put,
    Reference,
    ReferenceType,
)
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.wire.contents import content_json
from nessie_cli.wire.scalars import instant

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Field = tuple[int, int | str | bytes]


def varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def message(*fields: Field) -> bytes:
    """Returns a message of fields: an integer is a varint, anything else has its length."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts += [varint(number << 3), varint(value)]
        else:
            data = value.encode() if isinstance(value, str) else value
            parts += [varint(number << 3 | 2), varint(len(data)), data]
    return b"".join(parts)


def delimited(messages: Iterable[bytes]) -> bytes:
    return b"".join(varint(len(data)) + data for data in messages)


@dataclass
class Operation:
    key: tuple[str, ...]
    content: Content | dict[str, Any] | None = None


@dataclass
class Commit:
    """A commit of an export. `parents` and `id` are hashes in hexadecimal form."""

    id: str
    parents: Sequence[str]
    operations: Sequence[Operation] = ()
    message: str = "work"
    time: int = 0
    headers: dict[str, Sequence[str]] = field(default_factory=dict)
    raw_keys: Sequence[str] = ()
    """Keys of the server's own index, as version 2 stores them."""


def stored_key(elements: Sequence[str]) -> str:
    return f"M\0{chr(1).join(elements)}\0C"


def operation_of(operation: Operation, version: int) -> bytes:
    keys = operation.key if version == 1 else (stored_key(operation.key),)
    fields: list[Field] = [(2, key) for key in keys]
    if operation.content is None:
        return message((1, 1), *fields)
    content = operation.content
    document = content if isinstance(content, dict) else content_json(content)
    return message((1, 0), *fields, (3, document["id"]), (4, 1), (5, json.dumps(document)))


def commit_of(commit: Commit, version: int) -> bytes:
    fields: list[Field] = [(1, bytes.fromhex(commit.id)), (2, 7)]
    fields += [(3, bytes.fromhex(commit.parents[0]))]
    fields += [(4, bytes.fromhex(parent)) for parent in commit.parents[1:]]
    fields += [(6, operation_of(operation, version)) for operation in commit.operations]
    fields += [(6, message((1, 0), (2, key), (4, 1))) for key in commit.raw_keys]
    fields += [(7, commit.time)]
    if version == 1:
        headers = commit.headers
        meta = {
            "message": commit.message,
            "author": next(iter(headers.get("author", [])), None),
            "committer": next(iter(headers.get("committer", [])), None),
            "signedOffBy": next(iter(headers.get("signed-off-by", [])), None),
            "commitTime": next(iter(headers.get("date", [])), None),
            "authorTime": next(iter(headers.get("author-date", [])), None),
            "properties": {},
        }
        fields += [(5, json.dumps(meta))]
    else:
        fields += [(8, commit.message)]
        fields += [
            (9, message((1, name), *((2, value) for value in values)))
            for name, values in commit.headers.items()
        ]
    return message(*fields)


def reference_of(reference: Reference, version: int) -> bytes:
    is_tag = reference.type is ReferenceType.TAG
    target = bytes.fromhex(reference.hash)
    if version == 1:
        return message((1, int(is_tag)), (2, reference.name), (3, target))
    prefix = "refs/tags/" if is_tag else "refs/heads/"
    return message((2, prefix + reference.name), (3, target), (5, 1_700_000_000_000_000))


def write_export(
    path: Path,
    commits: Iterable[Commit],
    references: Sequence[Reference],
    *,
    version: int = 3,
    per_file: int = 5,
    default_branch: str = "main",
    announced: int | None = None,
    generic: Sequence[str] = (),
) -> Path:
    """Writes an export: a ZIP if the name ends so, otherwise a folder."""
    encoded = [commit_of(commit, version) for commit in commits]
    files = {
        f"commits-{start // per_file + 1:08}": delimited(encoded[start : start + per_file])
        for start in range(0, len(encoded), per_file)
    }
    names = [(6, name) for name in files]
    stored = [reference_of(reference, version) for reference in references]
    if version > 1:
        # Neither a branch nor a tag.
        stored.append(message((2, "refs/other/x"), (3, bytes(32))))
    files["named-refs-00000001"] = delimited(stored)
    if generic:
        objects = [message((1, b"id"), (2, name), (3, b"data")) for name in generic]
        files["custom-00000001"] = delimited(objects)
        names.append((9, "custom-00000001"))
    files["repository-description"] = message((5, default_branch))
    files["heads-and-forks"] = message((1, bytes(32)), (3, 5))
    files["export-metadata"] = message(
        (1, 1_700_000_000_000),
        (2, version),
        (3, len(stored)),
        (4, len(encoded) if announced is None else announced),
        (5, "named-refs-00000001"),
        *names,
        (7, "0.99.0"),
        (8, len(generic)),
    )
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(name, data)
    else:
        path.mkdir()
        for name, data in files.items():
            (path / name).write_bytes(data)
    return path


# -- of a repository -------------------------------------------------------------------------------


def commits_of(repository: ReadableRepository) -> list[Commit]:
    """Returns all commits that references reach, newest first on each branch."""
    seen: dict[str, LogEntry] = {}
    for reference in repository.references():
        if reference.hash != NO_ANCESTOR:
            for entry in repository.log(reference.hash, operations=True, all_parents=True):
                seen.setdefault(entry.hash, entry)
    return [exported(entry) for entry in seen.values()]


def exported(entry: LogEntry) -> Commit:
    meta = entry.meta
    assert meta.commit_time is not None
    return Commit(
        id=entry.hash,
        parents=meta.parents,
        operations=[
            Operation(op.key.elements, op.content if isinstance(op, Put) else None)
            for op in entry.operations or ()
        ],
        message=meta.message,
        time=(meta.commit_time - EPOCH) // timedelta(microseconds=1),
        headers=headers_of(meta),
    )


def headers_of(meta: CommitMeta) -> dict[str, Sequence[str]]:
    headers: dict[str, Sequence[str]] = {name: list(v) for name, v in meta.properties.items()}
    headers["author"] = list(meta.authors)
    headers["signed-off-by"] = list(meta.signed_off_by)
    headers["committer"] = [meta.committer or ""]
    headers["date"] = [instant(meta.commit_time) or ""]
    headers["author-date"] = [instant(meta.author_time) or ""]
    return headers


def of_key(text: str) -> tuple[str, ...]:
    return ContentKey.parse(text).elements
