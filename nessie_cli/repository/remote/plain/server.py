"""`PlainServer`: requests to a server without our extensions, such as the original one.

The commit rules are checked here, because each version of the original server has other ones. A
request id is a property of the commit. After a lost answer, the log of the branch is searched.
Conflicts and answers get the same details as those of our servers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from heapq import merge as merge_sorted
from typing import Any

from msgspec import structs

from nessie_cli.errors import (
    AlreadyExists,
    InvalidInput,
    OutcomeUnknown,
    SettingsUnsupported,
)
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    CommitResult,
    Content,
    ContentKey,
    DiffEntry,
    KeyRange,
    LogEntry,
    MergeResult,
    Reference,
    ReferenceType,
    ReflogEntry,
    check_new_reference_name,
    described_setting,
)
from nessie_cli.repository.changes import (
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
from nessie_cli.repository.remote import contents, history, references, revisions
from nessie_cli.repository.remote.cel import cel_text
from nessie_cli.repository.remote.lost_answers import look_up_outcome
from nessie_cli.repository.remote.server import Server, VisibleSettings
from nessie_cli.repository.remote.session import PAGE, understood
from nessie_cli.repository.remote.transport import Lost, Query, segment
from nessie_cli.repository.remote.write_request import WriteRequest
from nessie_cli.wire import answers
from nessie_cli.wire import keys as wire_keys

_LONGEST_FILTER = 3000
"""Characters: a filter is part of the URL, and servers take about 8,000."""
_FIRST_PAGE = 10
"""A server that filters searches until a page is full, so the first page is small."""


class PlainServer(Server):
    """A server that speaks REST v2 without our extensions."""

    # -- reading ----------------------------------------------------------------------------------
    def settings(self) -> VisibleSettings:
        """Returns no settings: REST v2 has none."""
        return VisibleSettings({})

    def caller(self) -> None:
        """Returns None: REST v2 does not name the caller."""

    def messages(self, names: Collection[str]) -> dict[str, str]:  # noqa: ARG002
        """Returns no messages: tags have none in REST v2."""
        return {}

    def reflog(self, name: str | None) -> Iterator[ReflogEntry]:
        """Yields a few recent hashes of existing references, without who moved them."""
        names = [name] if name is not None else [r.name for r in references.list_all(self.session)]

        def by_time(entry: ReflogEntry) -> tuple[datetime, int]:
            return entry.time, entry.number

        return merge_sorted(
            *(self._recent_changes(each) for each in names), key=by_time, reverse=True
        )

    def _recent_changes(self, name: str) -> list[ReflogEntry]:
        path = f"trees/{segment(references.full_name(self.session, name))}/recent-changes"
        answer = self.session.optional(
            lambda: self.session.transport.get(path),
            "where references have been (recent-changes)",
        )
        return understood(answer, answers.decode_recent_changes, "recent-changes")

    def divisions(self, at: str, most: int, prefix: ContentKey | None) -> list[ContentKey]:
        """Returns the last key of each part but the final one. Lists all keys."""
        if most < 1:
            raise InvalidInput(f"a part holds one key or more, not {most}")
        listed = contents.entries(self.session, at, KeyRange(prefix=prefix))
        keys = [entry.key for entry in listed]
        return keys[most - 1 : len(keys) - 1 : most]

    def diff(
        self,
        before: str,
        after: str,
        keys: KeyRange,
        *,
        whole: bool = False,  # noqa: ARG002 - REST v2 does not have it
    ) -> Iterator[DiffEntry]:
        """Yields contents that differ."""
        return contents.diff(self.session, before, after, keys)

    def log_of_key(self, start: str, key: ContentKey, *, operations: bool) -> Iterator[LogEntry]:
        """Yields commits along first parents with an operation on a key, found by a filter."""
        query: Query = {"filter": _filter([key])}
        log = history.log(self.session, start, operations=True, more=query, first=_FIRST_PAGE)
        for entry in log:
            if any(operation.key == key for operation in entry.operations or ()):
                yield entry if operations else LogEntry(entry.meta, entry.height)

    def last_changes(
        self, at: str, keys: Iterable[ContentKey], *, since: str | None = None
    ) -> dict[ContentKey, CommitMeta]:
        """Returns the newest commit that changed each key, found by filters."""
        changes: dict[ContentKey, CommitMeta] = {}
        for group in _in_filters(sorted(set(keys))) if since != at else ():
            changes |= self._search(at, group, {"filter": _filter(group), "limit-hash": since})
        return changes

    def _search(
        self, at: str, keys: Collection[ContentKey], query: Query
    ) -> dict[ContentKey, CommitMeta]:
        changes: dict[ContentKey, CommitMeta] = {}
        first = min(len(keys), PAGE)
        for entry in history.log(self.session, at, operations=True, more=query, first=first):
            for operation in entry.operations or ():
                if operation.key in keys:
                    changes.setdefault(operation.key, entry.meta)
            if len(changes) == len(keys):
                break
        return changes

    def changes_since(
        self,
        keys: Iterable[ContentKey],
        since: str | None,
        head: str,
        state: Mapping[ContentKey, Content],
    ) -> Mapping[ContentKey, CommitMeta]:
        """Returns the newest commit that changed each key, first searched for after `since`."""
        keys = set(keys)
        if since in (None, NO_ANCESTOR):
            return self.last_changes(head, keys)
        newer = self.last_changes(head, keys, since=since)
        older = [key for key in keys if key not in newer and key in state]
        return newer | self.last_changes(head, older)

    def find_request(self, request_id: str, branch: str | None) -> CommitResult | None:
        """Returns the result of the write with this request id, or None.

        Searches the newest commits of the branch. If that is unknown or deleted, searches every
        branch. A transplant leaves no trace of its request.
        """
        from nessie_cli.repository.remote.plain.commit import find_committed

        existing = references.find(self.session, branch) if branch else None
        all_branches = references.list_all(self.session, ReferenceType.BRANCH)
        for candidate in [existing] if existing else list(all_branches):
            if result := find_committed(self.session, candidate, request_id, None):
                return result
        return None

    # -- writing ----------------------------------------------------------------------------------
    # Commands that only read do not load the rules of commits and merges.

    def check_supported(self, change: Change[Any]) -> None:
        """Raises an error for an option that REST v2 does not have."""
        if isinstance(change, CreateReference) and change.message:
            raise InvalidInput(
                f"server {self.session.transport.url} keeps no message of a tag",
                hint="create the tag without a message",
            )
        if isinstance(change, Merge | Transplant) and change.options.unrelated:
            raise self.session.too_old("merge unrelated histories")

    def commit(self, change: Commit, request_id: str | None) -> CommitResult:
        """Commits operations after checking the rules."""
        from nessie_cli.repository.remote.plain.commit import commit

        return commit(self, change, request_id)

    def merge(self, change: Merge, source: Reference, request_id: str | None) -> MergeResult:
        """Merges `source`, which `change.source` names."""
        from nessie_cli.repository.remote.plain.merge import merge

        return merge(self, change, source, request_id)

    def transplant(self, change: Transplant, request_id: str | None) -> MergeResult:  # noqa: ARG002
        """Transplants commits. A repeated request is carried out again."""
        from nessie_cli.repository.remote.plain.merge import transplant

        return transplant(self, change)

    def create_reference(self, change: CreateReference, request_id: str | None) -> Reference:  # noqa: ARG002
        """Creates a branch or tag. Raises `AlreadyExists`."""
        request = references.creation(change)
        created = Reference(change.type, change.name, change.target)
        # A lost answer would hide that the reference existed before.
        if references.find(self.session, change.name) is not None:
            raise AlreadyExists(f"Named reference '{change.name}' already exists.", change.name)

        def look_up() -> Reference | None:
            current = references.find(self.session, change.name)
            return created if current and _is_same(current, created) else None

        return self._send(request, look_up)

    def assign_reference(self, change: AssignReference, request_id: str | None) -> Reference:  # noqa: ARG002
        """Moves a reference. Raises `ReferenceMoved` unless it is at the expected hash."""

        def look_up() -> Reference | None:
            current = references.find(self.session, change.name)
            return current if current and current.hash == change.target else None

        request = references.assignment(self.session, change)
        with references.current_position(self.session, change.name, change.expected_hash):
            return self._send(request, look_up)

    def rename_reference(self, change: RenameReference, request_id: str | None) -> Reference:
        """Renames a reference by two requests.

        If the second one certainly failed, the first one is undone.
        """
        session, expected = self.session, change.expected_hash
        check_new_reference_name(change.new)
        old = references.get(session, change.old)
        if old.name == session.configuration.default_branch:
            raise InvalidInput(f"Default branch '{old.name}' cannot be renamed.")
        target = revisions.existing(session, expected)
        created = self.create_reference(CreateReference(old.type, change.new, target), request_id)
        try:
            self.delete_reference(DeleteReference(change.old, expected), request_id)
        except OutcomeUnknown:
            raise
        except BaseException:
            # After an interrupt, the old reference may be gone. Then only the new one is left.
            if references.find(session, change.old) is not None:
                self.delete_reference(DeleteReference(change.new, created.hash), request_id)
            raise
        return created

    def delete_reference(self, change: DeleteReference, request_id: str | None) -> Reference:  # noqa: ARG002
        """Deletes a reference. Raises `ReferenceMoved` unless it is at the expected hash."""
        request = references.deletion(self.session, change)
        with references.current_position(self.session, change.name, change.expected_hash):
            before = references.get(self.session, change.name)
            deleted = structs.replace(before, hash=change.expected_hash)

            def look_up() -> Reference | None:
                return None if references.find(self.session, change.name) else deleted

            return self._send(request, look_up)

    def put_settings(
        self,
        change: PutSettings,
        request_id: str | None,  # noqa: ARG002
    ) -> Mapping[str, str | None]:
        """Raises `SettingsUnsupported`: REST v2 has no settings."""
        shown = ", ".join(
            f"{name} = {described_setting(name, value)}" for name, value in change.values.items()
        )
        raise SettingsUnsupported(
            f"setting {shown}: the settings of a server are kept where its store is; set it there"
        )

    def _send(self, request: WriteRequest, look_up: Callable[[], Reference | None]) -> Reference:
        """Returns the answer to a change of a reference, or `look_up()` if it is lost."""
        try:
            return self.session.reference(request.send(self.session))
        except Lost as lost:
            return look_up_outcome(lost, look_up)


def _is_same(a: Reference, b: Reference) -> bool:
    return (a.type, a.hash) == (b.type, b.hash)


def _filter(keys: Sequence[ContentKey]) -> str:
    names = ", ".join(cel_text(wire_keys.encode_legacy(key)) for key in keys)
    return f"operations.exists(op, op.encodedKey in [{names}])"


def _in_filters(keys: Sequence[ContentKey]) -> Iterator[Sequence[ContentKey]]:
    """Yields the keys in groups whose filters are short enough."""
    group: list[ContentKey] = []
    for key in keys:
        if group and len(_filter([*group, key])) > _LONGEST_FILTER:
            yield group
            group = []
        group.append(key)
    if group:
        yield group
