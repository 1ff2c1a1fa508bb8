"""`nessie content show`."""

from typing import Annotated

import typer
from msgspec import Struct

from nessie_cli.cli.app.arguments import refuse_empty
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Result
from nessie_cli.cli.content.keys import KeyArgument
from nessie_cli.cli.content.shown import ShownContentResult, print_content, shown_content
from nessie_cli.errors import InvalidInput
from nessie_cli.inspection.contents import entry_at
from nessie_cli.model import ContentKey
from nessie_cli.wire.contents import AnyContent, content_struct

EXAMPLES = (
    "nessie content show db.orders",
    "nessie content show db.orders --at main~3 --json",
    "nessie content show db.orders --raw",
)


class Options(Struct, frozen=True, kw_only=True):
    """Show a key's content, its cache key, and the last commit that wrote it.

    The cache key is the content id and the hash of the content.
    """

    key: Annotated[str, KeyArgument]
    revision: Annotated[
        str | None,
        typer.Argument(metavar="[REV]", help="The revision to read. Default: HEAD."),
    ] = None
    at: Annotated[str | None, typer.Option("--at", metavar="REV", help="Same as REV.")] = None
    raw: Annotated[
        bool,
        typer.Option(
            "--raw", help="Print only the JSON of the content, for `content put --content FILE`."
        ),
    ] = False


class RawContent(Result, frozen=True):
    """The content as a JSON document."""

    document: AnyContent


def run(options: Options, app: Invocation) -> ShownContentResult | RawContent:
    """Reads the content."""
    refuse_empty("nessie content show KEY [REV]", options.key, options.revision, options.at)
    if options.at is not None and options.revision is not None:
        raise InvalidInput("REV and --at cannot be used together: both name the revision")
    key, revision = ContentKey.parse(options.key), options.at or options.revision
    if not options.raw:
        return shown_content(app, key, revision)
    repository = app.repository()
    _, content = entry_at(repository, repository.resolve(app.revision(revision)), key)
    return RawContent(content_struct(content))


def show(result: ShownContentResult | RawContent, output: Output) -> None:
    """Prints the fields, or the JSON of the content."""
    if isinstance(result, RawContent):
        output.print_document(result.document)
    else:
        print_content(result, output)
