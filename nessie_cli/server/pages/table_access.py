"""What pages read of tables besides the catalog: metadata files and rows, within limits.

Both are read with the credentials of the server, so a caller needs the right `READ_ROWS`, and only
files inside of its warehouses are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from nessie_cli.errors import NotAllowed
from nessie_cli.iceberg.comparison import Comparison, compare
from nessie_cli.iceberg.locations import LocationRefused
from nessie_cli.iceberg.metadata import Document, parse_document
from nessie_cli.iceberg.warehouses.metadata_files import MetadataFiles, check_values
from nessie_cli.iceberg.warehouses.warehouse import Warehouses
from nessie_cli.inspection.changes import ContentChange
from nessie_cli.model import Content, ContentKey, IcebergTable, IcebergView
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.revisions import Revision
from nessie_cli.server.auth.authorized import require_rows
from nessie_cli.server.http.messages import LARGE
from nessie_cli.server.nessie.rows import RowReads
from nessie_cli.server.pages.call import PageCall
from nessie_cli.server.runtime.memory import LargeFiles
from nessie_cli.server.runtime.threads import Threads
from nessie_cli.wire.large_json import free

MOST_BYTES = 16 << 20
"""The most bytes of metadata files that one page reads."""


class TableAccess:
    """Access to the files of tables, and the threads of pages that take long."""

    def __init__(
        self, warehouses: Warehouses | None, threads: Threads, rows: RowReads | None
    ) -> None:
        self._files = [MetadataFiles(each) for each in warehouses.all] if warehouses else []
        self._large_files = threads.bodies.files
        self._readers = threads.page_readers
        self._writers = threads.file_writers
        self._previewers = threads.previewers
        self.rows = rows
        """Reads rows; None if this server does not."""

    @property
    def has_warehouses(self) -> bool:
        """Whether the server reads any metadata files."""
        return bool(self._files)

    async def answer(self, call: PageCall, handle: Callable[[PageCall], Any]) -> Any:
        """Returns what a handler returns, which may wait for a storage."""
        return await self._readers.submit(partial(call.answer, handle), call.watch_client())

    async def answer_with_files(
        self,
        call: PageCall,
        handle: Callable[[PageCall], Any],
        *,
        begun: bool = False,
        large: bool = False,
    ) -> Any:
        """Returns what a handler returns, which may write files, and wait for its commit.

        A request that has `begun` before is not refused if many wait. Those with many changes are
        `large`: they run one after the other.
        """
        threads = self._previewers if large else self._writers
        return await threads.submit(partial(call.answer, handle), begun=begun)

    @contextmanager
    def metadata(self, repository: ReadableRepository) -> Iterator[MetadataReader]:
        """Opens the metadata files for one request of a caller."""
        reader = MetadataReader(repository, self._files, self._large_files)
        try:
            yield reader
        finally:
            reader.end_turn()


class MetadataReader:
    """Reads metadata files for one request."""

    def __init__(
        self,
        repository: ReadableRepository,
        files: Iterable[MetadataFiles],
        large_files: LargeFiles,
    ) -> None:
        self._repository = repository
        self._files = list(files)
        self._large_files = large_files
        self._bytes = 0
        self._has_turn = False
        self._documents: list[Document] = []
        """The documents that were parsed in the turn of this request."""

    def read(self, at: str, key: ContentKey, content: IcebergTable | IcebergView) -> Document:
        """Returns the metadata of a content that the caller has read at a commit.

        Raises `NotAllowed` without the right `READ_ROWS` and beyond the limit, `LocationRefused`
        for a file outside of the warehouses, and the errors of reading the file.
        """
        self._require(at, key, content)
        return self._document(content.metadata_location)

    def compared(self, change: ContentChange, before: str, after: str) -> ContentChange:
        """Returns a change between two commits with the comparison of its metadata files."""
        try:
            if change.before:
                self._require(before, change.old_key or change.key, change.before)
            if change.after:
                self._require(after, change.key, change.after)
        except NotAllowed as refusal:
            return change._replace(metadata=Comparison(problems=(refusal.message,)))
        return change._replace(metadata=compare(change.before, change.after, self._document))

    def end_turn(self) -> None:
        """Lets others read large files. Frees their values by calls that are all short."""
        if self._has_turn:
            free(self._documents)
            self._has_turn = False
            self._large_files.end()

    def _require(self, at: str, key: ContentKey, content: Content) -> None:
        if isinstance(content, IcebergTable | IcebergView):
            require_rows(self._repository, Revision(None, at), key, content.type_name)

    def _document(self, location: str) -> Document:
        files = self._files_of(location)
        self._refuse_more()
        data = files.read(location, committed=True)
        self._bytes += len(data)
        self._refuse_more()
        if self._bytes >= LARGE and not self._has_turn:
            self._large_files.begin(self._bytes)
            self._has_turn = True
        check_values(data, location)
        document = parse_document(data, location)
        if self._has_turn:
            self._documents.append(document)
        return document

    def _refuse_more(self) -> None:
        if self._bytes > MOST_BYTES:
            raise NotAllowed(f"one page reads at most {MOST_BYTES >> 20} MiB of metadata files")

    def _files_of(self, location: str) -> MetadataFiles:
        for files in self._files:
            try:
                files.check(location)
            except LocationRefused:
                continue
            return files
        raise LocationRefused(f"{location}: not in a warehouse of this server")
