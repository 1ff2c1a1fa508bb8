"""Operations: what one commit does to single keys."""

from __future__ import annotations

from msgspec import Struct

from nessie_cli.model.contents import Content
from nessie_cli.model.keys import ContentKey


class RestoredFrom(Struct, frozen=True, gc=False):
    """Where a deleted content was: the hash of a commit, and the key that it had there."""

    hash: str
    key: ContentKey


class Put(Struct, frozen=True, gc=False):
    """Create or update the content of a key.

    A new content has no id (the repository assigns one); an update has the id of the content that
    it replaces. If `expected_content` is given, it is compared with the content at HEAD, and a
    difference is a conflict: VALUE_DIFFERS if the id and type are equal. A Put can also take over
    the id of a content that leaves another key in the same commit: a rename. If its own key has a
    content, that one leaves as well, and the Put must name it as `expected_content`.

    With `restored_from`, a Put brings a deleted content back under its id: it is the same content
    as before. If that content has another key at HEAD, this is a conflict.
    """

    key: ContentKey
    content: Content
    expected_content: Content | None = None
    restored_from: RestoredFrom | None = None


class Delete(Struct, frozen=True, gc=False):
    """Remove the content of a key."""

    key: ContentKey


class Unchanged(Struct, frozen=True, gc=False):
    """Require that a key exists and has not changed since the expected hash.

    Not stored in the commit. Wire name `UNCHANGED`.
    """

    key: ContentKey


Operation = Put | Delete | Unchanged
