"""`nessie completion`."""

from enum import StrEnum
from typing import Annotated

import typer

from nessie_cli.cli.completion.scripts import script
from nessie_cli.cli.context import Invocation
from nessie_cli.render.spans import Span

EXAMPLES = ("nessie completion bash", "nessie completion zsh", "nessie completion fish")


class Shell(StrEnum):
    """The shells that there are scripts for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(ctx: typer.Context, shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print the script that completes nessie's commands in a shell.

    To load it for good: in bash `source <(nessie completion bash)` in ~/.bashrc, in zsh `source <(nessie completion zsh)` in ~/.zshrc behind
    `compinit`, in fish `nessie completion fish | source` in ~/.config/fish/config.fish.
    """
    call = Invocation.of(ctx)
    if call.wants_json:
        call.answer({"shell": shell.value, "script": script(shell.value)})
    else:
        call.out.print_lines([Span(line)] for line in script(shell.value).splitlines())
