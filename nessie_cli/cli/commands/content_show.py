"""`nessie content show`."""

from typing import Annotated

import typer

from nessie_cli.cli import staging
from nessie_cli.cli.content_showing import show_content
from nessie_cli.cli.context import Invocation
from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey

EXAMPLES = (
    "nessie content show db.orders",
    "nessie content show db.orders --at main~3 --json",
    "nessie content show db.orders --raw",
)


def content_show(
    ctx: typer.Context,
    key: staging.Key,
    revision: Annotated[str | None, typer.Argument(metavar="[REV]", help="The revision to read. Default: HEAD.", show_default=False)] = None,
    *,
    at: Annotated[str | None, typer.Option("--at", metavar="REV", help="The revision to read, as an option.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Print the JSON of the content alone, for `content put --content FILE`.")] = False,
) -> None:
    """Show one content: its fields, content id, cache key, and its last change."""
    if at is not None and revision is not None:
        raise InvalidInput("REV and --at exclude each other: both name the revision")
    show_content(Invocation.of(ctx), ContentKey.parse(key), at or revision, raw=raw)
