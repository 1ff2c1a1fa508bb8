"""JSON documents: their members by type, and lists of documents with ids.

An error names the member and what was expected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush, merge
from itertools import chain
from typing import Any

from msgspec import json

from nessie_cli.errors import InvalidInput
from nessie_cli.model.batches import batched

Document = dict[str, Any]
INT32 = range(-(2**31), 2**31)
INT64 = range(-(2**63), 2**63)
MOST_ITEMS = 10_000
"""The most items of a map or list within a view version, a snapshot or statistics.

One call compares versions, and sorts their members for that.
"""

_SORTED = 10_000
"""The most texts that are sorted at once."""

_encode = json.Encoder(order="sorted").encode


def _member(document: Mapping[str, Any], name: str, where: str) -> Any:
    if not isinstance(document, Mapping):
        raise InvalidInput(f"{where}: must be an object")
    value = document.get(name)
    if value is None:
        raise InvalidInput(f"{where}: {name} is missing")
    return value


def text(document: Mapping[str, Any], name: str, where: str) -> str:
    """Returns a member that must be a string."""
    value = _member(document, name, where)
    if not isinstance(value, str):
        raise InvalidInput(f"{where}: {name} must be a string")
    return value


def non_empty_text(document: Mapping[str, Any], name: str) -> str:
    """Returns a member that must be a string with a character or more."""
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{name} must be a non-empty string")
    return value


def integer(document: Mapping[str, Any], name: str, where: str, among: range = INT32) -> int:
    """Returns a member that must be an integer of 32 bits, or of another range."""
    value = _member(document, name, where)
    if isinstance(value, bool) or not isinstance(value, int) or value not in among:
        raise InvalidInput(f"{where}: {name} must be an integer of {among.stop.bit_length()} bits")
    return value


def long(document: Mapping[str, Any], name: str, where: str) -> int:
    """Returns a member that must be an integer of 64 bits."""
    return integer(document, name, where, INT64)


def boolean(document: Mapping[str, Any], name: str, where: str) -> bool:
    """Returns a member that must be true or false."""
    value = _member(document, name, where)
    if not isinstance(value, bool):
        raise InvalidInput(f"{where}: {name} must be true or false")
    return value


def object_(document: Mapping[str, Any], name: str, where: str) -> Document:
    """Returns a member that must be an object."""
    value = _member(document, name, where)
    if not isinstance(value, dict):
        raise InvalidInput(f"{where}: {name} must be an object")
    return value


def objects(document: Mapping[str, Any], name: str, where: str) -> list[Document]:
    """Returns a member that must be a list of objects."""
    value = _member(document, name, where)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise InvalidInput(f"{where}: {name} must be a list of objects")
    return value


def integers(document: Mapping[str, Any], name: str, where: str, among: range = INT32) -> list[int]:
    """Returns a member that must be a list of integers."""
    value = _member(document, name, where)
    if not isinstance(value, list) or not all(
        isinstance(item, int) and not isinstance(item, bool) and item in among for item in value
    ):
        raise InvalidInput(f"{where}: {name} must be a list of integers")
    return value


def texts(document: Mapping[str, Any], name: str, where: str) -> list[str]:
    """Returns a member that must be a list of strings."""
    value = _member(document, name, where)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidInput(f"{where}: {name} must be a list of strings")
    return value


def text_map(document: Mapping[str, Any], name: str, where: str) -> dict[str, str]:
    """Returns a member that must be an object whose members are strings."""
    value = object_(document, name, where)
    if not all(isinstance(item, str) for item in value.values()):
        raise InvalidInput(f"{where}: {name} must hold strings only")
    return value


def check_few(items: Collection[Any], name: str, where: str) -> None:
    """Raises `InvalidInput` for too many items of a summary or of another part of a version."""
    if len(items) > MOST_ITEMS:
        raise InvalidInput(f"{where}: {name} has more than {MOST_ITEMS:,} items")


def in_order(*several: Iterable[str]) -> Iterator[str]:
    """Yields texts in order, each once, by calls that are all short.

    No other thread runs during a sort, so it sorts parts.
    """
    texts = chain(*several)
    parts = map(sorted, batched(texts, _SORTED))
    last = None
    for text_ in merge(*parts):
        if text_ != last:
            yield text_
        last = text_


# -- documents with ids ----------------------------------------------------------------------------


def by_id(documents: Iterable[Document], member: str) -> dict[Any, Document]:
    """Returns documents by a member that is unique among them."""
    return {document[member]: document for document in documents}


def current_schema(document: Document) -> Document:
    """Returns the current schema of a table's metadata."""
    schema: Document = by_id(document["schemas"], "schema-id")[document["current-schema-id"]]
    return schema


def by_snapshot(statistics: Iterable[Document]) -> dict[int, list[Document]]:
    """Returns files of statistics by their snapshot."""
    files: dict[int, list[Document]] = {}
    for file in statistics:
        files.setdefault(file["snapshot-id"], []).append(file)
    return files


class Definitions:
    """Documents with ids, in order: schemas, partition specs, sort orders, view versions.

    Documents are equal if `form` returns the same JSON value for both. An operation costs time for
    its own document only, because one commit may have many of them.
    """

    def __init__(
        self, documents: Iterable[Document], member: str, form: Callable[[Document], Any]
    ) -> None:
        self._member = member
        self._form = form
        self._by_id = by_id(documents, member)
        self._descending = [-id_ for id_ in self._by_id]
        """A heap, which also has ids that were removed."""
        heapify(self._descending)
        self._by_form: dict[bytes, dict[int, None]] | None = None
        """Ids in order. It is made for the first comparison: a large schema takes long."""

    def __len__(self) -> int:
        """How many there are."""
        return len(self._by_id)

    def __iter__(self) -> Iterator[Document]:
        """The documents in order."""
        return iter(self._by_id.values())

    def __contains__(self, id_: int) -> bool:
        """Whether a document has the id."""
        return id_ in self._by_id

    def get(self, id_: int) -> Document | None:
        """Returns the document with an id."""
        return self._by_id.get(id_)

    def id_of(self, document: Document, first: int) -> int:
        """Returns the id of an equal document, otherwise the one above all ids, `first` or more."""
        for id_ in self._ids_by_form().get(self._text(document), ()):
            return id_
        while self._descending and -self._descending[0] not in self._by_id:
            heappop(self._descending)
        return max(first, 1 - self._descending[0]) if self._descending else first

    def add(self, document: Document) -> None:
        """Adds a document with a new id."""
        id_ = document[self._member]
        self._ids_by_form().setdefault(self._text(document), {})[id_] = None
        self._by_id[id_] = document
        heappush(self._descending, -id_)

    def remove(self, ids: Collection[int]) -> None:
        """Removes the documents with these ids."""
        for id_ in ids:
            document = self._by_id.pop(id_, None)
            if document is not None and self._by_form is not None:
                del self._by_form[self._text(document)][id_]

    def _ids_by_form(self) -> dict[bytes, dict[int, None]]:
        if self._by_form is None:
            self._by_form = {}
            for id_, document in self._by_id.items():
                self._by_form.setdefault(self._text(document), {})[id_] = None
        return self._by_form

    def _text(self, document: Document) -> bytes:
        try:
            return _encode(self._form(document))
        except UnicodeEncodeError:
            raise InvalidInput("a text has half of a surrogate pair") from None
