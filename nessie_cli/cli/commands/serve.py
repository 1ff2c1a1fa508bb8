"""`nessie serve`."""

import sys

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.errors import InvalidInput

EXAMPLES = ("nessie serve", "nessie serve --store sqlite:////srv/catalog.sqlite --port 19120", "nessie serve --store memory: --access-log")


def serve(
    ctx: typer.Context,
    *,
    host: str = typer.Option("127.0.0.1", "--host", help="The address to listen on."),
    port: int = typer.Option(19120, "--port", min=0, max=65535, help="The port to listen on; 0 takes a free one."),
    insecure: bool = typer.Option(False, "--insecure", help="Listen on an address that others reach, though nobody is asked who they are."),
    workers: int = typer.Option(1, "--workers", metavar="N", min=1, max=64, help="How many processes answer requests."),
    access_log: bool = typer.Option(False, "--access-log", help="Write one JSON line for each request to stdout."),
) -> None:
    """Serve the store by Nessie's REST API, v2 and v1, until the process is stopped.

    The store has to exist; `memory:` is a new, empty one that lasts as long as the server. Requests that were accepted are finished.
    """
    call = Invocation.of(ctx)
    from nessie_cli.cli.later import load_all
    from nessie_cli.repository.opening import connect
    from nessie_cli.server import Listeners, Settings, serve

    load_all()
    url = call.store_url()
    if url.startswith(("http://", "https://")):
        raise InvalidInput(f"{url} is served already: its clients can ask it themselves, as who they are; serve the store behind it")
    stream = sys.stdout.buffer if access_log else sys.stderr.buffer

    def started(address: str) -> None:
        call.note(f"serving {url} at {address}/api/v2, described at {address}/api/docs")

    def write(lines: bytes) -> None:
        stream.write(lines)
        stream.flush()

    serve(lambda: connect(url), Settings(host, port, insecure, workers=workers), Listeners(started, write, faults=not access_log))
