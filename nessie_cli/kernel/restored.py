"""Deleted contents that a commit brings back under their ids.

A Put names a commit in which the content had a key. So its present key is found in the difference
between that commit and HEAD: a content that is not in it still has the key that it had there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from nessie_cli.errors import InvalidInput
from nessie_cli.kernel import tree
from nessie_cli.kernel.commits import root_of
from nessie_cli.kernel.forms import Id, content_id_of, format_content_id
from nessie_cli.kernel.keys import decode_key, encode_key
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import Put

_HASH = re.compile(r"[0-9a-fA-F]{64}")


class Origin(NamedTuple):
    """Where a deleted content was: a commit, and the encoded key that it had there."""

    commit: Id
    key: bytes


def origin_of(put: Put) -> Origin | None:
    """Returns where the content of a Put was, if the Put restores it."""
    place = put.restored_from
    if place is None:
        return None
    if put.content.id is None:
        raise InvalidInput(f"Restored content of key '{put.key.plain}' must have a content ID")
    if not _HASH.fullmatch(place.hash):
        raise InvalidInput(f"Key '{put.key.plain}' is restored from '{place.hash}', not a hash")
    return Origin(bytes.fromhex(place.hash), encode_key(place.key))


class RestoredContents:
    """Finds the present keys of contents at HEAD, given by its root."""

    def __init__(self, objects: Objects, head: Id) -> None:
        self._objects = objects
        self._head = head
        self._keys_since: dict[Id, dict[bytes, bytes]] = {}

    def key_at_head(
        self,
        key: bytes,
        record: bytes,
        origin: Origin,
        is_same_type: Callable[[bytes, bytes], bool],
    ) -> bytes | None:
        """Returns the key of the content of a record at HEAD, or None if it has none.

        Raises `InvalidInput` for the key if the content has not been at its origin. O(keys that
        differ between the origin and HEAD · log keys), once for each commit.
        """
        root = self._root_of(key, origin)
        content_id = content_id_of(record)
        earlier = tree.get(self._objects, root, [origin.key]).get(origin.key)
        if (
            earlier is None
            or content_id_of(earlier) != content_id
            or not is_same_type(record, earlier)
        ):
            raise InvalidInput(
                f"Key '{_plain(key)}' cannot be restored: key '{_plain(origin.key)}' in commit"
                f" '{origin.commit.hex()}' has no content of this type with content ID"
                f" {format_content_id(content_id)}"
            )
        if root not in self._keys_since:
            self._keys_since[root] = {
                content_id_of(after): changed
                for changed, _, after in tree.diff(self._objects, root, self._head)
                if after is not None
            }
        if (other := self._keys_since[root].get(content_id)) is not None:
            return other
        present = tree.get(self._objects, self._head, [origin.key]).get(origin.key)
        is_there = present is not None and content_id_of(present) == content_id
        return origin.key if is_there else None

    def _root_of(self, key: bytes, origin: Origin) -> Id:
        if self._objects.find_commit(origin.commit) is None:
            raise InvalidInput(
                f"Key '{_plain(key)}' cannot be restored: could not find commit"
                f" '{origin.commit.hex()}'"
            )
        return root_of(self._objects, origin.commit)


def _plain(key: bytes) -> str:
    return decode_key(key).plain
