"""The authorization policy of writes.

A policy decides twice. `before` decides on the change alone, before anything is looked up, so that
a refusal reveals nothing. `on` decides on the draft, before its conflicts are reported: exactly the
checked draft is committed, including the commits that become reachable. The operations
have the original server's names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from nessie_cli.errors import (
    CommitNotFound,
    MergeConflict,
    NotAllowed,
    ReferenceConflict,
    ReferenceMoved,
)
from nessie_cli.model import (
    ContentKey,
    Delete,
    IcebergTable,
    IcebergView,
    KeyRange,
    MergeResult,
    Operation,
    Put,
)
from nessie_cli.model.conflicts import commit_message, merge_message
from nessie_cli.repository.changes import (
    AnyRevision,
    AssignReference,
    Change,
    Commit,
    CreateReference,
    DeleteReference,
    Merge,
    PutSettings,
    RenameReference,
    Transplant,
)
from nessie_cli.repository.draft import Draft, KeyChange, PastChange
from nessie_cli.repository.expected import changed_since
from nessie_cli.revisions import Revision
from nessie_cli.server.auth import rules
from nessie_cli.server.auth.authorized import AuthorizedRepository, config_type
from nessie_cli.server.auth.reached import LongHistory, NewKeys, ReachedHistory
from nessie_cli.server.auth.rights import Checks, Rights
from nessie_cli.server.auth.rules import NOTHING_READABLE, Readable
from nessie_cli.server.auth.shown_keys import ShownKeys, Side

if TYPE_CHECKING:
    from nessie_cli.iceberg.warehouses.warehouse import RecordedLocations

_HASH = r"[0-9a-fA-F]{64}"
_Keys = Collection[ContentKey]
_MOST_WAYS = 16
"""How many references are tried through which the caller may read a commit."""


class Policy:
    """Decides on the changes of one request; the caller reads through `reading`.

    With `guards_rows`, no change makes rows readable that the caller may not read where they are.
    Without warehouses in which callers need a right to choose locations, that would protect
    nothing: a table can be put with any metadata file.
    """

    def __init__(
        self,
        rights: Rights,
        reading: AuthorizedRepository,
        default_branch: str,
        *,
        guards_rows: bool = False,
    ) -> None:
        self._rights = rights
        self._reading = reading
        self._default_branch = default_branch
        self._guards_rows = guards_rows
        self._ways: dict[str, list[str]] = {}
        """References through which the caller sees a commit, by its hash."""

    def before(
        self, change: Change[Any], history: ReachedHistory, new: _Keys | None = None
    ) -> None:
        """Raises `NotAllowed` if the caller may not request a change at all, or `LongHistory`.

        `new` are the keys that a handler has found free; None if it has not looked them up.
        """
        checks = self._rights.checks()
        if isinstance(change, Commit):
            branch = self._name(change.branch)
            checks.need(rules.COMMIT_CHANGE_AGAINST_REFERENCE, branch)
            for operation in change.operations:
                self._check_operation(checks, branch, operation, new)
        elif isinstance(change, Merge | Transplant):
            checks.need(rules.COMMIT_CHANGE_AGAINST_REFERENCE, self._name(change.branch))
        elif isinstance(change, CreateReference):
            checks.need(rules.CREATE_REFERENCE, change.name)
        elif isinstance(change, AssignReference):
            checks.need(rules.ASSIGN_REFERENCE_TO_HASH, self._name(change.name))
        elif isinstance(change, RenameReference):
            checks.need(rules.VIEW_REFERENCE, self._name(change.old))
            checks.need(rules.CREATE_REFERENCE, change.new)
            checks.need(rules.DELETE_REFERENCE, self._name(change.old))
        elif isinstance(change, DeleteReference):
            checks.need(rules.DELETE_REFERENCE, self._name(change.name))
        elif isinstance(change, PutSettings):
            self._require_settings(change)
        checks.done()
        self._source_of(change)
        if isinstance(change, Commit):
            self._check_origins(change, history)

    def on(self, draft: Draft[Any], history: ReachedHistory) -> None:
        """Raises `NotAllowed` if the caller may not make a draft, or see a repeated commit.

        Raises `LongHistory` if more commits become reachable than `history` allows to check.
        """
        if draft.repeated:
            for reference in draft.references:
                self._rights.require(rules.VIEW_REFERENCE, reference.name)
                self._rights.require(rules.COMMIT_CHANGE_AGAINST_REFERENCE, reference.name)
            return
        change = draft.change
        through = history.source = self._source_of(change)
        self._check_reached(draft, history)
        if isinstance(change, Transplant):
            self._check_copied(change, draft)
        if isinstance(change, Commit | Merge | Transplant):
            branch = self._name(change.branch)
            checks = self._rights.checks()
            # A merge per content brings the contents that commits changed, under whatever key.
            per_key = not isinstance(change, Commit) and change.options.per_key
            for key in draft.key_changes():
                if through and per_key:
                    self._require_source(through, key)
                for operation, type_ in _needed(key):
                    if not self._rights.may(operation, branch, key.key, type_):
                        name = key.key if self._may_name(change, key.key) else None
                        checks.note(operation, branch, name, allowed=False)
            checks.done()
            if isinstance(change, Commit):
                self._check_renamed_rows(branch, draft)

    def is_seen(self, draft: Draft[Any], history: ReachedHistory) -> bool:
        """Returns whether the caller still sees the source of a draft as when it was checked.

        Raises `NotAllowed` if the caller may not make its commits reachable any longer, or if the
        command of a run, whose program the caller is, has ended.
        """
        if isinstance(draft.change, Commit | Merge | Transplant):
            branch = self._name(draft.change.branch)
            self._rights.require(rules.COMMIT_CHANGE_AGAINST_REFERENCE, branch)
        if not draft.sources:
            return True
        with suppress(LongHistory):
            if self._source_of(draft.change) == history.source:
                self._check_reached(draft, history)
                return True
        return False

    def _may_name(self, change: Commit | Merge | Transplant, key: ContentKey) -> bool:
        """Returns whether a refusal may name a changed key.

        A request names each key of a commit, and theirs changed each key of a merge per key. In a
        merge per content, a key can also be one of ours that theirs does not have.
        """
        if isinstance(change, Commit) or change.options.per_key:
            return True
        keys = self._shown_keys(change)
        if keys.is_named(key) or keys.of_ours(key):
            return True
        with suppress(NotAllowed):
            return any(self._reading.entries(_source_state(change), KeyRange(keys=(key,))))
        return False

    def shown(self, change: Change[Any], answer: Any) -> Any:
        """Returns an answer with what the caller may know: keys of a merge, values of settings."""
        if isinstance(change, PutSettings):
            may = self._rights.may
            return {
                name: previous
                if may(rules.READ_REPOSITORY_CONFIG, config=config_type(name))
                else None
                for name, previous in answer.items()
            }
        if not isinstance(change, Merge | Transplant) or not isinstance(answer, MergeResult):
            return answer
        return self._shown_keys(change).result(answer)

    def _shown_keys(self, change: Commit | Merge | Transplant) -> ShownKeys:
        branch = self._name(change.branch)
        head = Revision(branch)
        if isinstance(change, Commit):
            named = {operation.key for operation in change.operations}
            side = self._side(branch, head)
            return ShownKeys(self._rights, side, side, named)
        options = change.options
        named = {behavior.key for behavior in options.behaviors}
        source = _source_state(change)
        ours = self._side(branch, head, source)
        theirs = self._side(self._source_of(change), source, head)
        return ShownKeys(self._rights, ours, theirs, named, per_key=options.per_key)

    def _side(self, name: str, *states: AnyRevision) -> Side:
        """Returns a side; a key that it has deleted has the type that it has on the other one."""
        return Side(name, partial(self._reading.keys.may_know, name, states))

    def shown_conflict(self, change: Change[Any], error: ReferenceConflict) -> ReferenceConflict:
        """Returns a conflict with those keys that the caller may know."""
        if not isinstance(change, Commit | Merge | Transplant):
            return error
        keys = self._shown_keys(change)
        if isinstance(error, ReferenceMoved):
            named = list(filter(keys.in_conflict, error.keys))
            if len(named) == len(error.keys):
                return error
            branch, expected = str(error.reference), str(error.expected_hash)
            return changed_since(branch, expected, str(error.head), named)
        head = error.result.effective_target_hash if isinstance(error, MergeConflict) else ""
        conflicts = [keys.conflict(each, head) for each in error.conflicts]
        if isinstance(error, MergeConflict):
            same = [each.key for each in conflicts] == [each.key for each in error.conflicts]
            message = error.message if same else merge_message(conflicts)
            return MergeConflict(message, conflicts, keys.result(error.result))
        if conflicts == list(error.conflicts):
            return error
        return ReferenceConflict(
            commit_message(conflicts, error.more),
            conflicts,
            reference=error.reference,
            head=error.head,
            expected_hash=error.expected_hash,
            more=error.more,
        )

    def may_choose_location(self, branch: str, key: ContentKey, content_type: str) -> bool:
        """Returns whether the caller may choose the location of a table or view."""
        return self._rights.may(rules.CHOOSE_LOCATION, self._name(branch), key, content_type)

    def check_may_read_table(self, branch: str, key: ContentKey) -> None:
        """Raises `NotAllowed` unless the caller may read a table on a branch."""
        name = self._name(branch)
        self._rights.require(rules.READ_ENTITY_VALUE, name, key, IcebergTable.type)

    # -- checks ----------------------------------------------------------------------------
    def _name(self, name: str) -> str:
        """Returns the name for rules: `-` is the default branch."""
        return self._default_branch if name == "-" else name

    def _check_operation(
        self, checks: Checks, branch: str, operation: Operation, new: _Keys | None
    ) -> None:
        """Checks an operation, whatever its key contains: no conflict reveals a hidden key."""
        key = operation.key
        if isinstance(operation, Put):
            type_ = operation.content.type_name
            if new is not None:
                needed = rules.CREATE_ENTITY if key in new else rules.UPDATE_ENTITY
                checks.need(needed, branch, key, type_)
            elif not self._rights.may(rules.UPDATE_ENTITY, branch, key, type_):
                checks.need(rules.CREATE_ENTITY, branch, key, type_)
            return
        needed = rules.DELETE_ENTITY if isinstance(operation, Delete) else rules.READ_CONTENT_KEY
        checks.note(needed, branch, key, allowed=self._rights.may_somehow(needed, branch, key))

    def _check_origins(self, change: Commit, history: ReachedHistory) -> None:
        """Checks that the caller may read each restored content where it was.

        Otherwise the answer would show whether it was there. Under another key than that, it is
        renamed: the rules for the old key would not protect its folder any longer. The same holds
        for the last key that it had on the branch.
        """
        history.begin()
        through: dict[str, str] = {}
        branch, renames = self._name(change.branch), None
        for put in change.operations:
            if not isinstance(put, Put) or (origin := put.restored_from) is None:
                continue
            if not re.fullmatch(_HASH, origin.hash):
                # The commit refuses it without looking anything up.
                continue
            if origin.hash not in through:
                through[origin.hash] = self._reading.seen(Revision(None, origin.hash))
            type_ = put.content.type_name
            for needed in (rules.READ_CONTENT_KEY, rules.READ_ENTITY_VALUE):
                self._rights.require(needed, through[origin.hash], origin.key, type_)
            if self._grants_rows(branch, put.key, type_):
                self._rights.require(rules.READ_ROWS, through[origin.hash], origin.key, type_)
            if origin.key != put.key:
                self._rights.require(rules.DELETE_ENTITY, branch, origin.key, type_)
            renames = renames or self._reading.renames(branch, history)
            last = renames.last_key(put.content.id or "", origin.key)
            if last != put.key and not self._rights.may(rules.DELETE_ENTITY, branch, last, type_):
                # The caller may not know this key.
                raise self._rights.refusal(rules.DELETE_ENTITY, branch)

    def _require_settings(self, change: PutSettings) -> None:
        for name in change.values:
            self._rights.require(rules.UPDATE_REPOSITORY_CONFIG, config=config_type(name))
        for name in change.expected:
            # A conflict would confirm a guess at the value.
            self._rights.require(rules.READ_REPOSITORY_CONFIG, config=config_type(name))

    def _source_of(self, change: Change[Any]) -> str:
        """Returns the reference through which the caller sees the source of a change.

        It is empty for a change without a source. Raises `NotAllowed` if the caller does not see
        the source.
        """
        if isinstance(change, Merge):
            return self._reading.seen(change.source)
        if isinstance(change, Transplant):
            # The history of the commits is copied, so the caller must be allowed to list it.
            return (
                [self._reading.listed(Revision(None, commit)) for commit in change.commits][-1]
                if change.commits
                else ""
            )
        if isinstance(change, CreateReference | AssignReference):
            return self._reading.seen(Revision(None, change.target))
        if isinstance(change, RenameReference):
            return self._reading.seen(self._name(change.old))
        return ""

    def _require_source(self, through: str, change: KeyChange) -> None:
        """Checks that the caller may read a merged content at its source.

        The error does not name a key that the caller may not know.
        """
        if change.type_after is not None:
            operation, type_ = rules.READ_ENTITY_VALUE, change.type_after
        else:
            operation, type_ = rules.READ_CONTENT_KEY, change.type_before or ""
        if not self._rights.may(operation, through, change.key, type_):
            named = self._rights.may(rules.READ_CONTENT_KEY, through, change.key, type_)
            raise self._rights.refusal(operation, through, change.key if named else None)

    def _check_reached(self, draft: Draft[Any], history: ReachedHistory) -> None:
        """Checks each reference from which existing commits become reachable, like a new one.

        The caller must be allowed to create it if it is new, and to read at the source what becomes
        reachable.
        """
        if not draft.sources:
            return
        for target in draft.targets:
            if target.before is None:
                self._rights.require(rules.CREATE_REFERENCE, target.name)
        history.begin()
        # A rename does not choose its source: the caller could create the new name through any.
        most = _MOST_WAYS if isinstance(draft.change, RenameReference) else 1
        for source in draft.sources:
            refusals = []
            # Those that were checked come first, because refused ones are not remembered.
            for through in sorted(islice(self._reading.ways_to(source), most), key=history.is_new):
                refusal = self._unreadable(source, through, draft, history)
                if refusal is None:
                    break
                refusals.append(refusal)
            else:
                # Without a way, the source has been moved or deleted since the draft read it.
                raise (
                    refusals[0]
                    if refusals
                    else CommitNotFound(f"No reference contains commit {source} any longer", source)
                )

    def _unreadable(
        self, source: str, through: str, draft: Draft[Any], history: ReachedHistory
    ) -> NotAllowed | None:
        """Returns an error unless the caller may list and read the newly reachable commits.

        Commits that were checked completely for this request or an earlier one of this caller are
        not read again, unless one has a table whose rows the caller may read on a target only.
        """
        targets = [target.name for target in draft.targets]
        new_keys = self._new_keys(draft)
        checked = history.checked(through, draft, new_keys)
        if checked is not None and self._may_read_rows(source, checked):
            return None
        remembered = self._rights.readable(through)
        got = set(self._gets_rows(targets, remembered.without_rows, new_keys))
        if not self._may_read_rows(source, got):
            remembered, got = NOTHING_READABLE, set()
        without_rows = set(remembered.without_rows)
        left = dict(new_keys)
        try:
            for commit in draft.reached_commits(remembered.heads, history.visit):
                for operation in (rules.LIST_COMMIT_LOG, rules.READ_ENTRIES):
                    self._rights.require(operation, through)
                changes = draft.changes_of(commit, most=history.enough)
                history.count(1 + len(changes))
                self._require_all(through, commit, changes)
                tables = list(self._without_rows(through, changes))
                without_rows.update(tables)
                gets = set(self._gets_rows(targets, tables, left))
                if not self._may_read_rows(source, gets):
                    raise self._rights.refusal(rules.READ_ROWS, through)
                got |= gets
                # A new key has the state of the newest commit only.
                for change in changes:
                    left.pop(change.content_id, None)
        except NotAllowed as error:
            return error
        history.remember(through, draft, new_keys, got)
        if all(target.before is None for target in draft.targets):
            # Otherwise the commits that a target reached before were not checked.
            self._rights.remember_readable(through, Readable(draft.sources, without_rows))
        return None

    # -- rows --------------------------------------------------------------------------------------
    def _without_rows(self, through: str, changes: Iterable[PastChange]) -> Iterator[PastChange]:
        """Yields the tables and views whose rows the caller may not read through a reference."""
        may = self._rights.may
        for change in changes if self._guards_rows else ():
            type_ = change.type
            if type_ in _TYPES and not may(rules.READ_ROWS, through, change.key, type_):
                yield change

    def _gets_rows(
        self, names: Sequence[str], tables: Iterable[PastChange], new_keys: NewKeys
    ) -> Iterator[PastChange]:
        """Yields the tables whose rows the caller may read on a branch, also under `new_keys`."""
        return (
            table
            for table in tables
            if table.type is not None
            and any(
                self._grants_rows(name, key, table.type)
                for key in (table.key, *new_keys.get(table.content_id, ()))
                for name in names
            )
        )

    def _may_read_rows(self, commit: str, tables: Collection[PastChange]) -> bool:
        """Returns whether the caller may read the rows of all these tables at a commit.

        A request can name the commit alone: each reference that has it counts.
        """
        ways = self._ways.get(commit) if tables else []
        if ways is None:
            ways = self._ways[commit] = [*islice(self._reading.ways_to(commit), _MOST_WAYS)]
        return all(
            any(self._rights.may(rules.READ_ROWS, way, each.key, each.type or "") for way in ways)
            for each in tables
        )

    def _new_keys(self, draft: Draft[Any]) -> dict[bytes, list[ContentKey]]:
        """Returns the keys under which a merge or transplant per content puts what it brings.

        The target may have renamed a table. A deleted one keeps its key, under which commits of a
        transplant can have it.
        """
        change = draft.change
        if (
            not self._guards_rows
            or not isinstance(change, Merge | Transplant)
            or change.options.per_key
        ):
            return {}
        changes = list(draft.key_changes())
        keys: dict[bytes, list[ContentKey]] = {}
        for each in changes:
            if each.type_after is not None:
                keys.setdefault(each.content_ids[-1], []).append(each.key)
        for each in changes:
            if each.type_before is not None and each.type_after is None:
                keys.setdefault(each.content_ids[0], [each.key])
        return keys

    def _grants_rows(self, name: str, key: ContentKey, type_: str) -> bool:
        """Returns whether the caller may read rows on a reference only by this right.

        With the right to choose locations, the caller may put a table with any metadata file.
        """
        return (
            self._guards_rows
            and type_ in _TYPES
            and self._rights.may(rules.READ_ROWS, name, key, type_)
            and not self._rights.may(rules.CHOOSE_LOCATION, name, key, type_)
        )

    def _check_renamed_rows(self, branch: str, draft: Draft[Any]) -> None:
        """Checks that the caller may read the rows of each renamed table at its old key."""
        if not self._guards_rows:
            return
        changes = [change for change in draft.key_changes() if not change.same_content]
        old_keys = {
            change.content_ids[0]: change.key for change in changes if change.type_before in _TYPES
        }
        for change in changes:
            type_ = change.type_after
            if type_ is None or not self._grants_rows(branch, change.key, type_):
                continue
            old_key = old_keys.get(change.content_ids[-1])
            if old_key is not None:
                self._rights.require(rules.READ_ROWS, branch, old_key, type_)

    def _check_copied(self, change: Transplant, draft: Draft[Any]) -> None:
        """Checks that the caller may read what each commit brings, where it sees this commit."""
        brought: set[ContentKey | bytes] = set()
        for key in draft.key_changes():
            brought |= {key.key, *key.content_ids}
        new_keys, targets = self._new_keys(draft), [self._name(change.branch)]
        for commit in change.commits:
            read_at = Revision(None, commit)
            hash_ = self._reading.resolve(read_at).hash
            changes = draft.changes_of(hash_, brought)
            through = self._reading.listed(read_at)
            self._require_all(through, hash_, changes)
            tables = self._without_rows(through, changes)
            if not self._may_read_rows(hash_, [*self._gets_rows(targets, tables, new_keys)]):
                raise self._rights.refusal(rules.READ_ROWS, through)

    def _require_all(self, through: str, commit: str, changes: Iterable[PastChange]) -> None:
        """Raises `NotAllowed` unless the caller may read all that a commit changed.

        The type None is a deletion.
        """
        may, changed = self._rights.may, list(changes)
        deleted = [each.key for each in changed if each.type is None]
        visible = self._reading.keys.visible(through, f"@{commit}~1", deleted)
        for key, type_, _ in changed:
            if type_ is None:
                readable = key in visible
            else:
                readable = may(rules.READ_CONTENT_KEY, through, key, type_) and may(
                    rules.READ_ENTITY_VALUE, through, key, type_
                )
            if not readable:
                raise self._rights.refusal(rules.READ_ENTITY_VALUE, through)


def _needed(change: KeyChange) -> list[tuple[str, str]]:
    """Returns the operations that a change of a key requires, each with the content type."""
    before, after = change.type_before, change.type_after
    if after is None:
        return [(rules.DELETE_ENTITY, before or "")]
    if before is None:
        return [(rules.CREATE_ENTITY, after)]
    if change.same_content and before == after:
        return [(rules.UPDATE_ENTITY, after)]
    return [(rules.DELETE_ENTITY, before), (rules.CREATE_ENTITY, after)]


def _source_state(change: Merge | Transplant) -> AnyRevision:
    """Returns the commit whose state a merge or transplant brings."""
    return change.source if isinstance(change, Merge) else Revision(None, change.commits[-1])


_TYPES = (IcebergTable.type, IcebergView.type)


def check_locations(draft: Draft[Any], locations: RecordedLocations, policy: Policy | None) -> None:
    """Raises `NotAllowed` for a content whose location its caller may not choose.

    A caller needs `CHOOSE_LOCATION` unless the metadata file is in the folder that the branch
    records at HEAD for the content id. Without a policy, no caller has this right.
    """
    change = draft.change
    if draft.repeated or not isinstance(change, Commit | Merge | Transplant):
        return
    changes = list(draft.key_changes())
    recorded = {
        before.id: before
        for key_change in changes
        if key_change.type_before in _TYPES
        and isinstance(before := key_change.before, IcebergTable | IcebergView)
    }
    for key_change in changes:
        after = key_change.after if key_change.type_after in _TYPES else None
        if not isinstance(after, IcebergTable | IcebergView) or locations.accept(
            after, recorded.get(after.id)
        ):
            continue
        if policy is None or not policy.may_choose_location(
            change.branch, key_change.key, after.type
        ):
            raise NotAllowed(
                (
                    f"'CHOOSE_LOCATION' is not allowed on content '{key_change.key.plain}': its"
                    f" metadata file {after.metadata_location} is not in the folder that the"
                    " catalog records for it"
                ),
                hint="create tables through the Iceberg REST catalog",
            )
