"""The structs of the command line beyond REST: conflicts, merges and errors in detail.

Attributes are added, never renamed or removed. The schemas in `docs/reference/json/` are generated
from these structs and those of the commands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from msgspec import UNSET, Struct, UnsetType

from nessie_cli import errors, model
from nessie_cli.wire.commits import CommitMeta, optional_meta
from nessie_cli.wire.contents import AnyContent, Key, optional_content, optional_key
from nessie_cli.wire.errors import ErrorLine, KeyDetails, error_line
from nessie_cli.wire.merges import (
    BareConflict,
    BareMerge,
    CleanMergeDetail,
    Collision,
    MergeOutcome,
    Rename,
    TableCombination,
    content_in_conflict,
    merge_outcome,
)
from nessie_cli.wire.scalars import Hash

# -- conflicts and merges --------------------------------------------------------------------------


class Conflict(BareConflict, kw_only=True):
    """A conflict with its three contents, the commit that changed the key, and its resolutions.

    Resolutions are command lines; `effects` says what each of them deletes or moves beside the
    content that it takes ("" for nothing). A merge, transplant or revert also names the contents
    `base`, `ours` and `theirs`. The key is that on ours, else on theirs. `keyIsAmbiguous` is
    whether it is also a key of another content in conflict, so that a decision must name
    `contentId`. `commit` is the transplanted commit. `sameFileKey` is the key of another content of
    ours with the same metadata file. `blockingNamespace` is a namespace with contents that theirs
    would remove, so theirs cannot be taken. `collisions` say why the files of a table do not
    combine, and `theirsChangedBy` is then the last commit of the source of a merge that changed it.
    """

    expected: AnyContent | None
    actual: AnyContent | None
    proposed: AnyContent | None
    base: AnyContent | UnsetType | None = UNSET
    ours: AnyContent | UnsetType | None = UNSET
    theirs: AnyContent | UnsetType | None = UNSET
    changed_by: CommitMeta | None
    resolutions: list[str]
    effects: list[str]
    source_rename: Rename | UnsetType = UNSET
    target_rename: Rename | UnsetType = UNSET
    content_id: str | UnsetType = UNSET
    base_key: Key | UnsetType | None = UNSET
    theirs_key: Key | UnsetType | None = UNSET
    key_is_ambiguous: bool | UnsetType = UNSET
    commit: Hash | UnsetType = UNSET
    same_file_key: Key | UnsetType = UNSET
    blocking_namespace: Key | UnsetType = UNSET
    collisions: list[Collision] | UnsetType = UNSET
    theirs_changed_by: CommitMeta | UnsetType = UNSET

    @classmethod
    def of_merge(
        cls, conflict: model.Conflict, resolutions: Sequence[errors.Resolution] = ()
    ) -> Self:
        """Returns the struct of a conflict of a merge, transplant or revert."""
        struct = cls.of(conflict, resolutions)
        struct.base, struct.ours, struct.theirs = struct.expected, struct.actual, struct.proposed
        return struct

    @classmethod
    def of(cls, conflict: model.Conflict, resolutions: Sequence[errors.Resolution] = ()) -> Self:
        """Returns the struct of a conflict."""
        return cls(
            conflict.type.value,
            optional_key(conflict.key),
            conflict.message,
            expected=optional_content(conflict.expected),
            actual=optional_content(conflict.actual),
            proposed=optional_content(conflict.proposed),
            changed_by=optional_meta(conflict.changed_by),
            resolutions=[resolution.command for resolution in resolutions],
            effects=[resolution.effect for resolution in resolutions],
            collisions=list(map(Collision.of, conflict.collisions)) or UNSET,
            theirs_changed_by=optional_meta(conflict.theirs_changed_by) or UNSET,
            **content_in_conflict(conflict),
        )


class MergeDetail(CleanMergeDetail, kw_only=True):
    """A key of a merge: its content on the target before, and the result.

    `source` is the same content on the source, under whatever key. `combination` is there if the
    result combines the files of both sides.
    """

    conflict: Conflict | UnsetType = UNSET
    source: AnyContent | None
    target: AnyContent | None
    result: AnyContent | None
    combination: TableCombination | UnsetType = UNSET

    @classmethod
    def of(cls, detail: model.MergeDetail) -> Self:
        """Returns the struct of a key of a merge."""
        return cls(
            Key.of(detail.key),
            detail.behavior.value,
            conflict=Conflict.of_merge(detail.conflict) if detail.conflict else UNSET,
            source=optional_content(detail.source),
            target=optional_content(detail.target),
            result=optional_content(detail.result),
            combination=TableCombination.of(detail.combination) if detail.combination else UNSET,
        )


class DetailedMerge(MergeOutcome, kw_only=True):
    """What a merge or transplant did. A transplant skips commits without an effect."""

    details: list[MergeDetail]
    skipped_commits: list[Hash] | UnsetType = UNSET

    @classmethod
    def of(cls, result: model.MergeResult) -> Self:
        """Returns the struct of the result of a merge or transplant."""
        return cls(
            **merge_outcome(result),
            details=list(map(MergeDetail.of, result.details)),
            skipped_commits=list(result.skipped) or UNSET,
        )


# -- errors ----------------------------------------------------------------------------------------


class _Details(Struct, rename="camel", tag_field="type"):
    """The base of the details of an error."""


class ConflictDetails(_Details, tag="REFERENCE_CONFLICTS"):
    """All conflicts of an operation.

    `hash` is the current hash of the reference, `expectedHash` the one that the caller expected.
    """

    conflicts: list[Conflict]
    reference: str | None
    hash: Hash | None
    expected_hash: Hash | None
    merge_result: BareMerge | UnsetType = UNSET

    @classmethod
    def of(cls, error: errors.ReferenceConflict) -> Self:
        """Returns the details of an error about conflicts."""
        describe = Conflict.of_merge if error.is_merge else Conflict.of
        return cls(
            [describe(conflict, error.ways_out.of(conflict)) for conflict in error.conflicts],
            error.reference,
            error.head,
            error.expected_hash,
            BareMerge.of(error.result) if isinstance(error, errors.MergeConflict) else UNSET,
        )


class NameDetails(_Details, tag="NAME"):
    """The name that does not exist, or already exists."""

    name: str


class Candidate(Struct):
    """A commit that an abbreviated hash may mean."""

    hash: Hash
    message: str


class CandidateDetails(_Details, tag="HASH_CANDIDATES"):
    """The commits that share an abbreviated hash; at most ten."""

    candidates: list[Candidate]


class RequestDetails(_Details, tag="REQUEST"):
    """The request whose outcome is unknown."""

    request_id: str


class ObjectDetails(_Details, tag="OBJECT"):
    """The object that is damaged or missing."""

    object_id: str


Details = (
    ConflictDetails | KeyDetails | NameDetails | CandidateDetails | RequestDetails | ObjectDetails
)


class Error(ErrorLine):
    """A failure. `errorCode` is for programs, `message` is the line on stderr.

    `errorDetails` depends on the code.
    """

    error_details: Details | UnsetType = UNSET

    @classmethod
    def of(cls, error: errors.NessieError) -> Self:
        """Returns the struct of an error, with the contents of its conflicts."""
        return cls(**error_line(error), error_details=_details(error))


def _details(error: errors.NessieError) -> Details | UnsetType:  # noqa: PLR0911 - a table of types
    match error:
        case errors.ReferenceConflict() if error.conflicts or error.reference:
            return ConflictDetails.of(error)
        case errors.AmbiguousHash():
            return CandidateDetails([Candidate(*candidate) for candidate in error.candidates])
        case errors.OutcomeUnknown():
            return RequestDetails(error.request_id)
        case errors.DamagedObject() if error.object_id:
            return ObjectDetails(error.object_id)
        case errors.ContentNotFound():
            return KeyDetails(Key.of(error.key))
        case errors.NotFound() | errors.AlreadyExists() if error.name:
            return NameDetails(error.name)
    return UNSET


class FailedRun(Struct):
    """The run that failed: its stage is command, check, conflict or publish."""

    id: str
    branch: str
    stage: str


class ErrorAnswer(Struct):
    """The answer of a command that failed. `run` is that of `nessie run`."""

    error: Error
    run: FailedRun | UnsetType = UNSET

    @classmethod
    def of(cls, error: errors.NessieError) -> Self:
        """Returns the document of an error."""
        return cls(Error.of(error), UNSET if error.run is None else FailedRun(*error.run))
