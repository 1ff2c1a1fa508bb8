"""Processes that read or merge rows: a few at once, each killed at its limit of time.

The event loop only passes their frames on. A process that dies is a fault frame, or the error of
the request if nothing was sent before.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress

from msgspec import json, structs

from nessie_cli.server.http.failures import ClientGone, HttpFault, Unavailable
from nessie_cli.server.http.messages import LiveChunks, Reply
from nessie_cli.server.runtime.row_request import (
    LimitExceeded,
    RowLimits,
    RowMergeRequest,
    RowRequest,
)
from nessie_cli.wire.errors import NessieError as ErrorBody
from nessie_cli.wire.rows import END, FAULT, HEADER, WAIT, Frame, size_of

AnyRequest = RowRequest | RowMergeRequest
CONTENT_TYPE = b"application/x-nessie-rows"
BUSY = "Too many requests for rows are running; come again later"
_WORKER = "nessie_cli.server.runtime.row_worker"
_POLL = 0.5
"""Seconds after which a process is killed whose client has closed the connection."""
_WAIT = 10.0
"""Seconds without a frame after which the client gets an empty one, so that it waits on."""
_FAILED = 500
_HELD = 2 * (1 << 16)


class RowProcesses:
    """Starts processes. Only for the event loop."""

    def __init__(self, limits: RowLimits) -> None:
        self.limits = limits
        self._running = 0

    async def reply(self, request: AnyRequest, lost: Callable[[], bool]) -> Reply:
        """Returns the answer to a request, as soon as its first frame is there.

        Raises the error of the process, `Unavailable` if too many are running, and `ClientGone`.
        """
        if self._running >= self.limits.at_once:
            raise Unavailable(BUSY)
        self._running += 1
        answer = RowAnswer(self.limits, lost, self._ended)
        try:
            await answer.start(request)
        except BaseException:
            await answer.close()
            raise
        return Reply(200, [(b"content-type", CONTENT_TYPE)], chunks=answer)

    async def whole(self, request: AnyRequest, lost: Callable[[], bool]) -> bytes:
        """Returns the whole answer to a request, which is limited. Raises as `reply` does."""
        reply = await self.reply(request, lost)
        assert isinstance(reply.chunks, LiveChunks)
        parts = []
        try:
            while part := await reply.chunks.read():
                parts.append(part)
        finally:
            await reply.chunks.close()
        return b"".join(parts)

    def _ended(self) -> None:
        self._running -= 1


class RowAnswer(LiveChunks):
    """The frames of one process."""

    def __init__(
        self, limits: RowLimits, lost: Callable[[], bool], ended: Callable[[], None]
    ) -> None:
        self._limits = limits
        self._lost = lost
        self._ended = ended
        self._first = b""
        self._process: Process | None = None
        self._folder = self._file = ""
        self._reading: asyncio.Task[Frame | None] | None = None
        self._is_complete = self._is_closed = False
        self._until = asyncio.get_running_loop().time() + limits.seconds

    def held(self) -> int:
        """Returns the bytes in memory."""
        return _HELD

    async def start(self, request: AnyRequest) -> None:
        """Starts the process and reads the first frame. Raises the error of the process."""
        self._folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="nessie-rows-")
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", _WORKER),
            stdin=PIPE,
            stdout=PIPE,
            stderr=None,
            # A signal of the terminal is for the server, which ends the process by its stdin.
            start_new_session=True,
        )
        assert self._process.stdin is not None
        request = structs.replace(request, temporary=self._folder)
        self._process.stdin.write(json.encode(request) + b"\n")
        with suppress(ConnectionError):
            await self._process.stdin.drain()
        frame = Frame(WAIT, b"")
        while frame.kind == WAIT:
            frame = await self._next()
        if frame.kind == FAULT:
            fault = json.decode(frame.content)
            # Other failures are those of files: a client must not repeat the request, as it does
            # if the server is busy.
            if fault["status"] < _FAILED:
                raise HttpFault(fault["status"], fault["message"], fault["errorCode"])
            self._is_complete = True
        self._first = frame.encoded()

    async def read(self) -> bytes:
        """Returns the next frame, and empty bytes after the last one. Raises `ClientGone`."""
        if first := self._first:
            self._first = b""
            return first
        if self._is_complete:
            return b""
        frame = await self._next()
        self._is_complete = frame.kind in (FAULT, END)
        return frame.encoded()

    async def close(self) -> None:
        """Kills the process, and removes its temporary files."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self._reading is not None:
                self._reading.cancel()
            if self._process is not None:
                with suppress(ProcessLookupError):
                    self._process.kill()
                await self._process.wait()
            if self._folder:
                await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
        finally:
            self._ended()

    async def _next(self) -> Frame:
        """Returns the next frame, an empty one if there is none for a while, or a fault."""
        loop = asyncio.get_running_loop()
        if self._reading is None:
            self._reading = asyncio.create_task(self._frame())
        silent_until = loop.time() + _WAIT
        while True:
            now = loop.time()
            if now >= self._until:
                return _fault(f"the server reads rows for at most {self._limits.seconds} seconds")
            if now >= silent_until:
                return Frame(WAIT, b"")
            until = min(self._until, silent_until, now + _POLL)
            done, _ = await asyncio.wait({self._reading}, timeout=until - now)
            if self._lost():
                raise ClientGone
            if done:
                frame, self._reading = self._reading.result(), None
                if frame is None:
                    at = f" at the file {self._file}" if self._file else ""
                    return _fault(
                        f"the process that read the rows has ended{at}: it needs more than"
                        f" {self._limits.memory >> 20} MiB of memory, or a file is damaged"
                    )
                if frame.kind != WAIT:
                    return frame
                self._file = frame.content.decode()
                self._reading = asyncio.create_task(self._frame())

    async def _frame(self) -> Frame | None:
        """Returns the next frame of the process; None if it has ended before the last one."""
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            header = await self._process.stdout.readexactly(HEADER)
            return Frame(header[:1], await self._process.stdout.readexactly(size_of(header)))
        except (asyncio.IncompleteReadError, ValueError):
            return None


def _fault(message: str) -> Frame:
    return Frame(FAULT, json.encode(ErrorBody.of(LimitExceeded(message))))
