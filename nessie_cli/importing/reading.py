"""The metadata of the contents of a source, read in parallel, each file once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from nessie_cli.errors import InvalidInput, NessieError, StoreUnavailable
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.locations import local_path, scheme_of, shown
from nessie_cli.iceberg.metadata import Document
from nessie_cli.importing.metadata_files import (
    SourceMetadata,
    cannot_write,
    checked_document,
    copy_location,
    read_source,
)
from nessie_cli.importing.source import Name, SourceContent
from nessie_cli.model.progress import Progress

T = TypeVar("T")
R = TypeVar("R")
MOST_AT_ONCE = 8
"""The most metadata files that are in memory at the same time."""


def mapped(
    function: Callable[[T], R], items: Sequence[T], progress: Progress | None = None
) -> Iterator[tuple[T, R]]:
    """Yields each item with the result of a function, which runs in several threads.

    After an error, and if the caller stops early, items that have not begun are left out.
    """
    with ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="import") as pool:
        futures = [pool.submit(function, item) for item in items]
        try:
            for number, (item, future) in enumerate(zip(items, futures, strict=True), 1):
                yield item, future.result()
                if progress:
                    progress(number, len(items))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


class SourceReader:
    """Reads metadata files of a source. `copies` says that the import writes copies of them."""

    def __init__(self, files: Files, *, copies: bool) -> None:
        self._files = files
        self._copies = copies
        self._read: dict[Name, SourceMetadata | NessieError] = {}

    def read(self, contents: Iterable[SourceContent], progress: Progress | None = None) -> None:
        """Reads the metadata files of contents. Those that have been read are not read again."""
        missing = [each for each in contents if each.name not in self._read]
        for each, result in mapped(self._read_one, missing, progress):
            self._read[each.name] = result

    def metadata(self, content: SourceContent) -> SourceMetadata | NessieError:
        """Returns the metadata of a content that has been read, or why it cannot be imported."""
        return self._read[content.name]

    def document(self, content: SourceContent) -> Document:
        """Reads the metadata of a content again. Raises `InvalidInput` or `StoreUnavailable`."""
        return checked_document(self._files, content)

    def _read_one(self, content: SourceContent) -> SourceMetadata | NessieError:
        try:
            metadata = read_source(self._files, content, copies=self._copies)
            if metadata.is_copied:
                _check_folder(copy_location(content))
        except (InvalidInput, StoreUnavailable) as error:
            return error
        return metadata


def _check_folder(file: str) -> None:
    """Raises `StoreUnavailable` if a local file cannot be written.

    Whether an object store takes a file is only known after a request that writes.
    """
    if scheme_of(file) not in ("", "file"):
        return
    folder = local_path(file).parent
    if not os.access(folder, os.W_OK | os.X_OK):
        raise cannot_write(
            StoreUnavailable(f"{shown(str(folder))} cannot be written, so no copy can be made")
        )
