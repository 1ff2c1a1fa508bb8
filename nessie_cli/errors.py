"""One tree of errors, ordered by what a caller would do about them.

Every error is a `NessieError` with a stable `code` (the REST API's `errorCode` where it has one) and carries its facts as attributes, never only
in its text: diagnostics, the REST server and scripts read the attributes. Messages are one line and name the place. Hints that name
commands are added by the command line, the only room that knows command names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar


class NessieError(Exception):
    """Base of all errors of this package. `message` is one line without a trailing stop."""

    code: ClassVar[str] = "UNKNOWN"
    status: ClassVar[int] = 500

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


Resolutions = Callable[[Any], Sequence[str]]
"""Returns the command lines that resolve a `model.Conflict`."""


def no_resolutions(_: Any) -> Sequence[str]:
    """Returns no command line."""
    return ()


# -- mend the input -----------------------------------------------------------------------------------------------------------------


class InvalidInput(NessieError):
    """The caller gave something that can never work: a malformed name, key, hash, content, batch or argument."""

    code = "BAD_REQUEST"
    status = 400


class AmbiguousHash(InvalidInput):
    """A shortened hash that several commits share; `candidates` are (hash, subject) pairs, at most ten."""

    def __init__(self, message: str, candidates: Sequence[tuple[str, str]]) -> None:
        super().__init__(message)
        self.candidates = tuple(candidates)


# -- name something that exists -----------------------------------------------------------------------------------------------------


class NotFound(NessieError):
    """What was named does not exist. `name` is the missing thing as text."""

    code = "REFERENCE_NOT_FOUND"
    status = 404

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class ReferenceNotFound(NotFound):
    """No branch or tag has this name."""


class CommitNotFound(NotFound):
    """No commit has this hash, or it is not on the branch where it has to be, or two histories share no commit."""


class ContentNotFound(NotFound):
    """No content has this key. `key` is the `ContentKey`."""

    code = "CONTENT_NOT_FOUND"

    def __init__(self, message: str, key: Any) -> None:
        super().__init__(message, str(key))
        self.key = key


class StoreNotFound(NotFound):
    """There is no store at this URL, or no workspace here."""

    code = "STORE_NOT_FOUND"


class FileNotFound(NotFound):
    """There is no file of this name."""

    code = "FILE_NOT_FOUND"


class SettingNotFound(NotFound):
    """A setting has no value."""

    code = "SETTING_NOT_FOUND"


class RunNotFound(NotFound):
    """There is no run of the garbage collection of this name."""

    code = "RUN_NOT_FOUND"


# -- look again, then decide --------------------------------------------------------------------------------------------------------


class AlreadyExists(NessieError):
    """A reference of this name exists already."""

    code = "REFERENCE_ALREADY_EXISTS"
    status = 409

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


class ContentExists(AlreadyExists):
    """A content of this key exists already, where the caller insists on a new one."""

    code = "CONTENT_ALREADY_EXISTS"


class FileExists(AlreadyExists):
    """A file of this name exists already."""

    code = "FILE_ALREADY_EXISTS"


class StoreNotEmpty(AlreadyExists):
    """A store that has to be empty contains something. `name` is its URL."""

    code = "STORE_NOT_EMPTY"


class ReferenceConflict(NessieError):
    """A commit, merge or transplant is not possible as the branch now stands.

    `conflicts` holds every one of them at once (`model.Conflict`). `reference` and `head` say where, `expected_hash` where the caller started.
    `is_merge` is true if the three states are base, ours and theirs, as those of a merge, transplant or revert; otherwise they are expected,
    current and proposed. The command line sets `resolutions`, `resolver` (the command line that asks about one conflict after the other), and
    `source` (the name of their side).
    """

    code = "REFERENCE_CONFLICT"
    status = 409
    is_merge = False

    def __init__(
        self,
        message: str,
        conflicts: Sequence[Any] = (),
        *,
        reference: str | None = None,
        head: str | None = None,
        expected_hash: str | None = None,
    ) -> None:
        super().__init__(message)
        self.conflicts = tuple(conflicts)
        self.reference = reference
        self.head = head
        self.expected_hash = expected_hash
        self.resolutions: Resolutions = no_resolutions
        self.resolver = ""
        self.source = ""


class MergeConflict(ReferenceConflict):
    """Keys of a merge or transplant are in conflict. `result` is the whole `model.MergeResult`.

    `expected_hash` is the caller's, else the merge base: where both sides still agreed.
    """

    is_merge = True

    def __init__(self, message: str, conflicts: Sequence[Any], result: Any) -> None:
        super().__init__(
            message,
            conflicts,
            reference=result.target_branch,
            head=result.effective_target_hash,
            expected_hash=result.expected_hash or result.common_ancestor,
        )
        self.result = result


class ReferenceMoved(ReferenceConflict):
    """A reference is not where the caller said it has to be (conflict type UNEXPECTED_HASH), or lost every race for it."""


# -- ask somebody ---------------------------------------------------------------------------------------------------------------------


class NotAllowed(NessieError):
    """A rule of the repository or the missing rights of the caller forbid this."""

    code = "FORBIDDEN"
    status = 403


# -- try later, or look after the store -----------------------------------------------------------------------------------------------


class StoreUnavailable(NessieError):
    """The store cannot be used now: not reachable, locked for too long, disk full, no permission. Nothing was written."""

    code = "SERVICE_UNAVAILABLE"
    status = 503


class UnsupportedFormat(StoreUnavailable):
    """The file is no store of ours, or one of a newer format than this program knows."""

    code = "UNSUPPORTED_FORMAT"


class DamagedObject(StoreUnavailable):
    """Stored bytes are not what their id says, or an object is missing. `object_id` is hex. `nessie fsck` lists all of them."""

    code = "DAMAGED_OBJECT"
    status = 500

    def __init__(self, message: str, object_id: str = "") -> None:
        super().__init__(message)
        self.object_id = object_id


class OutcomeUnknown(StoreUnavailable):
    """The connection was lost after a write was sent. `request_id` finds out later whether it happened."""

    code = "OUTCOME_UNKNOWN"

    def __init__(self, message: str, request_id: str) -> None:
        super().__init__(message)
        self.request_id = request_id


# -- the user's own doing --------------------------------------------------------------------------------------------------------------


class Interrupted(NessieError):
    """The user has interrupted the program (Ctrl-C). What was acknowledged is done, nothing else is."""

    code = "INTERRUPTED"
    status = 499
