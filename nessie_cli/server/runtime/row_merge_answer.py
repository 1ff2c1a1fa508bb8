"""The answer of a process that merges the rows of tables: results, and the new files.

A length of eight bytes, JSON of the results, and the bytes of the files, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

from msgspec import Struct, json

from nessie_cli.errors import InvalidInput
from nessie_cli.model import CombinedTable, IcebergTable, TableCombination
from nessie_cli.server.runtime.row_request import TableRows
from nessie_cli.wire.rows import FAULT, ROWS, frames

_DIGEST_BYTES = 8
_LENGTH = 8


class ShownConflict(Struct, frozen=True):
    """A row or cell in conflict as texts, and its digest.

    `key` are the columns of the key with their values. A conflict about a whole row has no
    `column`: the states are then those of the columns that differ, None for a row that is absent.
    """

    digest: str
    key: Sequence[tuple[str, str]]
    column: str | None
    base: str | None
    ours: str | None
    theirs: str | None


class RowMerge(Struct, frozen=True, kw_only=True):
    """The merge of the rows of one table, as far as it was requested.

    `bytes` are those of the data files that are read, None if the rows cannot be merged at all, and
    at most about `new_bytes` are written. `conflicts` are the first ones before any decision, and
    `more` is the number of all others, at least if it `is_least`. `outdated` counts decisions about
    what is not in conflict. `reason` says why the rows do not merge, and `is_final` whether they
    never will with these decisions: neither a limit nor a file that cannot be read is the reason.
    If they do, `content` is the merged table, and `files` are the locations and sizes of its new
    files, the metadata file last.
    """

    bytes: int | None
    new_bytes: int = 0
    conflicts: Sequence[ShownConflict] = ()
    more: int = 0
    is_least: bool = False
    outdated: int = 0
    reason: str = ""
    is_final: bool = True
    content: IcebergTable | None = None
    combination: TableCombination | None = None
    files: Sequence[tuple[str, int]] = ()


class MergedRows(NamedTuple):
    """The merge of the rows of one table, and its new files by their locations.

    `states` are its base, ours and theirs.
    """

    states: tuple[IcebergTable, IcebergTable, IcebergTable]
    merge: RowMerge
    files: Sequence[tuple[str, bytes]]

    @property
    def metadata(self) -> tuple[bytes, str]:
        """The text of the new metadata file, and its location."""
        location, data = self.files[-1]
        return data, location

    @property
    def table(self) -> CombinedTable:
        """The merged table."""
        return CombinedTable(self.merge.content, self.merge.combination)


def row_digest(key: str, column: str | None) -> str:
    """Returns what stands for a row or cell in the names of fields, which the log may contain.

    `key` is the text of the row's key (`row_key_text`).
    """
    return blake2b(json.encode((key, column)), digest_size=_DIGEST_BYTES).hexdigest()


def encode_merges(merges: Sequence[RowMerge], files: Sequence[bytes]) -> bytes:
    """Returns the answer with some results, and the bytes of their files in order."""
    text = json.encode(merges)
    return b"".join((len(text).to_bytes(_LENGTH), text, *files))


def decode_merges(data: bytes, tables: Sequence[TableRows]) -> list[MergedRows]:
    """Returns the results for some tables in the frames of a process.

    Raises `InvalidInput` with the reason if it has failed.
    """
    received = bytearray()
    try:
        for frame in frames(data):
            if frame.kind == FAULT:
                raise InvalidInput(json.decode(frame.content)["message"])
            if frame.kind == ROWS:
                received += frame.content
    except ValueError:
        raise InvalidInput("the process that merges rows has sent no answer") from None
    stream = memoryview(received)
    place = _LENGTH + int.from_bytes(stream[:_LENGTH])
    merged = []
    merges = json.decode(stream[_LENGTH:place], type=list[RowMerge])
    for table, merge in zip(tables, merges, strict=True):
        files = []
        for location, size in merge.files:
            files.append((location, bytes(stream[place : place + size])))
            place += size
        merged.append(MergedRows((table.base, table.ours, table.theirs), merge, files))
    return merged
