"""Writes the history of another repository: commits with their own times, then references.

The commits that are written are unreachable until `publish` creates the references in one write.
Before that, the target looks unchanged, and an interrupted import leaves only objects that
maintenance deletes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from uuid import NAMESPACE_URL, uuid5

from msgspec import Struct, structs

from nessie_cli.errors import AlreadyExists, InvalidInput, NessieError
from nessie_cli.kernel import tree
from nessie_cli.kernel.commits import Stamp, deletion, draft_commit, micros, root_of
from nessie_cli.kernel.committing import parse_content_id
from nessie_cli.kernel.edit import edit
from nessie_cli.kernel.forms import NO_COMMIT, Id, encode_key, format_content_id
from nessie_cli.kernel.objects import Cache, Objects
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    Entry,
    LogEntry,
    Problem,
    Put,
    Reference,
    ReferenceType,
    check_new_reference_name,
)
from nessie_cli.repository import reading
from nessie_cli.repository.base import ALL_KEYS
from nessie_cli.repository.draft import ChangeSubmission
from nessie_cli.repository.snapshot import Context, stored_objects
from nessie_cli.repository.verification import duplicate_problems
from nessie_cli.repository.writes import WriteMaker
from nessie_cli.store.base import Store
from nessie_cli.store.records import Done, StoredReference, Write

IMPORTED_HASH = "nessie.imported-hash"
"""The property with the hash in the source, followed by those of earlier imports."""

_BATCH = 4_000
"""The number of objects in memory, and of those that are stored together."""
_MOST_NAMED = 10
"""The most references that an error names."""


class Adjustments(Struct):
    """Differences from the source, as numbers.

    `raised_times` counts commits whose time is not later than that of a parent; `without_effect`
    deletions of keys that do not exist; `lost_parents` merge parents that the source does not
    have; `new_ids` content ids that are not UUIDs.
    """

    raised_times: int = 0
    without_effect: int = 0
    lost_parents: int = 0
    new_ids: int = 0


class HistoryWriter:
    """Writes commits, each after its parents, and then all references. Only for one thread."""

    def __init__(self, store: Store, context: Context, default_branch: str) -> None:
        self._store = store
        self._context = context
        self._default_branch = default_branch
        self._cache = Cache()
        self._objects = self._new_objects()
        self._commits: dict[bytes, Id] = {}
        self._first_parents: dict[Id, Id] = {}
        self._new_ids: set[str] = set()
        self._contents: defaultdict[str, set[bytes]] = defaultdict(set)
        self.adjustments = Adjustments()

    def _new_objects(self) -> Objects:
        return Objects(self._store.get, self._cache, fetch_some=self._store.get_some)

    # -- names -------------------------------------------------------------------------------------

    def check_names(self, references: Sequence[Reference]) -> None:
        """Raises `AlreadyExists` or `InvalidInput` for all names that the target cannot take.

        The default branch may exist if it has no commits.
        """
        invalid = []
        for reference in references:
            try:
                check_new_reference_name(reference.name)
            except InvalidInput as error:
                invalid.append(error.message)
        if invalid:
            raise InvalidInput("; ".join(invalid))
        existing = {stored.name: stored for stored in self._store.references()}
        taken = sorted(
            reference.name
            for reference in references
            if reference.name in existing
            and not self._is_untouched(existing[reference.name], reference)
        )
        if taken:
            raise self._taken(taken)

    def _is_untouched(self, stored: StoredReference, reference: Reference) -> bool:
        return stored.target == NO_COMMIT and (stored.name, stored.kind, reference.type) == (
            self._default_branch,
            ReferenceType.BRANCH,
            ReferenceType.BRANCH,
        )

    def _taken(self, names: Sequence[str]) -> AlreadyExists:
        shown = ", ".join(f"'{name}'" for name in names[:_MOST_NAMED])
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        return AlreadyExists(
            f"names of references in the source are taken in this store: {shown}{more}",
            names[0],
            hint="import into a new store, or rename or delete them first",
        )

    # -- commits -----------------------------------------------------------------------------------

    def write(self, entry: LogEntry) -> None:
        """Writes a commit after its parents. A first parent that was not written counts as none.

        Commits become durable in batches, at the latest by `flush`.
        """
        parents = self._parents_of(entry.meta.parents)
        root = root_of(self._objects, parents[0])
        operations, edits = self._operations(root, entry)
        meta = entry.meta
        time = max(0, micros(meta.commit_time)) if meta.commit_time else 0
        id_ = draft_commit(
            self._objects,
            parents,
            edit(self._objects, root, edits) if edits else root,
            operations,
            meta=self._imported_meta(entry),
            stamp=Stamp(meta.committer or "", time),
        )
        self.adjustments.raised_times += self._objects.commit(id_).time != time
        self._commits[bytes.fromhex(entry.hash)] = id_
        self._first_parents[id_] = parents[0]
        if len(self._objects.pending) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Stores the commits that were written."""
        objects = self._objects
        self._store.put(stored_objects(objects.pending, objects.index_terms))
        for id_, decoded in objects.added.items():
            self._cache.put(id_, decoded)
        self._objects = self._new_objects()

    def _parents_of(self, hashes: Sequence[str]) -> list[Id]:
        """Returns the parents here: the first one or the empty history, then merge parents."""
        ids = [self._commits.get(bytes.fromhex(hash_)) for hash_ in hashes]
        merged = [
            id_
            for id_, hash_ in zip(ids[1:], hashes[1:], strict=True)
            if id_ is not None and hash_ != NO_ANCESTOR
        ]
        lost = sum(hash_ != NO_ANCESTOR for hash_ in hashes[1:]) - len(merged)
        self.adjustments.lost_parents += lost
        first = ids[0] if ids else None
        return list(dict.fromkeys([first or NO_COMMIT, *merged]))

    def _operations(
        self, root: Id, entry: LogEntry
    ) -> tuple[dict[bytes, bytes], dict[bytes, bytes | None]]:
        """Returns the operations of a commit on a state, and the edits that they make."""
        given = {encode_key(operation.key): operation for operation in entry.operations or ()}
        before = tree.get(self._objects, root, given)
        operations: dict[bytes, bytes] = {}
        edits: dict[bytes, bytes | None] = {}
        for key, operation in given.items():
            if isinstance(operation, Put):
                content = operation.content
                content_id = self._content_id(content.id or "")
                self._contents[content.type_name].add(content_id)
                edits[key] = operations[key] = self._objects.add_content(content, content_id)
            elif key in before:
                operations[key], edits[key] = deletion(before[key]), None
            else:
                self.adjustments.without_effect += 1
        return operations, edits

    def _content_id(self, text: str) -> bytes:
        """Returns a content id: the source's, or one made from it if that is not a UUID."""
        try:
            return parse_content_id(text)
        except InvalidInput:
            self._new_ids.add(text)
            self.adjustments.new_ids = len(self._new_ids)
            return uuid5(NAMESPACE_URL, f"nessie:content/{text}").bytes

    def _imported_meta(self, entry: LogEntry) -> CommitMeta:
        meta = entry.meta
        properties = dict(meta.properties)
        properties[IMPORTED_HASH] = (entry.hash, *properties.get(IMPORTED_HASH, ()))
        return structs.replace(meta, properties=properties)

    # -- results -----------------------------------------------------------------------------------

    def hash_of(self, hash_: str) -> str:
        """Returns the hash here of a commit of the source that was written."""
        return self._target(hash_).hex()

    def _target(self, hash_: str) -> Id:
        return NO_COMMIT if hash_ == NO_ANCESTOR else self._commits[bytes.fromhex(hash_)]

    def content_id_of(self, text: str) -> str:
        """Returns the content id here of a content id of the source."""
        return format_content_id(self._content_id(text))

    def entries(self, hash_: str) -> Iterator[Entry]:
        """Yields the keys of a written commit's state with their contents, by the source's hash."""
        return reading.entries(self._new_objects(), self._target(hash_), ALL_KEYS, content=True)

    @property
    def contents(self) -> Mapping[str, int]:
        """The number of contents that were written, by type."""
        return {type_: len(ids) for type_, ids in sorted(self._contents.items())}

    def publish(self, references: Sequence[Reference], messages: Mapping[str, str] = {}) -> None:
        """Creates references at the written commits, in one write with entries in the reflog.

        `messages` are those of tags. Raises `AlreadyExists` if a name was taken meanwhile.
        """
        self.flush()
        maker = WriteMaker(self._context, ChangeSubmission(), "import")
        moves = []
        for reference in references:
            target = self._target(reference.hash)
            stored = StoredReference(reference.name, reference.type, target)
            is_default = reference.name == self._default_branch
            if not is_default:
                moves.append(maker.move(stored, None, target, messages.get(reference.name, "")))
            elif target != NO_COMMIT:
                moves.append(maker.move(stored, NO_COMMIT, target))
        if not moves:
            return
        targets = {move.after for move in moves if move.after not in (None, NO_COMMIT)}
        write = Write(
            request=maker.request(lambda: b"", moves),
            moves=moves,
            required=sorted(target for target in targets if target),
        )
        [outcome] = self._store.commit([write])
        if isinstance(outcome, Done):
            return
        if name := getattr(outcome, "name", ""):
            raise self._taken([name])
        raise NessieError("the imported commits were deleted meanwhile; import again")

    def duplicates(self, references: Sequence[Reference]) -> Iterator[Problem]:
        """Yields content ids under several keys of the written commits, as `nessie fsck` does."""
        stored = [
            StoredReference(reference.name, reference.type, self._target(reference.hash))
            for reference in references
        ]
        return duplicate_problems(self._new_objects(), self._first_parents, stored)
