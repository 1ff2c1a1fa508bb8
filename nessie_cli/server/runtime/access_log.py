"""The access log: one JSON line per request, written by its own thread.

So a slow reader of the log never delays a request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import Any

from msgspec import json

_encode = json.Encoder().encode
_MOST_WAITING = 10_000
"""The most lines that may wait for the writer. More are dropped, and their number is logged."""


class AccessLog:
    """Writes records of requests as JSON lines; with `faults` only failures of the server."""

    def __init__(self, write: Callable[[bytes], object], *, faults: bool = False) -> None:
        self._write = write
        self._faults = faults
        self._queue: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._lost = 0
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)
        self._thread.start()

    def wants(self, *, fault: bool) -> bool:
        """Returns whether a record would be written."""
        return fault or not self._faults

    def record(self, **fields: Any) -> None:
        """Logs a request or another event, with the time. A record with an `error` is a failure."""
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
        """Writes the waiting lines."""
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
                # The reader of the log has exited; requests continue.
                ended = True
