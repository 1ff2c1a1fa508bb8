"""`nessie login`."""

import sys
from getpass import getpass
from typing import Annotated

import typer
from msgspec import Struct

from nessie_cli.cli.app.access import access_of
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document, Result
from nessie_cli.cli.app.store_choice import profile_with
from nessie_cli.errors import Interrupted, InvalidInput, NotAllowed, NotFound, StoreUnavailable
from nessie_cli.model import Secret
from nessie_cli.repository.access import Bearer, bearer, checked_url
from nessie_cli.repository.opening import connect
from nessie_cli.workspace.access import LOGIN
from nessie_cli.workspace.credentials import DATABASE, WEB, endpoint
from nessie_cli.workspace.secrets import refuse_secret
from nessie_cli.workspace.tokens import login_file
from nessie_cli.workspace.trust_records import consent, forget_server, record_server

EXAMPLES = (
    "nessie login https://catalog.example.org",
    "nessie login https://catalog.example.org --token-stdin",
    "nessie login https://catalog.example.org --forget",
)
_LONGEST_TOKEN = 64 * 1024


class Options(Struct, frozen=True, kw_only=True):
    """Trust a server with credentials, and store a token for it.

    A server is a scheme, a host and a port. Credentials are sent only to servers that you named on
    the command line, in the environment, in your own configuration, or with this command. A server
    that only a workspace names gets none.

    On a terminal, the command asks for a token unless other credentials are configured. An empty
    answer stores none. A token is stored only if the server accepts it, in a file that only you can
    read. For a database, no token is stored.
    """

    url: Annotated[
        str,
        typer.Argument(metavar="URL", help="The URL of a server, or of a PostgreSQL database."),
    ]
    token_stdin: Annotated[
        bool,
        typer.Option("--token-stdin", help="Read the token from stdin."),
    ] = False
    forget: Annotated[
        bool,
        typer.Option(
            "--forget",
            help="Undo an earlier login: forget the server, and delete its stored token.",
        ),
    ] = False


class AcceptedServer(Document, frozen=True, kw_only=True):
    """A server, whether it may receive credentials, and whether a token is stored for it."""

    server: str
    token: bool
    accepted: bool


class AcceptedServerResult(Result, frozen=True):
    """A server, and whether a token was stored for it before."""

    document: AcceptedServer
    had_token: bool = False


def run(options: Options, app: Invocation) -> AcceptedServerResult:
    """Trusts or forgets the server."""
    if options.token_stdin and options.forget:
        raise InvalidInput("--token-stdin and --forget cannot be used together")
    server = _server(options.url)
    if options.forget:
        return _forget(server, options.url)
    token = None
    if options.url.startswith(WEB):
        token = _token(app, options)
    elif options.token_stdin:
        raise InvalidInput("--token-stdin: a database takes no token")
    _accept(server, token)
    document = AcceptedServer(server=server, token=token is not None, accepted=True)
    return AcceptedServerResult(document)


def show(result: AcceptedServerResult, output: Output) -> None:
    """Prints which server was trusted or forgotten."""
    server = result.document
    if server.accepted:
        output.say(f"accepted {server.server}{', and kept its token' if server.token else ''}")
    else:
        output.say(f"forgot {server.server}{' and its token' if result.had_token else ''}")


def _server(url: str) -> str:
    """Returns the server of a URL, or the whole URL of a database."""
    refuse_secret("URL", url)
    if url.startswith(WEB):
        checked_url(url)
    elif not url.startswith(DATABASE):
        raise InvalidInput(
            f"{url} is not a server", hint="write https://host[:port] or postgresql://host/database"
        )
    return endpoint(url) or url


def _forget(server: str, url: str) -> AcceptedServerResult:
    file = login_file(server)
    had_token = file.read() is not None
    file.write(None)
    if not forget_server(server) and not had_token:
        raise NotFound(f"{url}: this server was not trusted")
    document = AcceptedServer(server=server, token=False, accepted=False)
    return AcceptedServerResult(document, had_token)


def _token(app: Invocation, options: Options) -> Secret | None:
    """Returns the token to store, accepted by the server. Raises `NotAllowed` without TLS."""
    url = options.url
    if refusal := consent().refusal(url, named=True):
        raise NotAllowed(refusal)
    # The settings of the workspace, and of profiles for other servers, do not apply.
    access = access_of(url, profile_with(url), None, app.output.err.print_line)
    # A token of an earlier login may have expired, so the command asks for another one.
    ask = access.credentials is None or LOGIN in access.sources
    token = _read_token(url, stdin=options.token_stdin, ask=ask)
    if token is None and access.credentials is None:
        return None
    if token:
        access = access._replace(credentials=Bearer(token))
    with connect(url, who=app.who(), access=access) as repository:
        repository.config()
    return token


def _read_token(url: str, *, stdin: bool, ask: bool) -> Secret | None:
    """Reads the token from stdin or from the terminal. Returns None if there is none."""
    if stdin:
        text = sys.stdin.read(_LONGEST_TOKEN).strip("\r\n")
    elif ask and sys.stdin.isatty() and sys.stderr.isatty():
        try:
            text = getpass(f"token for {url} (empty for none): ", sys.stderr)
        except EOFError:
            raise Interrupted("no answer, so nothing was stored") from None
    else:
        return None
    if not text.strip() and not stdin:
        return None
    bearer(text)
    return Secret(text)


def _accept(server: str, token: Secret | None) -> None:
    """Records the server, and stores the token in a file that only the user can read."""
    if token is not None:
        file = login_file(server)
        with file.locked():
            file.write(token.reveal())
    if not record_server(server):
        raise StoreUnavailable(
            f"{server} cannot be recorded, because your state folder is not writable",
            hint="NESSIE_TRUSTED_ENDPOINTS can name it",
        )
