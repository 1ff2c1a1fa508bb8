"""The JSON of the command line beyond REST: additions to `shapes`, and other shapes.

Attributes are added, never renamed or removed. The schemas in `docs/reference/json/` are generated
from these classes and the results of the commands. `facts` encodes them; a test compares both.
"""
# ruff: noqa: N815 (attributes of JSON)

from operator import itemgetter
from typing import Literal, TypeVar

from nessie_cli.wire.commits import CommitMeta
from nessie_cli.wire.contents import Key
from nessie_cli.wire.merges import BareConflict, BareMerge, CleanMergeDetail, MergeOutcome, Rename
from nessie_cli.wire.shape import NotRequired, Shape, of
from nessie_cli.wire.shapes import (
    Content,
    Count,
    ErrorLine,
    Hash,
    KeyDetails,
)

T = TypeVar("T")


def _itself(value: T) -> T:
    return value


# -- records ---------------------------------------------------------------------------------------


class MetadataFact(Shape):
    """A difference between two metadata files: its kind, its name, and the text on each side."""

    what: str
    name: str | None = of(lambda fact: fact.name or None)
    from_: str | None = of("before")
    to: str | None = of("after")


class Problem(Shape):
    """A defect that `nessie fsck` found; `where` is an object id or a reference name."""

    kind: str
    where: str
    message: str


class ExpiredRows(Shape):
    """How many entries of the reflog and request ids have expired."""

    reflog: Count = of("moves")
    requests: Count


class DeletedObjects(Shape):
    """How many objects of one kind were deleted, and the bytes that they took."""

    objects: Count
    bytes: Count = of("size")


class DeletedByKind(Shape):
    """Deleted objects by kind."""

    commits: DeletedObjects = of(itemgetter("commit"))
    nodes: DeletedObjects = of(itemgetter("node"))
    values: DeletedObjects = of(itemgetter("value"))


class StoreSizes(Shape):
    """Bytes of the store on disk before and after.

    `free` bytes inside it are used again; null if that is not known.
    """

    before: Count = of("size_before")
    after: Count = of("size_after")
    free: Count | None


class Maintenance(Shape):
    """What `nessie store maintain` did, or would do in a dry run."""

    dryRun: bool
    expired: ExpiredRows = of(_itself)
    deleted: DeletedByKind = of("reclaimed")
    kept: Count
    size: StoreSizes = of(_itself)


# -- conflicts and merges --------------------------------------------------------------------------


class Conflict(Shape):
    """A conflict with its three contents, the commit that changed the key, and its resolutions.

    Resolutions are command lines; `effects` says what each of them deletes or moves beside the
    content that it takes ("" for nothing). A merge, transplant or revert also names the contents
    `base`, `ours` and `theirs`. The key is that on ours, else on theirs. `keyIsAmbiguous` is
    whether it is also a key of another content in conflict, so that a decision must name
    `contentId`. `commit` is the transplanted commit.
    """

    _: BareConflict = of(_itself)
    expected: Content | None
    actual: Content | None
    proposed: Content | None
    base: NotRequired[Content | None]
    ours: NotRequired[Content | None]
    theirs: NotRequired[Content | None]
    changedBy: CommitMeta | None
    resolutions: list[str]
    effects: list[str]
    sourceRename: NotRequired[Rename]
    targetRename: NotRequired[Rename]
    contentId: NotRequired[str]
    baseKey: NotRequired[Key | None]
    theirsKey: NotRequired[Key | None]
    keyIsAmbiguous: NotRequired[bool] = of("is_ambiguous")
    commit: NotRequired[Hash]


class MergeDetail(Shape):
    """A key of a merge: its content on the target before, and the result.

    `source` is the same content on the source, under whatever key.
    """

    _: CleanMergeDetail = of(_itself)
    conflict: NotRequired[Conflict]
    source: Content | None
    target: Content | None
    result: Content | None


class Merge(Shape):
    """What a merge or transplant did. A transplant skips commits without an effect."""

    _: MergeOutcome = of(_itself)
    details: list[MergeDetail]
    skippedCommits: NotRequired[list[Hash]] = of("skipped")


# -- errors ----------------------------------------------------------------------------------------


class ConflictDetails(Shape):
    """All conflicts of an operation.

    `hash` is the current hash of the reference, `expectedHash` the one that the caller expected.
    """

    type: Literal["REFERENCE_CONFLICTS"]
    conflicts: list[Conflict]
    reference: str | None
    hash: Hash | None
    expectedHash: Hash | None
    mergeResult: NotRequired[BareMerge]


class NameDetails(Shape):
    """The name that does not exist, or already exists."""

    type: Literal["NAME"]
    name: str


class Candidate(Shape):
    """A commit that an abbreviated hash may mean."""

    hash: Hash
    message: str


class CandidateDetails(Shape):
    """The commits that share an abbreviated hash; at most ten."""

    type: Literal["HASH_CANDIDATES"]
    candidates: list[Candidate]


class RequestDetails(Shape):
    """The request whose outcome is unknown."""

    type: Literal["REQUEST"]
    requestId: str


class ObjectDetails(Shape):
    """The object that is damaged or missing."""

    type: Literal["OBJECT"]
    objectId: str


class Error(ErrorLine):
    """A failure. `errorCode` is for programs, `message` is the line on stderr.

    `errorDetails` depends on the code.
    """

    errorDetails: NotRequired[
        ConflictDetails
        | KeyDetails
        | NameDetails
        | CandidateDetails
        | RequestDetails
        | ObjectDetails
    ]


class ErrorAnswer(Shape):
    """The answer of a command that failed."""

    error: Error


# -- listings --------------------------------------------------------------------------------------


class Listing(Shape):
    """The attributes of every listing.

    `error` is present only if it broke off after these records.
    """

    error: NotRequired[Error]


class Page(Listing):
    """A listing in the form of a page of the REST API; `token` is always null here.

    `hasMore` is true if a limit cut it short.
    """

    hasMore: bool
    token: str | None
