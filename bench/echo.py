"""The lower bound of an answer: a Starlette route on uvicorn that echoes its request.

`python -m bench.echo` prints the port on which it listens.
"""

from __future__ import annotations

import socket

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


async def echo(request: Request) -> Response:
    return Response(await request.body(), media_type="application/json")


def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        config = uvicorn.Config(
            Starlette(routes=[Route("/echo", echo, methods=["POST"])]),
            log_level="critical",
            access_log=False,
        )
        uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main()
