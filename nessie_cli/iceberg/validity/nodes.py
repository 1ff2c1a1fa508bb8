"""Values of a JSON document that know their place in it, for errors that name the place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder.values import INT32, INT64

_PLAIN = re.compile(r"[\w-]{1,64}", re.ASCII)
_LONGEST_NAME = 64


class DocumentNode:
    """A value of a document.

    Its methods return the value as a type, or raise `InvalidInput` that names the place, such as
    `schemas[0].fields[2].id`.
    """

    __slots__ = ("_name", "_parent", "value")

    def __init__(
        self, value: Any, name: str | int = "", parent: DocumentNode | None = None
    ) -> None:
        self.value = value
        self._name = name
        self._parent = parent

    @property
    def name(self) -> str:
        """The name of a member, or the number of an item."""
        return str(self._name)

    @property
    def place(self) -> str:
        """The path from the root; empty for the root itself."""
        if self._parent is None:
            return ""
        around = self._parent.place
        if isinstance(self._name, int):
            return f"{around}[{self._name}]"
        if _PLAIN.fullmatch(self._name):
            return f"{around}.{self._name}" if around else self._name
        return f"{around}[{json.dumps(self._name[:_LONGEST_NAME])}]"

    def refuse(self, why: str) -> NoReturn:
        """Raises `InvalidInput`."""
        raise InvalidInput(f"not valid Iceberg metadata: {self.place} {why}")

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Adds the place to errors that do not name it."""
        try:
            yield
        except InvalidInput as error:
            raise InvalidInput(
                f"not valid Iceberg metadata: {self.place}: {error.message}"
            ) from None

    # -- members -----------------------------------------------------------------------------------

    def need(self, name: str) -> DocumentNode:
        """Returns a member of an object, which must exist."""
        member = self.find(name)
        if member is None:
            DocumentNode(None, name, self).refuse("is missing")
        return member

    def find(self, name: str) -> DocumentNode | None:
        """Returns a member of an object, None if it does not exist."""
        members = self.object()
        return DocumentNode(members[name], name, self) if name in members else None

    def given(self, name: str) -> DocumentNode | None:
        """Returns a member of an object, None if it does not exist or is null."""
        member = self.find(name)
        return None if member is None or member.value is None else member

    def members(self) -> list[DocumentNode]:
        """Returns the members of an object."""
        return [DocumentNode(value, name, self) for name, value in self.object().items()]

    def items(self) -> list[DocumentNode]:
        """Returns the items of a list."""
        if not isinstance(self.value, list):
            self.refuse("is not a list")
        return [DocumentNode(value, number, self) for number, value in enumerate(self.value)]

    # -- types -------------------------------------------------------------------------------------

    def object(self) -> dict[str, Any]:
        """Returns an object."""
        if not isinstance(self.value, dict):
            self.refuse("is not an object")
        return self.value

    def text(self) -> str:
        """Returns a string."""
        if not isinstance(self.value, str):
            self.refuse("is not a string")
        return self.value

    def boolean(self) -> bool:
        """Returns true or false."""
        if not isinstance(self.value, bool):
            self.refuse("is not true or false")
        return self.value

    def integer(self, among: range = INT32) -> int:
        """Returns an integer of 32 bits, or of another range."""
        value = self.value
        if not isinstance(value, int) or isinstance(value, bool):
            self.refuse("is not an integer")
        if value not in among:
            self.refuse(f"is beyond {among.stop.bit_length()} bits")
        return value

    def long(self) -> int:
        """Returns an integer of 64 bits."""
        return self.integer(INT64)

    def text_map(self) -> None:
        """Checks that all members of an object are strings."""
        for member in self.members():
            member.text()


def check_unique(nodes: list[DocumentNode], ids: list[Any]) -> None:
    """Refuses the first node whose id another one has."""
    seen = set()
    for node, id_ in zip(nodes, ids, strict=True):
        if id_ in seen:
            node.refuse(f"has the same id as another one, {id_}")
        seen.add(id_)
