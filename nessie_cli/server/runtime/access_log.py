"""The access log: one JSON line for each request, written by a thread of its own so that a slow reader never holds a request up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import Any

from msgspec import json

_encode = json.Encoder().encode
_MOST_WAITING = 10_000
"""Lines that may wait for the writer; what comes beyond is counted, and the count is logged."""


class AccessLog:
    """Takes records of requests and writes them as JSON lines; with `faults` only of those that the server failed on."""

    def __init__(self, write: Callable[[bytes], object], *, faults: bool = False) -> None:
        self._write = write
        self._faults = faults
        self._queue: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._lost = 0
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)
        self._thread.start()

    def wants(self, *, fault: bool) -> bool:
        """Whether a record, of a failure of the server or of something else, would be written."""
        return fault or not self._faults

    def record(self, **fields: Any) -> None:
        """Log one request, or anything else worth a line; the time is added. What has an `error` is a fault."""
        if not self.wants(fault="error" in fields):
            return
        if self._queue.qsize() >= _MOST_WAITING:
            self._lost += 1
            return
        self._queue.put(
            {
                "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                **fields,
            }
        )

    def close(self) -> None:
        """Write what is waiting."""
        self._queue.put(None)
        self._thread.join(10)

    def _run(self) -> None:
        ended = False
        while not ended:
            records = [self._queue.get()]
            while not self._queue.empty():
                records.append(self._queue.get())
            ended = records[-1] is None
            lost, self._lost = self._lost, 0
            lines = [_encode(record) for record in records if record is not None]
            if lost:
                lines.append(
                    _encode(
                        {"message": f"{lost} lines of this log were lost: its reader is too slow"}
                    )
                )
            try:
                self._write(b"".join(line + b"\n" for line in lines))
            except OSError:
                # Nobody reads the log any more; the requests go on.
                ended = True
