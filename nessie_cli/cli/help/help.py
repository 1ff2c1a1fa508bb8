"""`nessie help`."""

from collections.abc import Sequence
from typing import Annotated

import typer
from msgspec import Struct

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document, Result
from nessie_cli.cli.errors.suggestions import did_you_mean
from nessie_cli.cli.help.pages import page_names, page_source
from nessie_cli.errors import InvalidInput
from nessie_cli.render.manual import manual_lines
from nessie_cli.render.spans import Line, plain

EXAMPLES = (
    "nessie help",
    "nessie help merge",
    "nessie help content put",
    "nessie help revisions",
    "nessie help log --no-pager",
)
_PROGRAM = "nessie"
_WIDTH_IN_A_PIPE = 80


class Options(Struct, frozen=True, kw_only=True):
    """Show the manual page of a command or topic.

    Without a name, shows the page of nessie itself. On a terminal, a long page goes to the pager.
    The program `man` is not needed.
    """

    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND|TOPIC...]",
            help="A command, or a topic: access, conflicts, exit-status, filters, json, revisions,"
            " stores.",
        ),
    ] = None


class Text(Document, frozen=True):
    """A page of the manual, or the text of `--help`."""

    name: str
    text: str


class TextResult(Result, frozen=True):
    """A page of the manual, as styled lines."""

    document: Text
    lines: Sequence[Line]


def run(options: Options, app: Invocation) -> TextResult:
    """Renders the page."""
    arguments = options.arguments or []
    name = _page_name(arguments)
    source = page_source(name) if name.replace("-", "").isalnum() else None
    if source is None:
        raise InvalidInput(f"there is no page for '{' '.join(arguments)}'{_did_you_mean(name)}")
    # As man does, it wraps lines in a pipe too.
    width = app.output.out.width if app.output.out.is_terminal else _WIDTH_IN_A_PIPE
    lines = list(manual_lines(source, width))
    return TextResult(Text(name, "\n".join(map(plain, lines))), lines)


def show(result: TextResult, output: Output) -> None:
    """Prints the page."""
    output.out.print_lines(result.lines, paged=True)


def _page_name(arguments: Sequence[str]) -> str:
    """Returns the name of a page: `nessie-content-put` for the words `content put`."""
    given = [argument.strip() for argument in arguments if argument.strip()]
    return "-".join(
        given if given[:1] and given[0].partition("-")[0] == _PROGRAM else [_PROGRAM, *given]
    )


def _did_you_mean(name: str) -> str:
    pages = [page.removeprefix(f"{_PROGRAM}-").replace("-", " ") for page in page_names()]
    return did_you_mean(name.removeprefix(f"{_PROGRAM}-").replace("-", " "), pages)
