"""The details of conflicts, which the wire does not carry, and the commit rules.

A conflict on the wire is a type, a key and a sentence. The contents that were expected, are there
and were proposed, and the commit that changed the key, are read from the server afterwards. So a
conflict looks the same from every source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from nessie_cli.errors import ReferenceConflict
from nessie_cli.kernel.committing import Applied, Batch, apply_batch, parse_content_id
from nessie_cli.kernel.conflicts import commit_message, describe
from nessie_cli.kernel.edit import build
from nessie_cli.kernel.forms import Id
from nessie_cli.kernel.keys import decode_key, encode_key
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    Conflict,
    ConflictType,
    Content,
    ContentKey,
    Delete,
    KeyRange,
    Namespace,
    Operation,
    Put,
)
from nessie_cli.repository.remote import references
from nessie_cli.repository.remote.contents import contents, entries
from nessie_cli.repository.remote.key_history import last_changes
from nessie_cli.repository.remote.session import Session

State = Mapping[ContentKey, Content]
Changes = Mapping[ContentKey, CommitMeta]


def with_details(
    conflicts: Iterable[Conflict],
    expected: State,
    actual: State,
    proposed: State,
    changed_by: Changes,
) -> tuple[Conflict, ...]:
    """The conflicts with their contents and changes.

    Renamed contents are under the keys that they have now.
    """

    def completed(conflict: Conflict, key: ContentKey) -> Conflict:
        here = conflict.target_rename.new if conflict.target_rename else key
        wanted = conflict.source_rename.new if conflict.source_rename else key
        return structs.replace(
            conflict,
            expected=expected.get(key),
            actual=actual.get(here),
            proposed=proposed.get(wanted),
            changed_by=changed_by.get(key),
        )

    return tuple(
        conflict if conflict.key is None else completed(conflict, conflict.key)
        for conflict in conflicts
    )


def with_namespaces(
    conflicts: Iterable[Conflict], actual: State, changed_by: Changes
) -> tuple[Conflict, ...]:
    """Adds the current contents to conflicts of namespaces, which have no proposed content."""

    def completed(conflict: Conflict, key: ContentKey) -> Conflict:
        current = actual.get(key)
        expected = current if conflict.type is ConflictType.NAMESPACE_NOT_EMPTY else None
        return structs.replace(
            conflict, expected=expected, actual=current, changed_by=changed_by.get(key)
        )

    return tuple(
        conflict if conflict.key is None else completed(conflict, conflict.key)
        for conflict in conflicts
    )


def keys_of(conflicts: Iterable[Conflict]) -> list[ContentKey]:
    """The keys of conflicts, and those that contents were renamed to."""
    found: dict[ContentKey, None] = {}
    for conflict in conflicts:
        renames = (conflict.source_rename, conflict.target_rename)
        found |= dict.fromkeys(
            key
            for key in (conflict.key, *(rename.new for rename in renames if rename))
            if key is not None
        )
    return list(found)


def changes_since(
    session: Session, keys: Iterable[ContentKey], since: str | None, head: str, now: State
) -> Changes:
    """The newest commit that changed each key.

    A search begins with the commits since `since`, where most conflicts come from.
    """
    wanted = set(keys)
    if session.server.extensions or since in (None, NO_ANCESTOR):
        return last_changes(session, head, wanted)
    found = last_changes(session, head, wanted, since=since)
    older = [key for key in wanted if key not in found and key in now]
    return found | last_changes(session, head, older)


def diagnosed(
    session: Session,
    conflict: ReferenceConflict,
    branch: str,
    operations: Sequence[Operation],
    expected: str | None,
) -> ReferenceConflict:
    """The conflict of a commit with its details, which a check against the current HEAD gives."""
    if not conflict.conflicts:
        return conflict
    head = references.get(session, branch).hash
    expected = expected or head
    _, conflicts, message = check_commit(session, operations, expected, head)
    if not conflicts:
        message, conflicts = (
            conflict.message,
            _with_states(session, conflict, operations, expected, head),
        )
    return ReferenceConflict(
        message, conflicts, reference=branch, head=head, expected_hash=expected
    )


def _with_states(
    session: Session,
    conflict: ReferenceConflict,
    operations: Sequence[Operation],
    expected: str,
    head: str,
) -> tuple[Conflict, ...]:
    keys = [found.key for found in conflict.conflicts if found.key is not None]
    before, now = contents(session, expected, keys), contents(session, head, keys)
    proposed = {
        operation.key: operation.content for operation in operations if isinstance(operation, Put)
    }
    return with_details(
        conflict.conflicts, before, now, proposed, changes_since(session, keys, expected, head, now)
    )


# -- the commit rules ----------------------------------------------------------------------------


class Checked(NamedTuple):
    """The outcome of the commit rules: the changes, or the conflicts with their details."""

    applied: Applied
    conflicts: tuple[Conflict, ...]
    message: str


def check_commit(
    session: Session, operations: Sequence[Operation], expected: str, head: str
) -> Checked:
    """Apply the kernel's commit rules to those keys of the server's states that matter."""
    objects = Objects(lambda _: {})
    keys = {key for operation in operations for key in _with_ancestors(operation.key)}
    at_head = contents(session, head, keys)
    at_expected = at_head if expected == head else contents(session, expected, keys)
    head_root = _root(objects, {**at_head, **_children(session, operations, at_head, head)})
    applied = apply_batch(
        objects,
        Batch(objects, operations),
        _root(objects, at_expected),
        head_root,
        lambda _: session.context.new_content_id(),
    )
    changes = changes_since(
        session,
        [decode_key(conflict.key) for conflict in applied.conflicts],
        expected,
        head,
        at_head,
    )

    def changed_by(key: bytes) -> CommitMeta | None:
        return changes.get(decode_key(key))

    conflicts = describe(objects, applied.conflicts, changed_by, changed_by)
    return Checked(applied, conflicts, commit_message(conflicts) if conflicts else "")


def _children(
    session: Session, operations: Sequence[Operation], at_head: State, head: str
) -> dict[ContentKey, Content]:
    """The contents below the namespaces that are deleted: there must be none."""
    found: dict[ContentKey, Content] = {}
    for operation in operations:
        if isinstance(operation, Delete) and isinstance(at_head.get(operation.key), Namespace):
            below = entries(session, head, KeyRange(prefix=operation.key), content=True)
            found |= {entry.key: entry.content for entry in below if entry.content is not None}
    return found


def _root(objects: Objects, state: State) -> Id:
    items = [
        (encode_key(key), objects.add_content(content, parse_content_id(content.id or "")))
        for key, content in state.items()
    ]
    return build(objects, sorted(items))


def _with_ancestors(key: ContentKey) -> Iterator[ContentKey]:
    for length in range(1, len(key.elements) + 1):
        yield ContentKey(key.elements[:length])
