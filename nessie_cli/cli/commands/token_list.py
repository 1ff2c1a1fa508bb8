"""`nessie token list`."""

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.tokening import File, document, token_file

EXAMPLES = ("nessie token list --file tokens", "nessie token list --file tokens --json")


def token_list(ctx: typer.Context, *, file: File = None) -> None:
    """List the tokens of a file: for whom, with which roles, until when."""
    call = Invocation.of(ctx)
    path = token_file(file)
    from nessie_cli.server import list_tokens

    found = list_tokens(path)
    if call.wants_json:
        call.answer_listing("tokens", map(document, found))
        return
    from nessie_cli.render.spans import Column

    out = call.out
    columns = (Column("ID"), Column("NAME", "name"), Column("ROLES"), Column("CREATED", "time"), Column("EXPIRES", "time"))
    rows = (
        (entry.id, entry.name, ",".join(entry.roles), *(out.time(when) if when else "" for when in (entry.created, entry.expires))) for entry in found
    )
    out.print_table(columns, rows)
