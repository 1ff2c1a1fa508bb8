"""`nessie token new`."""

from typing import Annotated

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.tokening import File, document, expiry, split_roles, token_file

EXAMPLES = (
    "nessie token new ada --roles reader,writer --file tokens",
    "nessie token new nightly --roles loader --expires 90d --file tokens --json",
)
Roles = Annotated[
    list[str] | None,
    typer.Option("--roles", metavar="NAME", help="What rules know the caller as; several with commas, or repeated.", show_default=False),
]
Expires = Annotated[
    str | None, typer.Option("--expires", metavar="TIME", help="When the token ends: 12h, 90d, 8w, or an instant; else never.", show_default=False)
]


def token_new(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who the token stands for; commits bear this name.")],
    *,
    roles: Roles = None,
    expires: Expires = None,
    file: File = None,
) -> None:
    """Make a token for a caller of `nessie serve`, and print it: this once.

    The file, made where there is none, keeps only a hash of it. A running server takes the token at once.
    """
    call = Invocation.of(ctx)
    path = token_file(file)
    until = expiry(expires, call.now)
    from nessie_cli.server import add_token

    token, entry = add_token(path, name, split_roles(roles), until, call.now)
    if call.wants_json:
        call.answer({**document(entry), "token": token})
        return
    call.say(token)
    call.note(f"this token is shown once; {path} keeps a hash of it, under the id {entry.id}")
