"""Schemas, partition specs, sort orders and view versions: by id, and by what they define."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from msgspec import json

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder.document import by_id
from nessie_cli.iceberg.builder.values import Document

_encode = json.Encoder(order="sorted").encode


class Definitions:
    """Documents with ids, in order.

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
