"""Shapes that only a server sends: pages, configuration, and the differences of REST v1."""
# ruff: noqa: D101, N815 (the names are the specification's; attributes of JSON)

from operator import itemgetter
from typing import Any, Literal

from nessie_cli.model import NO_ANCESTOR
from nessie_cli.wire.bodies import GarbageCollectorConfig
from nessie_cli.wire.commits import BareLogEntry, CommitMeta, LogEntryV1
from nessie_cli.wire.contents import Key
from nessie_cli.wire.encode import ENCODERS, encode_reference_v1
from nessie_cli.wire.entries import BareDiffEntry, BareEntry, EntryV1
from nessie_cli.wire.merges import BareConflict, MergeResponseV1
from nessie_cli.wire.references import DetachedReference, NamedReferenceV1
from nessie_cli.wire.shape import NotRequired, OneOf, Shape, of
from nessie_cli.wire.shapes import (
    Content,
    ErrorLine,
    Hash,
    Instant,
    KeyDetails,
    Reference,
)

SPEC_VERSION = "2.2.0"
"""The version of the Nessie specification that a server announces."""

# -- version 2 -------------------------------------------------------------------------------------


class BarePage(Shape):
    """A page of a listing; `token` is null on the last one."""

    hasMore: bool
    token: str | None


class ReferencesResponse(BarePage):
    references: list[Reference]


class LogResponse(BarePage):
    logEntries: list[BareLogEntry]


class EntriesResponse(BarePage):
    entries: list[BareEntry]
    effectiveReference: Reference


class DiffResponse(BarePage):
    diffs: list[BareDiffEntry]
    effectiveFromReference: Reference
    effectiveToReference: Reference


class ContentOfKey(Shape):
    key: Key = of(itemgetter(0))
    content: Content = of(itemgetter(1))


class GetMultipleContentsResponse(Shape):
    contents: list[ContentOfKey]
    effectiveReference: Reference


class ReferenceState(Shape):
    commitHash: Hash
    commitConsistency: str
    meta: CommitMeta | None


class ReferenceHistoryResponse(Shape):
    reference: Reference
    current: ReferenceState
    previous: list[ReferenceState]
    commitLogConsistency: str


class NessieConfiguration(Shape):
    defaultBranch: str
    minSupportedApiVersion: Literal[1]
    maxSupportedApiVersion: Literal[2]
    actualApiVersion: Literal[2]
    specVersion: str = of(lambda _: SPEC_VERSION)
    noAncestorHash: Hash = of(lambda _: NO_ANCESTOR)
    repositoryCreationTimestamp: NotRequired[Instant] = of("created")
    oldestPossibleCommitTimestamp: NotRequired[Instant] = of("created")


class RepositoryConfigResponse(Shape):
    configs: NotRequired[list[GarbageCollectorConfig]]


class UpdateRepositoryConfigResponse(Shape):
    previous: GarbageCollectorConfig | None


class BareConflictDetails(Shape):
    type: Literal["REFERENCE_CONFLICTS"]
    conflicts: list[BareConflict]


class NessieError(ErrorLine):
    errorDetails: NotRequired[BareConflictDetails | KeyDetails]
    serverStackTrace: None


# -- version 1 -------------------------------------------------------------------------------------


class ReferenceV1(OneOf):
    shapes = (NamedReferenceV1, DetachedReference)


ENCODERS[ReferenceV1] = encode_reference_v1


class ReferencesResponseV1(BarePage):
    references: list[ReferenceV1]


class LogResponseV1(BarePage):
    logEntries: list[LogEntryV1]


class EntriesResponseV1(BarePage):
    entries: list[EntryV1]


class DiffResponseV1(BarePage):
    diffs: list[BareDiffEntry]


class GetMultipleContentsResponseV1(Shape):
    contents: list[ContentOfKey]


class NamespacesResponse(Shape):
    namespaces: list[Content]


class NessieConfigurationV1(Shape):
    """The configuration of a server; old clients accept nothing more."""

    defaultBranch: str
    maxSupportedApiVersion: Literal[2]


ANSWERS: list[Any] = [
    *(
        shape
        for shape in vars().values()
        if isinstance(shape, type)
        and issubclass(shape, Shape | OneOf)
        and shape.__module__ == __name__
    ),
    MergeResponseV1,
]
"""All of these shapes."""
