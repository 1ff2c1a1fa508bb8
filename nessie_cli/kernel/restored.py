"""Deleted contents that a commit brings back under their ids.

A Put names a commit in which the content had a key. A content that still has this key at HEAD is
found there. Any other one is in a part of HEAD that the named commit does not have. So only these
parts are searched, each once, for the contents of all Puts together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from nessie_cli.errors import InvalidInput
from nessie_cli.kernel import tree
from nessie_cli.kernel.forms import Id, content_id_of, decode_key, format_content_id
from nessie_cli.kernel.objects import Objects

MOST_COMPARED = 16
"""The most states that HEAD is compared with. Otherwise all keys at HEAD are searched."""


class Origin(NamedTuple):
    """Where a deleted content was: a commit, and the encoded key that it had there."""

    commit: Id
    key: bytes


class RestoredContents:
    """The present keys of restored contents at HEAD, given by its root.

    O(keys that differ between HEAD and any of the origins · log keys), but at most O(keys at HEAD),
    however many commits are named.
    """

    def __init__(
        self, objects: Objects, head: Id, origins: Collection[tuple[bytes, Origin]]
    ) -> None:
        """`origins` has the content id and the origin of each restored content."""
        self._objects = objects
        commits = objects.find_commits(list({origin.commit for _, origin in origins}))
        self._roots = {id_: commit.root for id_, commit in commits.items()}
        states = set(self._roots.values())
        ids = {content_id for content_id, _ in origins}
        at_origins = tree.get(objects, head, {origin.key for _, origin in origins})
        self._keys = {content_id_of(record): key for key, record in at_origins.items()}
        for leaf in tree.new_leaves(
            objects, states if len(states) <= MOST_COMPARED else [tree.EMPTY], head
        ):
            for index, key in enumerate(leaf.keys):
                content_id = content_id_of(leaf.slice(index))
                if content_id in ids:
                    self._keys[content_id] = key

    def key_at_head(
        self,
        key: bytes,
        record: bytes,
        origin: Origin,
        is_same_type: Callable[[bytes, bytes], bool],
    ) -> bytes | None:
        """Returns the key of the content of a record at HEAD, or None if it has none.

        Raises `InvalidInput` for the key if the content has not been at its origin. O(log keys).
        """
        root = self._roots.get(origin.commit)
        if root is None:
            raise InvalidInput(
                f"Key '{_plain(key)}' cannot be restored: could not find commit"
                f" '{origin.commit.hex()}'"
            )
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
        return self._keys.get(content_id)


def _plain(key: bytes) -> str:
    return decode_key(key).plain
