"""`nessie token revoke`."""

from typing import Annotated

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.tokening import File, document, token_file

EXAMPLES = ("nessie token revoke nightly --file tokens", "nessie token revoke nightly --file tokens --json")


def token_revoke(
    ctx: typer.Context,
    which: Annotated[str, typer.Argument(metavar="NAME", help="The name whose tokens all end, or the id of one token.")],
    *,
    file: File = None,
) -> None:
    """Take tokens out of a file: a running server refuses them from its next request on."""
    call = Invocation.of(ctx)
    path = token_file(file)
    from nessie_cli.server import remove_tokens

    removed = remove_tokens(path, which)
    if call.wants_json:
        call.answer({"revoked": [document(entry) for entry in removed]})
        return
    for entry in removed:
        call.say(f"revoked: {entry.id} of {entry.name}")
