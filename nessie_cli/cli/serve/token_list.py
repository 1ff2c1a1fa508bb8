"""`nessie token list`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Listing, Records, Result
from nessie_cli.cli.serve.tokens import FileOptions, Token
from nessie_cli.render.spans import Column
from nessie_cli.wire.scalars import instant

if TYPE_CHECKING:
    from nessie_cli.server import TokenEntry

EXAMPLES = ("nessie token list --file tokens", "nessie token list --file tokens --json")
_COLUMNS = (
    Column("ID"),
    Column("NAME", "name"),
    Column("ROLES"),
    Column("CREATED", "time"),
    Column("EXPIRES"),
)


class Options(FileOptions, frozen=True, kw_only=True):
    """List the tokens of a file: id, name, roles, creation and expiry."""


class Tokens(Listing, frozen=True, kw_only=True):
    """The entries of a token file, in the order of the file."""

    listing = "tokens"
    tokens: Records[Token]


class TokensResult(Result, frozen=True):
    """The entries of a token file."""

    entries: Sequence["TokenEntry"]

    @property
    def document(self) -> Tokens:
        """The JSON document."""
        return Tokens(tokens=map(Token.of, self.entries))


def run(options: Options, app: Invocation) -> TokensResult:  # noqa: ARG001 - the shape of a command
    """Reads the token file."""
    from nessie_cli.server import list_tokens

    return TokensResult(list_tokens(options.path))


def show(result: TokensResult, output: Output) -> None:
    """Prints a table with a row for each token."""
    out = output.out
    rows = (
        (
            token.id,
            token.name,
            ",".join(token.roles),
            out.time(token.created) if token.created else "",
            instant(token.expires) or "never",
        )
        for token in result.entries
    )
    out.print_table(_COLUMNS, rows)
