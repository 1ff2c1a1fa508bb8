"""How options name contents: by a key, or by a content id."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import NamedTuple

from nessie_cli.errors import InvalidInput
from nessie_cli.model import Conflict, ContentKey

_CONTENT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class ContentName(NamedTuple):
    """A key, or a content id if the key names two contents in conflict."""

    key: ContentKey
    content_id: str | None = None

    def __str__(self) -> str:
        """Returns the text of an option."""
        if self.content_id:
            return self.content_id
        text = str(self.key)
        return f'"{text}"' if _CONTENT_ID.fullmatch(text) else text

    @classmethod
    def parse(cls, text: str) -> ContentName:
        """Reads a name. A key that looks like a content id must be quoted: `"8f31..."`."""
        if _CONTENT_ID.fullmatch(text):
            return cls(ContentKey((text,)), text)
        return cls(ContentKey.parse(text))

    @classmethod
    def of(cls, conflict: Conflict) -> ContentName | None:
        """Returns the name that decides a conflict, or None if it is not about a key."""
        if conflict.key is None:
            return None
        return cls(conflict.key, conflict.content_id if conflict.is_ambiguous else None)


def key_and_file(text: str) -> tuple[ContentKey, str]:
    """Splits `KEY=FILE`.

    A quoted key may contain a `=`, so the first one after a whole key counts.
    """
    for position in (i for i, char in enumerate(text) if char == "="):
        with suppress(InvalidInput):
            key = ContentKey.parse(text[:position])
            if text[position + 1 :]:
                return key, text[position + 1 :]
    raise InvalidInput(f"--resolve {text!r}: write KEY=FILE, a file with the content as REST JSON")
