"""`Server`: the requests that depend on the extensions of a server (`wire.extensions`).

`extended.server` sends the extensions, and `plain.server` replaces them by plain REST v2. All other
requests are the same for every server: they are functions of a `RestSession` in the modules of
this package.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

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

if TYPE_CHECKING:
    from nessie_cli.repository.remote.session import RestSession


class VisibleSettings(NamedTuple):
    """The settings of a repository by name, and whether the caller may not read others."""

    values: Mapping[str, str]
    has_hidden: bool = False


class Server(ABC):
    """The requests that depend on the extensions of a server. Hashes are complete."""

    def __init__(self, session: RestSession) -> None:
        self.session = session

    # -- reading ----------------------------------------------------------------------------------
    @abstractmethod
    def settings(self) -> VisibleSettings:
        """Returns the settings of the repository; empty if the server has no settings."""

    @abstractmethod
    def caller(self) -> str | None:
        """Returns the name of the caller that the server authenticated, or None."""

    @abstractmethod
    def messages(self, names: Collection[str]) -> dict[str, str]:
        """Returns the messages of those tags that have one."""

    @abstractmethod
    def reflog(self, name: str | None) -> Iterator[ReflogEntry]:
        """Yields the moves of one or all references, newest first."""

    @abstractmethod
    def divisions(self, at: str, most: int, prefix: ContentKey | None) -> list[ContentKey]:
        """Returns the last key of each part but the final one, for parts of at most `most` keys."""

    @abstractmethod
    def diff(
        self, before: str, after: str, keys: KeyRange, *, whole: bool = False
    ) -> Iterator[DiffEntry]:
        """Yields contents that differ. A server without extensions ignores `whole`."""

    @abstractmethod
    def log_of_key(self, start: str, key: ContentKey, *, operations: bool) -> Iterator[LogEntry]:
        """Yields commits along first parents with an operation on a key, newest first."""

    @abstractmethod
    def last_changes(
        self, at: str, keys: Iterable[ContentKey], *, since: str | None = None
    ) -> dict[ContentKey, CommitMeta]:
        """Returns the newest commit that changed each key.

        With `since`, the search may end at that commit.
        """

    @abstractmethod
    def changes_since(
        self,
        keys: Iterable[ContentKey],
        since: str | None,
        head: str,
        state: Mapping[ContentKey, Content],
    ) -> Mapping[ContentKey, CommitMeta]:
        """Returns the newest commit that changed each key of a conflict.

        Most conflicts come from the commits after `since`. `state` are the contents at `head`.
        """

    @abstractmethod
    def find_request(self, request_id: str, branch: str | None) -> CommitResult | None:
        """Returns the result of the write with this request id, or None."""

    # -- writing ----------------------------------------------------------------------------------
    @abstractmethod
    def check_supported(self, change: Change[Any]) -> None:
        """Raises `InvalidInput` or `NotAllowed` for a change that the server cannot make."""

    @abstractmethod
    def commit(self, change: Commit, request_id: str | None) -> CommitResult:
        """Commits operations, or checks them in a dry run."""

    @abstractmethod
    def merge(self, change: Merge, source: Reference, request_id: str | None) -> MergeResult:
        """Merges `source`, which `change.source` names."""

    @abstractmethod
    def transplant(self, change: Transplant, request_id: str | None) -> MergeResult:
        """Transplants commits."""

    @abstractmethod
    def create_reference(self, change: CreateReference, request_id: str | None) -> Reference:
        """Creates a branch or tag. Raises `AlreadyExists`."""

    @abstractmethod
    def assign_reference(self, change: AssignReference, request_id: str | None) -> Reference:
        """Moves a reference. Raises `ReferenceMoved` unless it is at the expected hash."""

    @abstractmethod
    def rename_reference(self, change: RenameReference, request_id: str | None) -> Reference:
        """Renames a reference. Raises `ReferenceMoved` unless it is at the expected hash."""

    @abstractmethod
    def delete_reference(self, change: DeleteReference, request_id: str | None) -> Reference:
        """Deletes a reference. Raises `ReferenceMoved` unless it is at the expected hash."""

    @abstractmethod
    def put_settings(self, change: PutSettings, request_id: str | None) -> Mapping[str, str | None]:
        """Sets settings of the repository. Returns the previous values."""
