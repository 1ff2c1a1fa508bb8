"""`nessie content show`."""

from typing import Annotated

import typer

from nessie_cli.cli import staging
from nessie_cli.cli.content_showing import show_content
from nessie_cli.cli.context import Invocation
from nessie_cli.model import ContentKey

EXAMPLES = ("nessie content show db.orders", "nessie content show db.orders main~3 --json")


def content_show(
    ctx: typer.Context,
    key: staging.Key,
    revision: Annotated[str | None, typer.Argument(metavar="[REV]", help="Where to look; HEAD, when it is left out.", show_default=False)] = None,
) -> None:
    """Show one content: its fields, content id, cache key, and its last change."""
    show_content(Invocation.of(ctx), ContentKey.parse(key), revision)
