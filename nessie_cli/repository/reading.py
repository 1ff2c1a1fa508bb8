"""The reading methods of the embedded repository."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from nessie_cli.errors import CommitNotFound, InvalidInput
from nessie_cli.kernel import history, tree
from nessie_cli.kernel.commits import (
    IndexLookup,
    commits_of_key,
    from_micros,
    is_deletion,
    meta_of,
    operations_of,
    root_of,
)
from nessie_cli.kernel.forms import (
    NO_COMMIT,
    Id,
    StoredCommit,
    bounds,
    content_id_of,
    decode_key,
    encode_key,
    format_content_id,
    type_name,
    value_id_of,
)
from nessie_cli.kernel.objects import Objects
from nessie_cli.kernel.searching import KeySearch
from nessie_cli.model import (
    NO_ANCESTOR,
    AheadBehind,
    ChangedKey,
    CommitMeta,
    Content,
    ContentKey,
    Delete,
    DiffEntry,
    Entry,
    KeyRange,
    LogEntry,
    Operation,
    Put,
    ReflogEntry,
    ReflogType,
)
from nessie_cli.model.batches import batched
from nessie_cli.model.progress import Progress, with_progress
from nessie_cli.repository.changes import AnyRevision
from nessie_cli.repository.reader import ALL_KEYS
from nessie_cli.repository.requests import values_of
from nessie_cli.store.base import View
from nessie_cli.store.records import ReflogRow

BATCH = 100
"""The number of keys whose contents are fetched together."""

_FIRST = 4


def check_range(keys: KeyRange) -> None:
    """Raises `InvalidInput` for a prefix together with a bound."""
    if keys.prefix is not None and (keys.minimum is not None or keys.maximum is not None):
        raise InvalidInput("Combining prefixKey with either minKey or maxKey is not supported.")


def log_entry(objects: Objects, id_: Id, commit: StoredCommit, *, operations: bool) -> LogEntry:
    """Returns a stored commit as an entry of a log."""
    return LogEntry(
        meta_of(id_, commit), commit.height, _operations(objects, commit) if operations else None
    )


def _operations(objects: Objects, commit: StoredCommit) -> tuple[Operation, ...]:
    """Returns Deletes sorted by key, then Puts sorted by key."""
    stored = operations_of(objects, commit)
    puts = [(key, record) for key, record in stored if not is_deletion(record)]
    contents = objects.contents([record for _, record in puts]) if puts else []
    deletes = [Delete(decode_key(key)) for key, record in stored if is_deletion(record)]
    return (
        *deletes,
        *(Put(decode_key(key), content) for (key, _), content in zip(puts, contents, strict=True)),
    )


def log(
    objects: Objects,
    first: Id,
    last: Id | None,
    *,
    operations: bool,
    all_parents: bool,
    progress: Progress | None,
) -> Iterator[LogEntry]:
    """Yields commits along first parents or all parents, newest first, from `first` to `last`."""
    walk = (
        history.reachable(objects, [first])
        if all_parents
        else history.first_parents(objects, first)
    )
    is_counted = progress is not None and not all_parents and first != NO_COMMIT
    height = objects.commit(first).height if is_counted else None
    for id_, commit in with_progress(walk, progress, height):
        yield log_entry(objects, id_, commit, operations=operations)
        if id_ == last:
            return


def entries(
    objects: Objects,
    commit: Id,
    keys: KeyRange,
    *,
    content: bool,
    progress: Progress | None = None,
) -> Iterator[Entry]:
    """Yields the keys of a commit's state."""
    check_range(keys)
    root = root_of(objects, commit)
    is_counted = progress is not None and keys == ALL_KEYS
    count = tree.count(objects, root) if is_counted else None
    listed = _entries(objects, _items(objects, root, keys), content=content)
    yield from with_progress(listed, progress, count)


def key_finder(
    objects: Objects, text: str, commit_at: Callable[[AnyRevision], Id]
) -> Callable[[AnyRevision], Iterator[Entry]]:
    """Returns a function that yields the entries at a commit whose key contains a text."""
    search = KeySearch(objects, text)
    return lambda at: _entries(
        objects, search.items(root_of(objects, commit_at(at))), content=False
    )


def _entries(
    objects: Objects, items: Iterable[tuple[bytes, bytes]], *, content: bool
) -> Iterator[Entry]:
    # Keys alone are read in small batches first, contents in large ones.
    for batch in batched(items, BATCH, first=None if content else _FIRST):
        values: Iterable[Content | None] = (
            objects.each_content([record for _, record in batch])
            if content
            else [None] * len(batch)
        )
        for (key, record), value in zip(batch, values, strict=True):
            yield Entry(
                key=decode_key(key),
                type=type_name(record, lambda record=record: objects.contents([record])[0]),  # type: ignore[misc]
                content_id=format_content_id(content_id_of(record)),
                value_hash=value_id_of(record).hex(),
                content=value,
            )


def _items(objects: Objects, root: Id, keys: KeyRange) -> Iterable[tuple[bytes, bytes]]:
    start, stop = bounds(keys)
    if keys.keys is None:
        return tree.scan(objects, root, start, stop)
    return sorted(tree.get(objects, root, _single_keys(keys)).items())


def _single_keys(keys: KeyRange) -> set[bytes]:
    start, stop = bounds(keys)
    encoded = {encode_key(key) for key in keys.keys or ()}
    return {key for key in encoded if key >= start and (stop is None or key < stop)}


def divisions(
    objects: Objects, commit: Id, most: int, prefix: ContentKey | None
) -> list[ContentKey]:
    """Returns the last keys of parts of a state with at most `most` keys."""
    from nessie_cli.kernel.division import divide

    if most < 1:
        raise InvalidInput(f"a part holds one key or more, not {most}")
    start, stop = bounds(KeyRange(prefix=prefix))
    return [decode_key(key) for key in divide(objects, root_of(objects, commit), most, start, stop)]


def diff(objects: Objects, before: Id, after: Id, keys: KeyRange) -> Iterator[DiffEntry]:
    """Yields the contents that differ between two commits."""
    check_range(keys)
    start, stop = bounds(keys)
    chosen = None if keys.keys is None else _single_keys(keys)
    if chosen:
        start, stop = min(chosen), max(chosen) + b"\x00"
    changes = tree.diff(objects, root_of(objects, before), root_of(objects, after), start, stop)
    if chosen is not None:
        changes = (change for change in changes if change[0] in chosen)
    for batch in batched(changes, BATCH, first=_FIRST):
        records = [record for _, old, new in batch for record in (old, new) if record]
        values = objects.each_content(records)
        for key, old, new in batch:
            yield DiffEntry(
                decode_key(key), next(values) if old else None, next(values) if new else None
            )


def changed_keys(objects: Objects, commit: StoredCommit) -> list[ChangedKey]:
    """Returns the keys that a commit changed. Only keys with an operation can have changed."""
    before = root_of(objects, commit.parents[0])
    stored = operations_of(objects, commit)
    if before == commit.root or not stored:
        return []
    if len(stored) == 1:
        return [_only_change(objects, before, commit.root, *stored[0])]
    was = tree.get(objects, before, [key for key, _ in stored])
    # A forced deletion is an operation even if the key did not exist.
    changed = (
        (key, record)
        for key, record in stored
        if (key in was if is_deletion(record) else was.get(key) != record)
    )
    return [_key_change(key, record, existed=key in was) for key, record in changed]


def _only_change(objects: Objects, before: Id, after: Id, key: bytes, record: bytes) -> ChangedKey:
    """Returns the change of a commit with one operation.

    It is an update if both states have the same number of keys.
    """
    existed = is_deletion(record) or tree.count(objects, before) == tree.count(objects, after)
    return _key_change(key, record, existed=existed)


def _key_change(key: bytes, record: bytes, *, existed: bool) -> ChangedKey:
    return ChangedKey(
        decode_key(key), format_content_id(content_id_of(record)), existed, not is_deletion(record)
    )


def last_change(objects: Objects, lookup: IndexLookup, commit: Id, key: bytes) -> CommitMeta | None:
    """Returns the newest commit along first parents with an operation on a key."""
    return next(
        (meta_of(id_, entry) for id_, entry in commits_of_key(objects, lookup, commit, key)), None
    )


def ahead_behind(objects: Objects, of: Id, base: Id) -> AheadBehind:
    """Returns the first-parent distances of two commits from their common ancestor."""
    common = history.common_first_parent(objects, of, base)
    height = history.height_of(objects, common)
    return AheadBehind(
        history.height_of(objects, of) - height,
        history.height_of(objects, base) - height,
        common.hex(),
    )


def reflog(
    objects: Objects, store: View, name: str | None, limit: int | None, before: int | None
) -> Iterator[ReflogEntry]:
    """Yields the moves of a reference or of all with numbers below `before`, newest first."""
    rows = moves(store, name, before=before, batch=BATCH if limit is None else min(limit, BATCH))
    return (_reflog_entry(objects, row) for row in islice(rows, limit))


def moves(
    view: View,
    name: str | None = None,
    *,
    since: int | None = None,
    before: int | None = None,
    batch: int = BATCH,
) -> Iterator[ReflogRow]:
    """Yields reflog rows with numbers above `since` and below `before`, newest first.

    Reads at most `batch` rows per round trip. The store returns fewer if they are large, so only
    an empty answer is the end.
    """
    while rows := view.reflog(name, before, batch):
        for row in rows:
            if since is not None and row.number <= since:
                return
            yield row
        before = rows[-1].number


def _reflog_entry(objects: Objects, row: ReflogRow) -> ReflogEntry:
    move = row.move
    message = move.message
    if (
        not message
        and move.operation in ("commit", "merge", "transplant")
        and move.after not in (None, NO_COMMIT)
    ):
        message = objects.commit(move.after).message.partition("\n")[0] if move.after else ""
    values: tuple[str | None, str | None] = (None, None)
    if move.kind == ReflogType.SETTING:
        message, values = "", values_of(move)
    return ReflogEntry(
        number=row.number,
        reference=move.name,
        type=ReflogType(move.kind),
        before=move.before.hex() if move.before is not None else None,
        after=move.after.hex() if move.after is not None else None,
        time=from_micros(move.time),
        who=move.who,
        operation=move.operation,
        message=message,
        request_id=move.request_id,
        value_before=values[0],
        value_after=values[1],
    )


def existing_commit(objects: Objects, id_: Id) -> StoredCommit:
    """Returns a stored commit. Raises `CommitNotFound` for the empty history."""
    if id_ == NO_COMMIT:
        raise CommitNotFound(
            "this is the beginning of the history: there is no commit", NO_ANCESTOR
        )
    return objects.commit(id_)
