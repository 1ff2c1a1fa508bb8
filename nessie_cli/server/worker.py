"""One of several processes that answer requests: its connections come from the process that listens, through a channel."""

from __future__ import annotations

import asyncio
import signal
import socket
from contextlib import suppress
from typing import Any

import uvicorn

from nessie_cli.server.app import Server
from nessie_cli.server.connections import configuration
from nessie_cli.server.shared import Board
from nessie_cli.server.workers import ENDED, READY

_AT_ONCE = 32
_PUBLISHED_EVERY = 3
"""Ticks of a tenth of a second after which the numbers of this process are shown to the others."""


class Worker(uvicorn.Server):
    """uvicorn without a socket to listen on. It ends when the channel does, having finished what it had accepted."""

    def __init__(self, app: Server, channel: socket.socket, board: tuple[Board, int]) -> None:
        super().__init__(configuration(app, ended=self.connection_ended))
        self._app = app
        self._channel = channel
        self._board, self._slot = board
        self._arriving: set[asyncio.Task[None]] = set()

    def handle_exit(self, sig: int, frame: Any) -> None:  # noqa: ARG002 - the interface of signal handlers
        """Stop when all requests are answered. Interrupts are for the process that listens."""
        if sig != signal.SIGINT:
            self.should_exit = True

    async def startup(self, sockets: Any = None) -> None:  # noqa: ARG002 - as the base
        """Be ready for connections."""
        await self.lifespan.startup()
        self.servers = []
        self._channel.setblocking(False)
        asyncio.get_running_loop().add_reader(self._channel, self._take)
        self.started = True
        self._channel.send(READY)

    async def shutdown(self, sockets: Any = None) -> None:
        """As the base."""
        asyncio.get_running_loop().remove_reader(self._channel)
        await super().shutdown(sockets)
        self._board.publish(self._slot, self._app.metrics.numbers())

    async def on_tick(self, counter: int) -> bool:
        """As the base."""
        if counter % _PUBLISHED_EVERY == 0:
            self._board.publish(self._slot, self._app.metrics.numbers())
        return await super().on_tick(counter)

    def connection_ended(self) -> None:
        """Tell that there is room for another connection."""
        # The process that listens has gone: it needs to know nothing more.
        with suppress(OSError):
            self._channel.send(ENDED)

    def _take(self) -> None:
        """Take the connections that have come."""
        try:
            said, files, _, _ = socket.recv_fds(self._channel, _AT_ONCE, _AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            said, files = b"", []
        for file in files:
            task = asyncio.get_running_loop().create_task(self._serve_one(socket.socket(fileno=file)))
            self._arriving.add(task)
            task.add_done_callback(self._arriving.discard)
        if not said:
            asyncio.get_running_loop().remove_reader(self._channel)
            self.should_exit = True

    async def _serve_one(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(lambda: self._protocol(loop), connection, ssl=self.config.ssl)
        except OSError:
            # Gone again, or no TLS.
            connection.close()
            self.connection_ended()

    def _protocol(self, loop: asyncio.AbstractEventLoop) -> asyncio.Protocol:
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state, _loop=loop
        )
        return made
