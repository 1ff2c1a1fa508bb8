"""`nessie login`."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from nessie_cli.cli.app.store_choice import profile_with
from nessie_cli.cli.context import Invocation
from nessie_cli.errors import InvalidInput, NotAllowed, NotFound, StoreUnavailable

if TYPE_CHECKING:
    from nessie_cli.model import Secret

EXAMPLES = (
    "nessie login https://catalog.example.org",
    "nessie login https://catalog.example.org --token-stdin",
    "nessie login https://catalog.example.org --forget",
)


def login(
    ctx: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="The server, or a PostgreSQL database.", show_default=False)],
    *,
    token_stdin: Annotated[bool, typer.Option("--token-stdin", help="Read a token from stdin and keep it for this server.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Forget the server and its token.")] = False,
) -> None:
    """Accept a server, so that credentials may go there even if only a workspace names it; with a token, keep it.

    A server is a scheme, a host and a port. Credentials go only to servers that you named: on the command line, in the
    environment, in your own configuration, or here. On a terminal the command asks for a token if no other credentials are
    configured; leave it empty to keep none. A token is checked with the server, then kept in a file that only you can read.
    """
    call = Invocation.of(ctx)
    if token_stdin and forget:
        raise InvalidInput("--token-stdin and --forget exclude each other")
    server = _server(url)
    if forget:
        _forget(call, server, url)
        return
    token = None
    if url.startswith(("http://", "https://")):
        token = _token(call, url, token_stdin=token_stdin)
    elif token_stdin:
        raise InvalidInput("--token-stdin: a database takes no token")
    _accept(server, token)
    if call.wants_json:
        call.answer({"server": server, "token": token is not None, "accepted": True})
    else:
        call.say(f"accepted {server}{', and kept its token' if token else ''}")


def _server(url: str) -> str:
    """What is remembered: the server of a URL, or the whole URL of a database."""
    from nessie_cli.workspace.credentials import DATABASE, endpoint
    from nessie_cli.workspace.secrets import refuse_secret

    refuse_secret("URL", url)
    if url.startswith(("http://", "https://")):
        from nessie_cli.repository.access import checked_url

        checked_url(url)
    elif not url.startswith(DATABASE):
        raise InvalidInput(f"{url}: write https://host[:port] or postgresql://host/database")
    return endpoint(url) or url


def _forget(call: Invocation, server: str, url: str) -> None:
    from nessie_cli.workspace.tokens import login_file
    from nessie_cli.workspace.trust_records import forget_server

    file = login_file(server)
    had_token = file.read() is not None
    file.write(None)
    if not forget_server(server) and not had_token:
        raise NotFound(f"{url}: no such server was accepted")
    if call.wants_json:
        call.answer({"server": server, "token": False, "accepted": False})
    else:
        call.say(f"forgot {server}{' and its token' if had_token else ''}")


def _token(call: Invocation, url: str, *, token_stdin: bool) -> "Secret | None":
    """The token to keep, checked with the server; raises what the server refuses, and `NotAllowed` without TLS."""
    from nessie_cli.cli.access import access_of
    from nessie_cli.workspace.trust_records import consent

    if refusal := consent().refusal(url, named=True):
        raise NotAllowed(refusal)
    # Neither a workspace nor a profile of another server says how this one is reached.
    access = access_of(url, profile_with(url), None, call.err.print_line)
    token = _read_token(url, stdin=token_stdin, ask=access.credentials is None)
    if token is None and access.credentials is None:
        return None
    from nessie_cli.repository.access import Bearer
    from nessie_cli.repository.opening import connect

    with connect(url, who=call.who(), access=access._replace(credentials=Bearer(token)) if token else access) as repository:
        repository.config()
    return token


def _read_token(url: str, *, stdin: bool, ask: bool) -> "Secret | None":
    from nessie_cli.model import Secret

    if stdin:
        text = sys.stdin.read(64 * 1024).strip("\r\n")
    elif ask and sys.stdin.isatty() and sys.stderr.isatty():
        from getpass import getpass

        text = getpass(f"token for {url} (empty for none): ", sys.stderr)
    else:
        return None
    if not text.strip() and not stdin:
        return None
    from nessie_cli.repository.access import bearer

    bearer(text)
    return Secret(text)


def _accept(server: str, token: "Secret | None") -> None:
    """Remember the server, and the token in a file of the user alone."""
    from nessie_cli.workspace.tokens import login_file
    from nessie_cli.workspace.trust_records import record_server

    if token is not None:
        file = login_file(server)
        with file.locked():
            file.write(token.reveal())
    if not record_server(server):
        raise StoreUnavailable(f"{server}: cannot be remembered: your state folder cannot be written; NESSIE_TRUSTED_ENDPOINTS names servers, too")
