"""The restoration of contents, and the contents that are in the way.

A content is found by its id. If it has another key now, its rename is undone, so it never has two
keys. Staged operations count as part of the branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nessie_cli.model import Content, ContentKey, RestoredFrom
from nessie_cli.repository.edits import Edit, is_same, operations_for
from nessie_cli.repository.recreated import refuse_second_entries
from nessie_cli.revisions import Revision
from nessie_cli.workspace.batch import Staged
from nessie_cli.workspace.staging import StagedList, overlaid, renames

if TYPE_CHECKING:
    from nessie_cli.repository.base import Repository

State = dict[ContentKey, Content]
Edits = dict[ContentKey, Content | None]


def staged_edits(edits: Iterable[Edit]) -> StagedList:
    """Returns edits as staged operations."""
    return tuple(Staged(edit.operation, edit.before) for edit in edits)


class Restoration(NamedTuple):
    """The staged operations after a restoration, and the keys that it changes.

    `blocked` are the keys of contents that are in the way: the restoration would delete them.
    `replaced` are the keys of contents that it replaces.
    """

    staged: StagedList
    keys: tuple[ContentKey, ...]
    blocked: tuple[ContentKey, ...]
    replaced: tuple[ContentKey, ...]


class Restorer:
    """Restores keys from the hash `at`, on the hash `head` of a branch."""

    def __init__(
        self,
        repository: Repository,
        at: str,
        head: str,
        keys: Iterable[ContentKey],
        options: Sequence[str] = (),
    ) -> None:
        self._repository, self._options = repository, options
        self._at, self._head = Revision(None, at), Revision(None, head)
        self._hash = at
        self._keys = dict.fromkeys(keys)
        self.then: State = dict(repository.contents(self._at, self._keys))
        self.now: State = dict(repository.contents(self._head, self._keys))
        self._is_whole = False

    def restored(self, staged: StagedList) -> Restoration:
        """Returns the restoration with these operations staged before."""
        branch = overlaid(self.now, staged)
        if not self._is_whole and any(_differ(self.then.get(k), branch.get(k)) for k in self._keys):
            self._read_moves()
            branch = overlaid(self.now, staged)
        edits = self._edits(branch)
        refuse_second_entries(branch, edits, self._options)
        blocked, replaced = self._in_the_way(edits, branch)
        keys = _with_origins(edits, self.now, staged)
        contents = {key: edits.get(key, branch.get(key)) for key in keys}
        present = self._repository.contents(self._head, keys)
        operations = staged_edits(operations_for(contents, present, self._origins()))
        others = tuple(item for item in staged if item.key not in keys)
        return Restoration((*others, *operations), tuple(keys), blocked, replaced)

    def _origins(self) -> dict[str | None, RestoredFrom]:
        return {content.id: RestoredFrom(self._hash, key) for key, content in self.then.items()}

    def _read_moves(self) -> None:
        """Adds the other keys that differ: those that contents were renamed from or to."""
        for entry in self._repository.diff(self._at, self._head, whole=True):
            if entry.before is not None:
                self.then[entry.key] = entry.before
            if entry.after is not None:
                self.now[entry.key] = entry.after
        self._is_whole = True

    def _edits(self, branch: State) -> Edits:
        """Returns the restored contents by key, and None for the keys that they leave."""
        present, earlier = _keys_of(branch), _keys_of(self.then)
        edits: Edits = {key: self.then.get(key) for key in self._keys}
        for key in self._keys:
            then, now = self.then.get(key), branch.get(key)
            if then is not None:
                edits.setdefault(present.get(then.id, key), None)
            elif now is not None and (old := earlier.get(now.id)) is not None:
                # The content was renamed to this key, so restoring the key undoes the rename.
                edits[old] = self.then[old]
        return edits

    def _in_the_way(
        self, edits: Edits, branch: State
    ) -> tuple[tuple[ContentKey, ...], tuple[ContentKey, ...]]:
        """Returns the keys with contents that are in the way, and those with replaced contents.

        A content that was created since gives way if its key is restored. But if another content
        returns to the key by undoing a rename, both keys of the rename must be restored.
        """
        present, earlier = _keys_of(branch), _keys_of(self.then)
        ids = {content.id for content in edits.values() if content is not None}
        blocked: list[ContentKey] = []
        replaced: list[ContentKey] = []
        for key, content in edits.items():
            now = branch.get(key)
            if content is None or now is None or now.id in ids or is_same(content, now):
                continue
            origin = present.get(content.id, key)
            gives_way = key in self._keys and origin in self._keys and now.id not in earlier
            (replaced if gives_way else blocked).append(key)
        return tuple(blocked), tuple(replaced)


def _differ(then: Content | None, now: Content | None) -> bool:
    """Returns whether a key had another content, or one of the two has none."""
    return (then and then.id) != (now and now.id)


def _keys_of(state: State) -> dict[str | None, ContentKey]:
    """Returns the key of each content id. A staged creation has no id."""
    return {content.id: key for key, content in state.items() if content.id is not None}


def _with_origins(
    edits: Mapping[ContentKey, Content | None], now: State, staged: StagedList
) -> dict[ContentKey, None]:
    """Returns the keys of edits, those that the contents have on HEAD, and staged renames."""
    origins, moved = _keys_of(now), renames(staged).items()
    keys = dict.fromkeys(edits)
    for content in edits.values():
        if content is not None and content.id in origins:
            keys[origins[content.id]] = None
    size = 0
    while size != len(keys):
        size = len(keys)
        for pair in moved:
            if any(key in keys for key in pair):
                keys |= dict.fromkeys(pair)
    return keys
