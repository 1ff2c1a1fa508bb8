"""`nessie version`."""

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.versions import version_document, version_line

EXAMPLES = ("nessie version", "nessie version --json")


def version(ctx: typer.Context) -> None:
    """Print the versions of nessie, of Python and of the store's format."""
    call = Invocation.of(ctx)
    if call.wants_json:
        call.answer(version_document())
    else:
        call.say(version_line())
