"""`ExtendedServer`: requests to `nessie serve`, which has our extensions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

from msgspec import convert

from nessie_cli.model import (
    CommitMeta,
    CommitResult,
    Content,
    ContentKey,
    DiffEntry,
    KeyRange,
    LogEntry,
    MergeResult,
    Reference,
    ReflogEntry,
    check_new_reference_name,
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
from nessie_cli.repository.remote import contents, history, references
from nessie_cli.repository.remote.bodies import commit_result
from nessie_cli.repository.remote.extended.idempotent import request_record, send_idempotent
from nessie_cli.repository.remote.server import Server, VisibleSettings
from nessie_cli.repository.remote.session import understood
from nessie_cli.repository.remote.transport import Query
from nessie_cli.repository.remote.write_request import WriteRequest
from nessie_cli.wire import answers
from nessie_cli.wire.extensions import ALLOW_FAILED_RUN, HIDDEN, SETTINGS, WHOLE

_LARGEST_REFLOG_PAGE = 16_000
"""The server finds a page of a reflog by reading those before it again, so pages grow."""
_NAMES_PER_REQUEST = 100
"""Tags whose messages are requested together: all names have to fit into one address."""
_MOST_KEYS = 2**31 - 1
"""The largest number of keys in a part that the server accepts."""

T = TypeVar("T")


class ExtendedServer(Server):
    """A server with our extensions. Every write has a request id, so it happens once."""

    # -- reading ----------------------------------------------------------------------------------
    def settings(self) -> VisibleSettings:
        """Returns the settings of the repository."""
        answer = self.session.transport.get("config/repository", {"type": SETTINGS})

        def decode(answer: Any) -> VisibleSettings:
            config = (answer.get("configs") or [{"settings": {}}])[0]
            values = convert(config["settings"], dict[str, str])
            return VisibleSettings(values, convert(config.get(HIDDEN, False), bool))

        return understood(answer, decode, "settings")

    def caller(self) -> str | None:
        """Returns the name of the caller that the server authenticated, or None."""
        answer = self.session.optional(
            lambda: self.session.transport.get("caller"), "who the caller is"
        )
        name: str | None = understood(answer, lambda answer: answer["name"], "the caller")
        return name

    def messages(self, names: Collection[str]) -> dict[str, str]:
        """Returns the messages of those tags that have one."""
        messages: dict[str, str] = {}
        listed = list(names)
        for start in range(0, len(listed), _NAMES_PER_REQUEST):
            query = {"ref": listed[start : start + _NAMES_PER_REQUEST]}
            answer = self.session.transport.get("messages", query)
            messages |= understood(answer, lambda answer: dict(answer["messages"]), "messages")
        return messages

    def reflog(self, name: str | None) -> Iterator[ReflogEntry]:
        """Yields the moves of one or all references, newest first."""
        return self.session.pages(
            "reflog",
            "reflog",
            {"ref": name},
            answers.decode_reflog_entry,
            most=_LARGEST_REFLOG_PAGE,
        )

    def divisions(self, at: str, most: int, prefix: ContentKey | None) -> list[ContentKey]:
        """Returns the last key of each part but the final one, computed by the server."""
        query: Query = {
            "at": at,
            "most": str(min(most, _MOST_KEYS)),
            "prefix-key": self.session.key_text(prefix) if prefix else None,
        }
        return understood(
            self.session.transport.get("divisions", query),
            lambda answer: [answers.decode_key(key) for key in answer["divisions"]],
            "divisions",
        )

    def diff(
        self, before: str, after: str, keys: KeyRange, *, whole: bool = False
    ) -> Iterator[DiffEntry]:
        """Yields contents that differ, as `Repository.diff`."""
        return contents.diff(
            self.session, before, after, keys, more={WHOLE: "true"} if whole else {}
        )

    def log_of_key(self, start: str, key: ContentKey, *, operations: bool) -> Iterator[LogEntry]:
        """Yields commits along first parents with an operation on a key, from the commit index."""
        query: Query = {"key": self.session.key_text(key)}
        return history.log(self.session, start, operations=operations, more=query)

    def last_changes(
        self,
        at: str,
        keys: Iterable[ContentKey],
        *,
        since: str | None = None,  # noqa: ARG002 - a look-up needs no end
    ) -> dict[ContentKey, CommitMeta]:
        """Returns the newest commit that changed each key, by one request for each."""
        changes: dict[ContentKey, CommitMeta] = {}
        for key in keys:
            query: Query = {"key": self.session.key_text(key)}
            log = history.log(self.session, at, operations=False, more=query, first=1)
            for newest in islice(log, 1):
                changes[key] = newest.meta
        return changes

    def changes_since(
        self,
        keys: Iterable[ContentKey],
        since: str | None,  # noqa: ARG002 - a look-up needs no end
        head: str,
        state: Mapping[ContentKey, Content],  # noqa: ARG002
    ) -> Mapping[ContentKey, CommitMeta]:
        """Returns the newest commit that changed each key of a conflict."""
        return self.last_changes(head, set(keys))

    def find_request(self, request_id: str, branch: str | None) -> CommitResult | None:  # noqa: ARG002 - an id is enough
        """Returns the result of the write with this request id, or None."""
        record = request_record(self.session, request_id)
        return None if record is None else understood(record, commit_result, "request")

    # -- writing ----------------------------------------------------------------------------------
    # Commands that only read do not load the rules of commits and merges.

    def check_supported(self, change: Change[Any]) -> None:
        """Does nothing: the server decides."""

    def commit(self, change: Commit, request_id: str | None) -> CommitResult:
        """Commits operations. The server checks the rules; no expected hash means HEAD."""
        from nessie_cli.repository.remote.extended.commit import commit

        return commit(self, change, request_id)

    def merge(self, change: Merge, source: Reference, request_id: str | None) -> MergeResult:
        """Merges `source`, which `change.source` names."""
        from nessie_cli.repository.remote.extended.merge import merge

        return merge(self, change, source, request_id)

    def transplant(self, change: Transplant, request_id: str | None) -> MergeResult:
        """Transplants commits."""
        from nessie_cli.repository.remote.extended.merge import transplant

        return transplant(self, change, request_id)

    def create_reference(self, change: CreateReference, request_id: str | None) -> Reference:
        """Creates a branch or tag. Raises `AlreadyExists`."""
        return self._send(references.creation(change), request_id, self.session.reference)

    def assign_reference(self, change: AssignReference, request_id: str | None) -> Reference:
        """Moves a reference. Raises `ReferenceMoved` unless it is at the expected hash."""
        allowed = change.allow_failed_run
        query = None if allowed is None else {ALLOW_FAILED_RUN: "true" if allowed else "false"}
        request = references.assignment(self.session, change, query)
        with references.current_position(self.session, change.name, change.expected_hash):
            return self._send(request, request_id, self.session.reference)

    def rename_reference(self, change: RenameReference, request_id: str | None) -> Reference:
        """Renames a reference in one step."""
        check_new_reference_name(change.new)
        path = references.path_at(self.session, change.old, change.expected_hash)
        request = WriteRequest("POST", f"{path}/rename", None, {"name": change.new})
        with references.current_position(self.session, change.old, change.expected_hash):
            return self._send(request, request_id, self.session.reference)

    def delete_reference(self, change: DeleteReference, request_id: str | None) -> Reference:
        """Deletes a reference. Raises `ReferenceMoved` unless it is at the expected hash."""
        request = references.deletion(self.session, change)
        with references.current_position(self.session, change.name, change.expected_hash):
            return self._send(request, request_id, self.session.reference)

    def put_settings(self, change: PutSettings, request_id: str | None) -> Mapping[str, str | None]:
        """Sets settings of the repository. Returns the previous values."""
        expected = {"expected": dict(change.expected)} if change.expected else {}
        body = {"config": {"type": SETTINGS, "settings": dict(change.values), **expected}}
        return self._send(
            WriteRequest("POST", "config/repository", body),
            request_id,
            lambda answer: convert(answer["previous"]["settings"], dict[str, str | None]),
        )

    def _send(self, request: WriteRequest, request_id: str | None, decode: Callable[[Any], T]) -> T:
        return send_idempotent(self.session, request, request_id, decode)
