"""Who may change what: a judge is asked about each key before a commit, merge or transplant is written, and again with each new attempt.

It is asked with what is really written, found under the HEAD that it is written on: whoever judges beforehand judges another state.
"""

# No postponed annotations here: those of a NamedTuple's fields would be compiled at each start.
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, Self, runtime_checkable

from nessie_cli.kernel import tree
from nessie_cli.kernel.commits import is_deletion
from nessie_cli.kernel.forms import Id, content_id_of, type_name
from nessie_cli.kernel.keys import decode_key
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import ContentKey


class KeyChange(NamedTuple):
    """One key that is written: the type of the content there, of the one that takes its place (None: none), and whether both are one content."""

    key: ContentKey
    before: str | None
    after: str | None
    same: bool


Judge = Callable[[str, Sequence[KeyChange]], None]
"""Asked with the branch's name and the changes; raises what the caller is to be told when something of it is not allowed."""


@runtime_checkable
class Acting(Protocol):
    """A repository that can write in somebody's name."""

    def acting_as(self, who: str, judge: Judge | None = None) -> Self:
        """The same repository, over the same store, whose writes are committed by `who` and allowed by `judge`."""


def ask(judge: Judge | None, objects: Objects, branch: str, root: Id, edits: Mapping[bytes, bytes | None]) -> None:
    """Ask the judge, if there is one, about edits of a tree; conflicts among them or not. O(edits · log keys)."""
    if judge is None:
        return
    before = tree.get(objects, root, edits)
    judge(branch, [_change(objects, key, before.get(key), record) for key, record in edits.items()])


def _change(objects: Objects, key: bytes, before: bytes | None, after: bytes | None) -> KeyChange:
    after = None if after is not None and is_deletion(after) else after
    same = before is not None and after is not None and content_id_of(before) == content_id_of(after)
    return KeyChange(decode_key(key), _type(objects, before), _type(objects, after), same)


def _type(objects: Objects, record: bytes | None) -> str | None:
    return None if record is None else type_name(record, lambda: objects.contents([record])[0])
