"""`nessie ui`."""

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.serve.options import (
    AllowLocationOption,
    WarehousesOption,
    port_option,
    warehouse_option,
    warehouses_of,
)
from nessie_cli.errors import InvalidInput

if TYPE_CHECKING:
    from nessie_cli.server import LocalPages

EXAMPLES = (
    "nessie ui",
    "nessie ui --warehouse /srv/lake",
    "nessie ui --store sqlite:////srv/catalog.sqlite --no-browser --port 8080",
)


class Options(Struct, frozen=True, kw_only=True):
    """Open the pages of the store in a browser, for you alone.

    Starts a server on this machine for your browser, until Ctrl-C or until the terminal closes. A
    link that works once opens the pages. Other users and programs cannot use the server, and it has
    no REST API. The author of changes is yours.
    """

    no_browser: Annotated[
        bool,
        typer.Option(
            "--no-browser", help="Start no browser, and print the link, which works once."
        ),
    ] = False
    port: Annotated[
        int,
        port_option("--port", "The port of the server on this machine; 0 selects a free port."),
    ] = 0
    warehouse: Annotated[
        list[str] | None,
        warehouse_option("Read and combine the tables at this location; repeatable."),
    ] = None
    allow_location: AllowLocationOption = None
    warehouses: WarehousesOption = None


def run(options: Options, app: Invocation) -> None:
    """Serves the pages until the process is stopped."""
    from nessie_cli.repository.opening import connect_store
    from nessie_cli.repository.urls import is_server
    from nessie_cli.server import LocalPages, ServerSettings, serve_locally

    url = app.store.url()
    if is_server(url):
        raise InvalidInput(f"{url} is a server", hint="open its address in a browser")

    def started(pages: LocalPages) -> None:
        app.output.note(f"pages of {url} at {pages.address}; Ctrl-C ends them")
        if options.no_browser:
            _print_link(pages.link, app.output)
        else:
            # A browser in the terminal ends first.
            threading.Thread(target=_open, args=(pages, app.output), daemon=True).start()

    def log_fault(lines: bytes) -> None:
        os.write(sys.stderr.fileno(), lines)

    settings = ServerSettings(
        port=options.port,
        warehouses=warehouses_of(options.warehouse, options.allow_location, options.warehouses),
    )
    serve_locally(lambda: connect_store(url), settings, app.who(), started, log_fault)


def show(result: None, output: object) -> None:
    """Prints nothing: the server has stopped."""


def _open(pages: "LocalPages", output: Output) -> None:
    """Opens the file with the link: other users see the command line of a browser."""
    import webbrowser

    if not webbrowser.open(Path(pages.file).as_uri()):
        _print_link(pages.link, output)


def _print_link(link: str, output: Output) -> None:
    output.out.print_line(link)
    sys.stdout.flush()
