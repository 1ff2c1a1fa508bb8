"""How options name contents: by a key, by a content id, or by a commit and a content id."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import NamedTuple

from nessie_cli.errors import InvalidInput
from nessie_cli.inspection.text import short_hash
from nessie_cli.model import Conflict, ConflictType, ContentKey

_CONTENT_ID = re.compile(r"(?:([0-9a-f]{8,64}):)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


class ContentName(NamedTuple):
    """A key, or a content id if the key names two contents in conflict.

    `commit` is the abbreviated hash of the transplanted commit, if the content is meant in that
    commit only.
    """

    key: ContentKey
    content_id: str | None = None
    commit: str | None = None

    def __str__(self) -> str:
        """Returns the text of an option."""
        if self.content_id:
            return f"{self.commit}:{self.content_id}" if self.commit else self.content_id
        text = str(self.key)
        return f'"{text}"' if _CONTENT_ID.fullmatch(text) else text

    @classmethod
    def parse(cls, text: str) -> ContentName:
        """Reads a name. A key that looks like a content id must be quoted: `"8f31..."`."""
        if match := _CONTENT_ID.fullmatch(text):
            commit, content_id = match.groups()
            return cls(ContentKey((content_id,)), content_id, commit)
        return cls(ContentKey.parse(text))

    @classmethod
    def of(cls, conflict: Conflict) -> ContentName | None:
        """Returns the name that decides a conflict, or None if it is not about a key."""
        if conflict.key is None:
            return None
        if not conflict.is_ambiguous:
            return cls(conflict.key)
        commit = short_hash(conflict.commit) if conflict.commit else None
        return cls(conflict.key, conflict.content_id, commit)

    def decides(self, conflict: Conflict) -> bool:
        """Returns whether a decision with this name is about a conflict."""
        if self.content_id is None:
            # The content that deletes or displaces the namespace can have other keys.
            is_needed = conflict.type is ConflictType.NAMESPACE_NOT_EMPTY
            keys = (conflict.base_key, conflict.theirs_key, conflict.value_key)
            others = keys if is_needed else ()
            return self.key in (conflict.key, *others)
        is_there = self.commit is None or (conflict.commit or "").startswith(self.commit)
        return self.content_id == conflict.content_id and is_there


def key_and_file(text: str) -> tuple[ContentKey, str]:
    """Splits `KEY=FILE`."""
    if (pair := key_and_value(text)) is not None:
        return pair
    raise InvalidInput(f"--resolve {text!r}: write KEY=FILE, a file with the content as REST JSON")


def key_and_value(text: str) -> tuple[ContentKey, str] | None:
    """Splits a key, `=` and a value. Returns None if the text is something else.

    A quoted key may contain a `=`, so the first one after a whole key counts.
    """
    for position in (i for i, char in enumerate(text) if char == "="):
        with suppress(InvalidInput):
            key = ContentKey.parse(text[:position])
            if text[position + 1 :]:
                return key, text[position + 1 :]
    return None
