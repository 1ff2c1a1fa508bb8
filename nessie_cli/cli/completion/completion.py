"""`nessie completion`."""

from enum import StrEnum
from typing import Annotated

import typer
from msgspec import Struct

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document
from nessie_cli.cli.completion.scripts import script
from nessie_cli.render.spans import Span

EXAMPLES = ("nessie completion bash", "nessie completion zsh", "nessie completion fish")


class Shell(StrEnum):
    """The shells that have a completion script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


class Options(Struct, frozen=True, kw_only=True):
    """Print the completion script of a shell.

    To load it in every new shell, add one line to the shell's configuration. For bash, add
    `source <(nessie completion bash)` to ~/.bashrc. For zsh, add `source <(nessie completion zsh)`
    to ~/.zshrc, after `compinit`. For fish, add `nessie completion fish | source` to
    ~/.config/fish/config.fish.
    """

    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]


class Script(Document, frozen=True):
    """The completion script of a shell."""

    shell: Shell
    script: str


def run(options: Options, app: Invocation) -> Script:  # noqa: ARG001 - the shape of a command
    """Reads the script."""
    return Script(options.shell, script(options.shell.value))


def show(result: Script, output: Output) -> None:
    """Prints the script."""
    output.out.print_lines([Span(line)] for line in result.script.splitlines())
