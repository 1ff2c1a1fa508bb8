"""The engine for small jobs: threads of this process read the files, a window ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from nessie_cli.audit.checks import audit_content, shared_uuid
from nessie_cli.audit.findings import AuditCounts, AuditFinding, ContentAudit, Holder
from nessie_cli.iceberg.files import Files
from nessie_cli.model import Entry
from nessie_cli.model.progress import Progress

S = TypeVar("S")
T = TypeVar("T")

THREADS = 16
"""The number of files read at the same time. Nearly all of the work is waiting for them."""
_AHEAD = 4 * THREADS


def findings(
    entries: Iterable[Entry],
    counts: AuditCounts,
    progress: Progress | None = None,
    files: Files | None = None,
) -> Generator[AuditFinding]:
    """Yields the findings about contents in their order, then about several of them together.

    `counts` grows meanwhile. Entries have their contents; errors of reading them are passed on.
    Memory: one UUID for each table.
    """
    holders: dict[str, list[Holder]] = {}
    files = files or Files()

    def audit(entry: Entry) -> ContentAudit:
        return (
            audit_content(entry.key, entry.content, files)
            if entry.content
            else ContentAudit(entry.key, entry.content_id)
        )

    for audited in each(entries, audit, progress):
        counts.add(audited)
        yield from audited.findings
        if audited.uuid is not None:
            holders.setdefault(audited.uuid, []).append((audited.key, audited.content_id))
    shared = (
        finding
        for uuid, holders_of_it in holders.items()
        for finding in shared_uuid(uuid, holders_of_it)
    )
    yield from sorted(shared, key=lambda finding: finding.key)


def each(
    items: Iterable[S], work: Callable[[S], T], progress: Progress | None = None
) -> Iterator[T]:
    """Yields the results of `work` in the order of the items. `work` runs in other threads."""
    waiting: deque[Future[T]] = deque()
    done = 0

    def next_one() -> T:
        nonlocal done
        result = waiting.popleft().result()
        done += 1
        if progress:
            progress(done, None)
        return result

    with ThreadPoolExecutor(THREADS, thread_name_prefix="audit") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) >= _AHEAD:
                    yield next_one()
            while waiting:
                yield next_one()
        finally:
            for future in waiting:
                future.cancel()
