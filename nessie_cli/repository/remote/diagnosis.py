"""What the wire has no place for: the facts of a conflict, fetched; and the kernel's rules, judged here for a server that dropped some.

A conflict on the wire is a type, a key and a sentence. The contents that were expected, are there and were proposed, and the commit that changed
the key, are read from the server afterwards, so a conflict looks the same whoever found it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import structs

from nessie_cli.kernel.committing import Applied, Batch, apply_batch, parse_content_id
from nessie_cli.kernel.conflicts import commit_message, describe
from nessie_cli.kernel.edit import build
from nessie_cli.kernel.forms import Id
from nessie_cli.kernel.keys import decode_key, encode_key
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import CommitMeta, Conflict, ConflictType, Content, ContentKey, Delete, KeyRange, Namespace, Operation
from nessie_cli.repository.remote.history import at_hash
from nessie_cli.repository.remote.reading import RemoteReading

State = Mapping[ContentKey, Content]
Changes = Mapping[ContentKey, CommitMeta]


def with_facts(conflicts: Iterable[Conflict], expected: State, actual: State, proposed: State, changed_by: Changes) -> tuple[Conflict, ...]:
    """The conflicts of an answer, with the contents of both states and what was wanted; of renamed contents under the keys that they have now."""

    def completed(conflict: Conflict, key: ContentKey) -> Conflict:
        here = conflict.target_rename.new if conflict.target_rename else key
        wanted = conflict.source_rename.new if conflict.source_rename else key
        return structs.replace(
            conflict, expected=expected.get(key), actual=actual.get(here), proposed=proposed.get(wanted), changed_by=changed_by.get(key)
        )

    return tuple(conflict if conflict.key is None else completed(conflict, conflict.key) for conflict in conflicts)


def with_namespaces(conflicts: Iterable[Conflict], actual: State, changed_by: Changes) -> tuple[Conflict, ...]:
    """The conflicts of namespaces, which are about what is there: nobody proposes anything for their keys."""

    def completed(conflict: Conflict, key: ContentKey) -> Conflict:
        there = actual.get(key)
        expected = there if conflict.type is ConflictType.NAMESPACE_NOT_EMPTY else None
        return structs.replace(conflict, expected=expected, actual=there, changed_by=changed_by.get(key))

    return tuple(conflict if conflict.key is None else completed(conflict, conflict.key) for conflict in conflicts)


def keys_of(conflicts: Iterable[Conflict]) -> list[ContentKey]:
    """The keys that conflicts are about, those that contents were renamed to included."""
    found: dict[ContentKey, None] = {}
    for conflict in conflicts:
        renames = (conflict.source_rename, conflict.target_rename)
        found |= dict.fromkeys(key for key in (conflict.key, *(rename.new for rename in renames if rename)) if key is not None)
    return list(found)


class Judgement:
    """The kernel's commit rules over the few keys of a server's states that a batch of operations meets."""

    def __init__(self, repository: RemoteReading, operations: Sequence[Operation], expected: str, head: str) -> None:
        self._repository = repository
        self._operations = operations
        self._objects = Objects(lambda _: {})
        self._head = head
        keys = {key for operation in operations for key in _with_ancestors(operation.key)}
        self._at_head = repository.contents(at_hash(head), keys)
        self._at_expected = self._at_head if expected == head else repository.contents(at_hash(expected), keys)

    def judge(self, new_id: Callable[[], bytes]) -> tuple[Applied, tuple[Conflict, ...], str]:
        """What the rules make of the operations: their outcome, the conflicts with their facts, and the message of these."""
        batch = Batch(self._objects, self._operations)
        head_root = self._root({**self._at_head, **self._children()})
        applied = apply_batch(self._objects, batch, self._root(self._at_expected), head_root, lambda _: new_id())
        changes = self._repository.last_changes(self._head, [decode_key(conflict.key) for conflict in applied.conflicts])

        def changed_by(key: bytes) -> CommitMeta | None:
            return changes.get(decode_key(key))

        described = describe(self._objects, applied.conflicts, changed_by, changed_by)
        return applied, described, commit_message(described) if described else ""

    def _children(self) -> dict[ContentKey, Content]:
        """What lies below the namespaces that are deleted: they have to be empty."""
        found: dict[ContentKey, Content] = {}
        for operation in self._operations:
            if isinstance(operation, Delete) and isinstance(self._at_head.get(operation.key), Namespace):
                below = self._repository.entries(at_hash(self._head), KeyRange(prefix=operation.key), content=True)
                found |= {entry.key: entry.content for entry in below if entry.content is not None}
        return found

    def _root(self, state: State) -> Id:
        items = [(encode_key(key), self._objects.add_content(content, parse_content_id(content.id or ""))) for key, content in state.items()]
        return build(self._objects, sorted(items))


def _with_ancestors(key: ContentKey) -> Iterator[ContentKey]:
    for length in range(1, len(key.elements) + 1):
        yield ContentKey(key.elements[:length])
