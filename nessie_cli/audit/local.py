"""The engine for small jobs: files are read by some threads of this process, at most a window of them ahead of whoever takes the results."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from nessie_cli.audit.checks import audit_content, shared_uuid
from nessie_cli.audit.findings import Audited, Counts, Finding, Holder
from nessie_cli.iceberg.files import Files
from nessie_cli.model import Entry
from nessie_cli.model.progress import Progress

S = TypeVar("S")
T = TypeVar("T")

THREADS = 16
"""Files that are read at the same time: nearly all of the work is waiting for them."""
_AHEAD = 4 * THREADS


def findings(
    entries: Iterable[Entry], counts: Counts, progress: Progress | None = None
) -> Generator[Finding]:
    """What is wrong with these contents, in their order, and then what is wrong with several of them together; `counts` grows meanwhile.

    Entries come with their contents. What reading them raises is raised; what is wrong with a content is a finding. Memory: a uuid for each table.
    """
    holders: dict[str, list[Holder]] = {}
    files = Files()

    def audit(entry: Entry) -> Audited:
        return (
            audit_content(entry.key, entry.content, files)
            if entry.content
            else Audited(entry.key, entry.content_id)
        )

    for audited in each(entries, audit, progress):
        counts.add(audited)
        yield from audited.findings
        if audited.uuid is not None:
            holders.setdefault(audited.uuid, []).append((audited.key, audited.content_id))
    shared = (finding for uuid, found in holders.items() for finding in shared_uuid(uuid, found))
    yield from sorted(shared, key=lambda finding: finding.key)


def each(
    items: Iterable[S], work: Callable[[S], T], progress: Progress | None = None
) -> Iterator[T]:
    """What `work` answers for each item, in their order; items are taken in this thread, work is done in others."""
    waiting: deque[Future[T]] = deque()
    done = 0

    def next_one() -> T:
        nonlocal done
        found = waiting.popleft().result()
        done += 1
        if progress:
            progress(done, None)
        return found

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
