"""The common parts of dumping and loading any store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from msgspec import MsgspecError, json
from msgspec.structs import replace

from nessie_cli.errors import DamagedObject, StoreNotEmpty
from nessie_cli.model import SETTING_PREFIX
from nessie_cli.model.progress import Progress
from nessie_cli.model.runs import PipelineRun, RunState
from nessie_cli.store.chain import chain_of_setting, is_setting
from nessie_cli.store.records import Counts, PackedObject, StoredRun, StoredSettings
from nessie_cli.store.rows import Row, verified, with_check

T = TypeVar("T")

_ROWS = 5_000
_BYTES = 8 << 20
_PER_ROW = 200  # bytes that a row takes in memory beside its packed object


def checked(url: str, id_: bytes, kind: int, packed: bytes, index: Iterable[bytes]) -> PackedObject:
    """Returns an object of a dump. Raises `DamagedObject` if its checksum is wrong."""
    try:
        verified(id_, kind, packed)
    except (ValueError, TypeError, OverflowError) as error:
        name = (id_ or b"").hex()
        raise DamagedObject(f"store {url}: object {name} is damaged: {error}", name) from None
    return PackedObject(id_, kind, packed, tuple(index))


def require_empty(url: str, counts: Counts, settings_version: int) -> None:
    """Raises `StoreNotEmpty` unless a store contains at most what `nessie init` writes.

    That is one write: the default branch with its reflog entry and request, and the first settings.
    """
    if (
        counts.objects
        or max(counts.references, counts.moves, counts.requests, settings_version) > 1
    ):
        raise StoreNotEmpty(
            f"store {url} is not empty, so nothing was loaded", url, hint="load into a new store"
        )


def setting_rows(
    settings: StoredSettings, replaced: Iterable[str], version: int, newest: Mapping[str, bytes]
) -> tuple[list[Row], list[Row]]:
    """Returns the rows of settings to load, and of the anchors of those without reflog entries.

    `replaced` and `version` are the names and the version of the settings before the load, and
    `newest` has the digest of the newest entry of each chain.
    """
    # No cached settings have this version.
    version = max(settings.version, version + 1)
    # A setting that the dump lacks is removed: its row keeps the version.
    # So is one whose entry says that it was.
    logged = [name.removeprefix(SETTING_PREFIX) for name in newest if is_setting(name)]
    rows, anchors = [], []
    for name in sorted({*replaced, *settings.values, *logged}):
        chain = chain_of_setting(name)
        entry = newest.get(chain, b"")
        rows.append(with_check("settings", name, settings.values.get(name), version, entry))
        if not entry:
            anchors.append(with_check("anchors", chain, b""))
    return rows, anchors


def batches(rows: Iterable[T], size_of: Callable[[T], int] = lambda _: 0) -> Iterator[list[T]]:
    """Yields rows in lists that fit into memory."""
    batch: list[T] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += size_of(row) + _PER_ROW
        if len(batch) >= _ROWS or size >= _BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def packed_size(stored: PackedObject) -> int:
    """Returns the number of bytes of an object."""
    return len(stored.packed) + sum(map(len, stored.index))


COPIED = "the store was copied while the run was running"
"""The reason of a failed run that was running when a dump was opened."""


def loaded_runs(runs: Iterable[StoredRun]) -> Iterator[StoredRun]:
    """Yields the records of a dump for another store.

    The process of a running run does not work on the copy, and its tokens are not for it: there,
    the run has failed. It can be resumed if its command had ended. Raises `DamagedObject`.
    """
    for stored in runs:
        if stored.state != RunState.RUNNING:
            yield stored
            continue
        try:
            run = json.decode(stored.data, type=PipelineRun)
        except MsgspecError as error:
            raise DamagedObject(
                f"the record of run {stored.id} cannot be read: {error}", stored.id
            ) from None
        failed = replace(
            run, state=RunState.FAILED, reason=COPIED, tokens=(), ended=run.seen or run.began
        )
        yield StoredRun(run.id, failed.state, json.encode(failed), stored.version + 1)


class LoadProgress:
    """Reports the number of loaded rows of a dump."""

    def __init__(self, counts: Counts, progress: Progress | None) -> None:
        self._total = counts.objects + counts.references + counts.moves + counts.requests
        self._progress = progress
        self._done = 0

    def add(self, rows: int) -> None:
        """Reports more loaded rows."""
        self._done += rows
        if self._progress is not None:
            self._progress(self._done, self._total)
