"""What the commands of `nessie gc` answer with `--json`, as types, for `cli.documents`."""
# ruff: noqa: N815 (attributes of JSON)

from typing import Literal

from nessie_cli.wire import documents as wire
from nessie_cli.wire.shape import Shape
from nessie_cli.wire.shapes import Count, Digest, Hash, Instant


class CollectorCutoff(Shape):
    """What stays of references whose name fits a pattern."""

    pattern: str
    policy: str


class CollectedReference(Shape):
    """A reference, and where it stood when the run was marked."""

    type: Literal["BRANCH", "TAG"]
    name: str
    hash: Hash


class CollectorApproval(Shape):
    """Who has approved how many files and bytes; it counts for candidates with this digest."""

    by: str
    time: Instant
    digest: Digest
    candidates: Count
    bytes: Count


class CollectorRun(Shape):
    """A run of the garbage collection.

    `times` and `counts` have a name each; `digest` is that of the candidates, null before there are any; `failure` is why the state is FAILED.
    """

    run: str
    state: Literal["MARKING", "MARKED", "PLANNED", "APPROVED", "APPLYING", "APPLIED", "PARTLY", "FAILED"]
    folder: str
    created: Instant
    store: str
    engine: Literal["local", "spark"]
    referenceTime: Instant
    defaultCutoff: str
    cutoffs: list[CollectorCutoff]
    snapshots: Literal["listed", "referenced"]
    graceSeconds: Count
    warehouse: list[str]
    catalog: str | None
    references: list[CollectedReference]
    times: dict[str, Instant]
    counts: dict[str, Count]
    digest: Digest | None
    approval: CollectorApproval | None
    failure: str | None


class CollectorRehearsal(CollectorRun):
    """What would become of the candidates if the run were applied now: a count for each outcome, and `deletedBytes`."""

    wouldBe: dict[str, Count]


class CollectedBase(Shape):
    """How many files are to be deleted below a location, and their bytes."""

    base: str
    files: Count
    bytes: Count


class CollectorFinding(Shape):
    """What could not be read or listed, or was left alone."""

    kind: str
    contentId: str | None
    key: str | None
    reference: str | None
    location: str | None
    base: str | None
    message: str


class ShownCollectorRun(CollectorRun):
    """A run, how much of it is to be deleted where, and what was left alone."""

    bases: list[CollectedBase]
    findings: list[CollectorFinding]


class CollectorRuns(wire.Listing):
    """Runs of the garbage collection, the newest first."""

    runs: list[CollectorRun]


class CollectorCandidate(Shape):
    """A file to be deleted, as it was when it was listed."""

    location: str
    bytes: Count
    modified: Instant
    base: str


class CollectorCandidates(wire.Listing):
    """The files to be deleted, in the order in which that happens."""

    candidates: list[CollectorCandidate]


class KeptCandidate(Shape):
    """A file that was not deleted when the run was applied, and why."""

    location: str
    outcome: Literal["FAILED", "CHANGED", "OUTSIDE", "LIVE", "PROTECTED"]
    message: str


class KeptCandidates(wire.Listing):
    """The files that were not deleted when the run was applied."""

    kept: list[KeptCandidate]
