"""`nessie token new`."""

from typing import Annotated

import typer
from msgspec import structs

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Result
from nessie_cli.cli.serve.tokens import FileOptions, Token, expiry, split_roles

EXAMPLES = (
    "nessie token new ada --roles reader,writer --file tokens",
    "nessie token new nightly --roles loader --expires 90d --file tokens --json",
)


class Options(FileOptions, frozen=True, kw_only=True):
    """Create a token for a caller of `nessie serve`, and print it once.

    Creates the file if it does not exist. The file contains a hash of the token, not the token. A
    running server that uses the file accepts the token immediately.
    """

    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="The caller's name, which is the committer of its commits."
        ),
    ]
    roles: Annotated[
        list[str] | None,
        typer.Option(
            "--roles", metavar="NAME", help="The roles of the caller; repeatable, or with commas."
        ),
    ] = None
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires",
            metavar="TIME",
            help="When the token expires: 12h, 90d, 8w, or an instant. Default: never.",
        ),
    ] = None


class NewToken(Token, frozen=True):
    """A new token. It is not stored, so it is printed only once."""

    token: str


class NewTokenResult(Result, frozen=True):
    """A new token, and the file that keeps its hash."""

    document: NewToken
    file: str


def run(options: Options, app: Invocation) -> NewTokenResult:
    """Creates the token."""
    from nessie_cli.server import add_token

    path, until = options.path, expiry(options.expires, app.now)
    token, entry = add_token(path, options.name, split_roles(options.roles), until, app.now)
    document = NewToken(**structs.asdict(Token.of(entry)), token=token)
    return NewTokenResult(document, str(path))


def show(result: NewTokenResult, output: Output) -> None:
    """Prints the token."""
    output.out.print_line(result.document.token)
    output.note(
        f"this token is shown once; {result.file} keeps a hash of it, under the id"
        f" {result.document.token_id}"
    )
