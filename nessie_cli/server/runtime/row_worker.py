"""The process that reads or merges the rows of tables. `RowProcesses` starts it.

It gets a `RowRequest` or `RowMergeRequest` as a line of stdin, and writes frames (`wire.rows`) to
stdout. It writes nothing else, and ends when its stdin does, so neither it nor its temporary files
outlive the server.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import json

from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.iceberg.locations import shown
from nessie_cli.server.runtime.row_request import (
    LimitExceeded,
    RowCounter,
    RowLimits,
    RowMergeRequest,
    RowRequest,
)
from nessie_cli.wire.errors import NessieError as ErrorBody
from nessie_cli.wire.rows import (
    END,
    FAULT,
    LARGEST,
    ROWS,
    SUMMARY,
    WAIT,
    FileCounts,
    Frame,
    RowEnd,
    RowSummary,
)

if TYPE_CHECKING:
    from nessie_cli.iceberg.row_diff.difference import FileTotals, TableDifference

Opening = Callable[[str], None]
"""Names the file that is read to the server, whose error names it if the process ends there."""
_MOST_NAME = 1_000
"""The most characters of this name."""
_PART = 1 << 16
"""The bytes of the answer in one frame."""


class Failed(NessieError):
    """The process has failed for a reason that is not the client's."""


def main() -> None:
    """Answers the request of stdin on stdout."""
    request = json.decode(sys.stdin.buffer.readline(), type=RowRequest | RowMergeRequest)
    threading.Thread(target=_end_with_stdin, args=(request.temporary,), daemon=True).start()
    with os.fdopen(os.dup(1), "wb") as out:
        # Whatever else this process prints is not a frame.
        os.dup2(2, 1)
        tempfile.tempdir = request.temporary or None
        _limit(request.limits)

        def write(frame: Frame) -> None:
            out.write(frame.encoded())
            out.flush()

        def opening(uri: str) -> None:
            write(Frame(WAIT, shown(uri[:_MOST_NAME]).encode()))

        for frame in _answer(request, opening):
            write(frame)


def _end_with_stdin(folder: str) -> None:
    # The buffered reader of stdin would be locked when the process ends.
    while os.read(0, 1):
        pass
    if folder:
        # A server that was killed cannot remove it.
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _limit(limits: RowLimits) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The server ends it after this time of the clock.
    seconds = limits.seconds + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.unpacked, limits.unpacked))
    resource.setrlimit(resource.RLIMIT_DATA, (limits.memory, limits.memory))


def _answer(request: RowRequest | RowMergeRequest, opening: Opening) -> Iterator[Frame]:
    """Yields the frames of the answer. A failure is the last one."""
    try:
        # Loaded after the limit of memory is set.
        import pyarrow as pa

        # The other pools take memory in large pieces, and keep it.
        pa.set_memory_pool(pa.system_memory_pool())
        if isinstance(request, RowMergeRequest):
            from nessie_cli.server.runtime.row_merge import merged_tables

            yield from _parts(merged_tables(request, opening))
            yield Frame(END, json.encode(RowEnd(0)))
        else:
            yield from _frames(request, opening)
    except NessieError as error:
        yield _fault(error)
    except MemoryError:
        yield _fault(_too_much_memory(request.limits))
    except RecursionError:
        yield _fault(InvalidInput("the filter, or a value, is nested too deeply"))
    except Exception as error:  # noqa: BLE001 - the server's log gets the reason
        traceback.print_exc()
        is_full = isinstance(error, OSError) and error.errno == errno.ENOSPC
        reason = "no space is left for temporary files" if is_full else "its log says why"
        yield _fault(Failed(f"the server could not read the rows: {reason}"))


def _fault(error: NessieError) -> Frame:
    return Frame(FAULT, json.encode(ErrorBody.of(error)))


def _too_much_memory(limits: RowLimits) -> LimitExceeded:
    return LimitExceeded(f"the server reads rows with at most {limits.memory >> 20} MiB of memory")


def _frames(request: RowRequest, opening: Opening) -> Iterator[Frame]:
    import pyarrow as pa

    from nessie_cli.iceberg.row_diff.changes import RowChanges
    from nessie_cli.iceberg.row_diff.contents import document_of
    from nessie_cli.iceberg.row_diff.difference import Selection, compare_tables
    from nessie_cli.iceberg.warehouses.table_files import TableFiles

    counter = RowCounter(request.limits)
    files = TableFiles(request.warehouse, request.folders, counter.read, opening)
    before, after = (document_of(state, files.read) for state in (request.before, request.after))
    selection = Selection(
        request.key, request.columns, request.where, request.limit, rows=request.rows
    )
    difference = compare_tables(before, after, files.read, selection)
    yield _summary(difference)
    ambiguous_keys = 0
    if request.rows:
        changes = RowChanges(difference, files, check=counter.rows)
        sink = _Sink(request.limits.answer)
        options = pa.ipc.IpcWriteOptions(compression="lz4" if request.compressed else None)
        with pa.ipc.new_stream(sink, changes.schema, options=options) as stream:
            for batch in changes:
                stream.write_batch(batch)
                yield from sink.frames()
        yield from sink.frames()
        ambiguous_keys = changes.ambiguous_keys
    yield Frame(END, json.encode(RowEnd(ambiguous_keys)))


def _summary(difference: TableDifference) -> Frame:
    text = json.encode(
        RowSummary(
            json.decode(difference.schema.model_dump_json()),
            list(difference.key),
            _file_counts(difference.added),
            _file_counts(difference.removed),
            _file_counts(difference.changed),
            len(difference.delete_files),
            difference.bytes,
        )
    )
    if len(text) > LARGEST:
        raise LimitExceeded("the table has too many columns", hint="select fewer columns")
    return Frame(SUMMARY, text)


def _file_counts(totals: FileTotals) -> FileCounts:
    return FileCounts(totals.files, totals.rows, totals.bytes)


class _Sink:
    """A file for an Arrow stream, which is taken as frames."""

    closed = False

    def __init__(self, most: int) -> None:
        self._left = most
        self._most = most
        self._buffer = bytearray()

    def writable(self) -> bool:
        """Returns True."""
        return True

    def write(self, data: Any) -> int:
        """Writes bytes. Raises `LimitExceeded`."""
        view = memoryview(data)
        self._left -= view.nbytes
        if self._left < 0:
            raise LimitExceeded(
                f"the server sends at most {self._most >> 20} MiB of rows of a table",
                hint="limit or filter the rows",
            )
        self._buffer += view
        return view.nbytes

    def flush(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""

    def frames(self) -> Iterator[Frame]:
        """Yields what was written since the last call."""
        yield from _parts(self._buffer)
        self._buffer.clear()


def _parts(data: bytes | bytearray) -> Iterator[Frame]:
    """Yields a part of the answer as frames."""
    for start in range(0, len(data), _PART):
        yield Frame(ROWS, bytes(data[start : start + _PART]))


if __name__ == "__main__":
    main()
