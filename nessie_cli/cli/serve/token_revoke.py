"""`nessie token revoke`."""

from typing import Annotated

import typer

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document
from nessie_cli.cli.serve.tokens import FileOptions, Token

EXAMPLES = (
    "nessie token revoke nightly --file tokens",
    "nessie token revoke nightly --file tokens --json",
)


class Options(FileOptions, frozen=True, kw_only=True):
    """Remove tokens from a file.

    A running server that uses the file rejects them immediately.
    """

    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A caller's name, to revoke all of its tokens, or the id of one token.",
        ),
    ]


class RevokedTokens(Document, frozen=True):
    """The entries that were removed from a token file."""

    revoked: tuple[Token, ...]


def run(options: Options, app: Invocation) -> RevokedTokens:  # noqa: ARG001 - the shape of a command
    """Removes the tokens from the file."""
    from nessie_cli.server import remove_tokens

    return RevokedTokens(tuple(map(Token.of, remove_tokens(options.path, options.name))))


def show(result: RevokedTokens, output: Output) -> None:
    """Prints one line for each token."""
    for token in result.revoked:
        output.say(f"revoked: {token.token_id} of {token.name}")
