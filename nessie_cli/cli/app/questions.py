"""Questions to a person on a terminal, on stderr. Nothing asks without a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from nessie_cli.errors import Interrupted

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.render.terminal import Terminal


def ask(terminal: Terminal, question: str) -> str | None:
    """Returns the answer to a question, or None at the end of the input.

    After Ctrl-C or the end of the input, the next output begins on a new line.
    """
    terminal.prompt(question)
    line = ""
    try:
        line = sys.stdin.readline()
    finally:
        if not line:
            terminal.write("\n")
    return line.strip() if line else None


def is_yes(terminal: Terminal, question: str) -> bool:
    """Returns whether the answer to a question is yes. The default is no."""
    return (ask(terminal, f"{question} [y/N]") or "").lower() in ("y", "yes")


def confirm(app: Invocation, question: str, *, yes: bool) -> None:
    """Asks for confirmation on a terminal. Raises `Interrupted` if the answer is no.

    Scripts are not asked.
    """
    if yes or app.output.is_json or not sys.stdin.isatty():
        return
    if not is_yes(app.output.err, question):
        raise Interrupted("not confirmed, so nothing was done", hint="--yes skips the question")
