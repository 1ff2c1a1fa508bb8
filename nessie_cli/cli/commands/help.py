"""`nessie help`."""

from typing import Annotated

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.help.pages import page_names, page_source
from nessie_cli.errors import InvalidInput

EXAMPLES = ("nessie help", "nessie help merge", "nessie help content put", "nessie help revisions", "nessie help log --no-pager")
_PREFIX = "nessie"


def help_(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND|TOPIC...]", help="A command, or revisions, filters, conflicts, stores, json or exit-status.", show_default=False
        ),
    ] = None,
) -> None:
    """Show the manual page of a command or topic; without one that of nessie itself.

    On a terminal a long page goes through the pager; else it is plain text. The program `man` is not needed.
    """
    call = Invocation.of(ctx)
    name = "-".join(word.strip() for word in words or () if word.strip())
    name = name if name == _PREFIX or name.startswith(f"{_PREFIX}-") else f"{_PREFIX}-{name}".rstrip("-")
    source = page_source(name) if name.replace("-", "").isalnum() else None
    if source is None:
        raise InvalidInput(f"there is no page for '{' '.join(words or ())}'{_nearest(name)}")
    from nessie_cli.render.manual import manual_lines

    lines = manual_lines(source, call.out.width)
    if call.wants_json:
        from nessie_cli.render.spans import plain

        call.answer({"name": name, "text": "\n".join(map(plain, lines))})
        return
    call.out.print_lines(lines, paged=True)


def _nearest(name: str) -> str:
    from nessie_cli.cli.errors.suggestions import did_you_mean

    pages = [page.removeprefix(f"{_PREFIX}-").replace("-", " ") for page in page_names()]
    return did_you_mean(name.removeprefix(f"{_PREFIX}-").replace("-", " "), pages)
