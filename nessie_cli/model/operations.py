"""Operations: what one commit does to single keys."""

from __future__ import annotations

from msgspec import Struct

from nessie_cli.model.contents import Content
from nessie_cli.model.keys import ContentKey


class Put(Struct, frozen=True, gc=False):
    """Create or update the content of a key.

    A new content carries no id (the repository gives one); an update carries the id it has.
    `expected_content`, where given, is compared with the state at HEAD, and a difference is a
    VALUE_DIFFERS conflict. With `expected_content`, a Put with a different content id drops the old
    content and creates a new one under the same key.
    """

    key: ContentKey
    content: Content
    expected_content: Content | None = None


class Delete(Struct, frozen=True, gc=False):
    """Remove the content of a key."""

    key: ContentKey


class Unchanged(Struct, frozen=True, gc=False):
    """Demand that a key exists and was not changed since the expected hash.

    Never stored. Wire name `UNCHANGED`.
    """

    key: ContentKey


Operation = Put | Delete | Unchanged
