"""One tree of errors, ordered by what a caller would do about them.

Every error is a `NessieError` with a stable `code` (the `errorCode` of the REST API if it has one).
Facts are attributes, not only text, for diagnostics, the server and scripts. A message is one line
and names the place. The command line adds hints that name commands.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar, NamedTuple


class FailedRun(NamedTuple):
    """The run of a pipeline that failed by an error, and its stage."""

    id: str
    branch: str
    stage: str


class NessieError(Exception):
    """Base of all errors of this package.

    `message` is one line without a trailing stop: what failed and why, then the `hint` (what to do)
    if there is one. `run` is the run that `nessie run` worked on.
    """

    code: ClassVar[str] = "UNKNOWN"
    status: ClassVar[int] = 500
    run: FailedRun | None = None

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = f"{message}. Hint: {hint}" if hint else message
        self.hint = hint
        super().__init__(self.message)


class Resolution(NamedTuple):
    """A command line that resolves a conflict.

    `effect` says what it does to other contents than those that it takes, or which content it
    deletes.
    """

    command: str
    effect: str = ""


class WaysOut:
    """The command lines that resolve the conflicts of an error. The base class has none."""

    source = ""
    """The name of theirs; a revert and a batch have none."""
    effect_of_given = ""
    """What the decisions that were given rename, delete and leave out."""
    one_by_one = ""
    """The command that asks about one conflict after the other."""
    combines = False
    """Whether this command combines a table in conflict before it asks."""

    def of(self, conflict: Any) -> Sequence[Resolution]:
        """Returns the command lines that resolve one `model.Conflict`."""
        del conflict
        return ()

    def effect_of_proposed(self, conflict: Any) -> str:
        """Returns what keeping the staged change of a conflict does to others; "" for nothing."""
        del conflict
        return ""

    def reason_against_proposed(self, conflict: Any) -> str:
        """Returns why the staged change of a conflict cannot be kept; "" if it can be."""
        del conflict
        return ""

    def deleted_by_proposed(self, conflict: Any) -> Collection[Any]:
        """Returns the keys of contents of which `effect_of_proposed` says that it deletes them."""
        del conflict
        return ()

    def connected_by_proposed(self, key: Any) -> Sequence[Any]:
        """Returns the keys in conflict whose staged changes are about contents of the same keys."""
        return [key]

    def together(self) -> Sequence[Resolution]:
        """Returns the command lines that resolve all conflicts in one way."""
        return ()


# -- correct the input -----------------------------------------------------------------------------


class InvalidInput(NessieError):
    """The call is invalid: a malformed name, key, hash, content or batch, or not possible here."""

    code = "BAD_REQUEST"
    status = 400


class AmbiguousHash(InvalidInput):
    """Several commits share an abbreviated hash.

    `candidates` are up to ten (hash, subject) pairs.
    """

    def __init__(
        self, message: str, candidates: Sequence[tuple[str, str]], *, hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.candidates = tuple(candidates)


class NothingStaged(NessieError):
    """Nothing is staged or stashed, so the command has nothing to do."""

    code = "NOTHING_STAGED"
    status = 400


# -- name something that exists --------------------------------------------------------------------


class NotFound(NessieError):
    """The named thing does not exist. `name` is its name."""

    code = "REFERENCE_NOT_FOUND"
    status = 404

    def __init__(self, message: str, name: str = "", *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.name = name


class ReferenceNotFound(NotFound):
    """No branch or tag has this name."""


class CommitNotFound(NotFound):
    """No commit has this hash, it is not on the required branch, or two histories are unrelated."""


class ContentNotFound(NotFound):
    """No content has this key. `key` is the `ContentKey`."""

    code = "CONTENT_NOT_FOUND"

    def __init__(self, message: str, key: Any, *, hint: str = "") -> None:
        super().__init__(message, str(key), hint=hint)
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
    """There is no run of the garbage collection with this name."""

    code = "RUN_NOT_FOUND"


# -- read the state again, then decide -------------------------------------------------------------


class AlreadyExists(NessieError):
    """A reference with this name already exists."""

    code = "REFERENCE_ALREADY_EXISTS"
    status = 409

    def __init__(self, message: str, name: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.name = name


class ContentExists(AlreadyExists):
    """A content with this key already exists, although the caller requires a new one."""

    code = "CONTENT_ALREADY_EXISTS"


class FileExists(AlreadyExists):
    """A file with this name already exists."""

    code = "FILE_ALREADY_EXISTS"


class StoreNotEmpty(AlreadyExists):
    """A store that must be empty is not. `name` is its URL."""

    code = "STORE_NOT_EMPTY"


class ReferenceConflict(NessieError):
    """A commit, merge or transplant conflicts with the current state of the branch.

    `conflicts` contains them (`model.Conflict`), and `more` is the number of those that a refused
    commit does not list. `reference` is the branch, `head` its current hash, and `expected_hash`
    the commit that the caller started from. `is_merge` is true if the three states are base, ours
    and theirs, as in a merge, transplant or revert; otherwise they are expected, current and
    proposed. `decided` is what the given decisions do to contents (`model.MergeOption`), None
    without decisions. `source_hash` is the commit of theirs, if only the code that raises knows it.

    The command line sets `ways_out`, and `left` (the keys that the user was asked about and did not
    decide).
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
        more: int = 0,
        hint: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.conflicts = tuple(conflicts)
        self.more = more
        self.reference = reference
        self.head = head
        self.expected_hash = expected_hash
        self.decided: Any = None
        self.source_hash: str | None = None
        self.ways_out = WaysOut()
        self.left: Sequence[Any] = ()


class MergeConflict(ReferenceConflict):
    """Keys of a merge or transplant conflict. `result` is the whole `model.MergeResult`.

    `expected_hash` is the caller's, otherwise the merge base.
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
        self.decided = result.decided


class ReferenceMoved(ReferenceConflict):
    """A reference is not at its expected hash (conflict type UNEXPECTED_HASH), or kept moving.

    `keys` are those that the message names.
    """

    keys: Sequence[Any] = ()


# -- get permission --------------------------------------------------------------------------------


class NotAllowed(NessieError):
    """A rule of the repository forbids this, or the caller is unknown or lacks permission."""

    code = "FORBIDDEN"
    status = 403


class WriteRefused(NotAllowed):
    """A write was refused before anything was written."""


class SettingsUnsupported(NotAllowed):
    """The server keeps no settings of the repository."""


class HookRefused(WriteRefused):
    """A hook of the workspace forbids this, or cannot run."""


# -- try later, or repair the store ----------------------------------------------------------------


class StoreUnavailable(NessieError):
    """The store is unavailable: not reachable, locked, disk full, no permission.

    Nothing was written, unless it is an `OutcomeUnknown`.
    """

    code = "SERVICE_UNAVAILABLE"
    status = 503


class UnsupportedFormat(StoreUnavailable):
    """The file is not a store, or its format is newer than this program supports."""

    code = "UNSUPPORTED_FORMAT"


class DamagedObject(StoreUnavailable):
    """An object is missing, or its bytes do not match its id. `nessie fsck` lists all of them.

    `object_id` is hexadecimal.
    """

    code = "DAMAGED_OBJECT"
    status = 500

    def __init__(self, message: str, object_id: str = "", *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.object_id = object_id


class OutcomeUnknown(StoreUnavailable):
    """The connection was lost after a write was sent, so it may have happened.

    `request_id` serves to look up its outcome.
    """

    code = "OUTCOME_UNKNOWN"

    def __init__(self, message: str, request_id: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.request_id = request_id


class NotInMemory(Exception):
    """Something that a read needs is only in the store. It is read again, from there."""


# -- repair the command line -----------------------------------------------------------------------


class CannotRun(NessieError):
    """A program cannot be found or executed. `exit_code` is that of a shell: 127 or 126."""

    code = "CANNOT_RUN"

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


# -- interrupted by the user -----------------------------------------------------------------------


class Interrupted(NessieError):
    """The user interrupted the program (Ctrl-C), or answered a question with no or abort.

    Only acknowledged writes happened.
    """

    code = "INTERRUPTED"
    status = 499
