"""The structure of a command.

The module of a command has four parts:

* `Options`, a frozen struct: the only declaration of the options. Its docstring is the help.
  If commands share options, `WORDS` of the class replaces words in braces in their help texts.
* `EXAMPLES`, the command lines that `--help` shows.
* `run(options, app)`, which does the work and returns a `Result`, or None if there is nothing to
  print. It raises errors of `nessie_cli.errors`.
* `show(result, output)`, which prints the result for people. The JSON is the result's document.
"""

from __future__ import annotations

import sys
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Protocol

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.cli.app.output import Output
    from nessie_cli.cli.app.result import Result


class CommandModule(Protocol):
    """The module of a command."""

    Options: type
    EXAMPLES: tuple[str, ...]
    run: Callable[[Any, Invocation], Result | None]
    show: Callable[[Any, Output], None]


def command_of(module: CommandModule, name: str, kind: type[Any]) -> Any:
    """Returns the Typer command of a module; `kind` is its class."""
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    text = cleandoc(module.Options.__doc__ or "")
    single.command(name, cls=kind, help=text, epilog="\n".join(module.EXAMPLES))(module.Options)
    command: Any = typer.main.get_command(single)
    if placeholders := getattr(module.Options, "WORDS", None):
        for parameter in command.params:
            parameter.help = parameter.help and parameter.help.format_map(placeholders)
    return command


def execute(options: Any, app: Invocation) -> None:
    """Runs the command that the options belong to and prints its result.

    Raises `typer.Exit` if the exit code of the result is not 0.
    """
    module: Any = sys.modules[type(options).__module__]
    result: Result | None = module.run(options, app)
    if result is None:
        return
    print_result(result, module.show, app.output)
    for note in result.notes:
        app.output.note(note)
    if result.failures:
        from nessie_cli.cli.errors.report import partly_done

        partly_done(result.failures, app)
    if result.exit_code:
        raise typer.Exit(result.exit_code)


def print_result(result: Result, show: Callable[[Any, Output], None], output: Output) -> None:
    """Prints a result as JSON, or for people by `show`."""
    from nessie_cli.cli.app.result import print_json

    if output.is_json:
        print_json(result, output)
    else:
        show(result, output)
