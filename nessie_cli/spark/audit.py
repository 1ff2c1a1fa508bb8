"""The audit as Spark jobs: tasks check ranges of keys, and shared files are found by UUID."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

from pyspark import RDD, StorageLevel
from pyspark.sql import SparkSession

from nessie_cli.audit.checks import shared_uuid
from nessie_cli.audit.findings import AuditCounts, AuditFinding, ContentAudit, Holder
from nessie_cli.model import ContentKey
from nessie_cli.repository.base import Repository
from nessie_cli.spark.file_checks import audits
from nessie_cli.spark.jobs import ranges, spread
from nessie_cli.spark.keys import KeyPart

CONTENTS_PER_TASK = 500
"""A content costs some requests to a file system, so the parts are small."""
_PARTS_AT_ONCE = 16
"""The number of parts whose findings the driver holds at a time."""


def audited(
    spark: SparkSession, url: str, at: str, prefix: ContentKey | None, counts: AuditCounts
) -> Generator[AuditFinding]:
    """Yields the findings of `audit.local.findings` for a commit, or its keys below `prefix`.

    `counts` is complete before the first finding. Memory of the driver: the findings about some
    thousand contents.
    """

    def plan(repository: Repository) -> list[KeyPart]:
        return ranges(repository, KeyPart(None, at, prefix=prefix), CONTENTS_PER_TASK)

    checked = spread(spark, url, "audit", plan, _audited).persist(StorageLevel.DISK_ONLY)
    try:
        parts = checked.mapPartitions(_summed).collect()
        for part in parts:
            counts.add_all(part)
        wrong = [number for number, part in enumerate(parts) if part.wrong]
        for first in range(0, len(wrong), _PARTS_AT_ONCE):
            yield from spark.sparkContext.runJob(
                checked, _findings, wrong[first : first + _PARTS_AT_ONCE]
            )
        if sum(part.uuids for part in parts) > 1:
            yield from sorted(_shared(checked), key=lambda finding: finding.key)
    finally:
        checked.unpersist()


class _TaskCounts(AuditCounts):
    """The counts of one task: checked contents, findings, and contents by UUID."""

    wrong: int = 0
    uuids: int = 0


def _audited(repository: Repository, part: KeyPart) -> Iterator[ContentAudit]:
    return (content_audit for _, content_audit in audits(repository, part))


def _summed(content_audits: Iterable[ContentAudit]) -> Iterator[_TaskCounts]:
    part = _TaskCounts()
    for content_audit in content_audits:
        part.add(content_audit)
        part.wrong += bool(content_audit.findings)
        part.uuids += content_audit.uuid is not None
    yield part


def _findings(content_audits: Iterable[ContentAudit]) -> list[AuditFinding]:
    return [finding for content_audit in content_audits for finding in content_audit.findings]


def _shared(checked: RDD[ContentAudit]) -> Iterator[AuditFinding]:
    holders = checked.flatMap(_held).groupByKey().mapValues(sorted).filter(_several)
    for uuid, users in holders.collect():
        yield from shared_uuid(uuid, users)


def _held(content_audit: ContentAudit) -> list[tuple[str, Holder]]:
    return (
        []
        if content_audit.uuid is None
        else [(content_audit.uuid, (content_audit.key, content_audit.content_id))]
    )


def _several(held: tuple[str, list[Holder]]) -> bool:
    return len(held[1]) > 1
