"""Each command is parsed as Typer itself would parse its function."""

from __future__ import annotations

from importlib import import_module

import pytest
import typer

from nessie_cli.cli.group import ExampleCommand, load
from nessie_cli.cli.registry import COMMANDS


def leaves(table=COMMANDS, path=()):
    for name, entry in table.items():
        if entry.children is None:
            yield " ".join((*path, name)), entry
        else:
            yield from leaves(entry.children, (*path, name))


LEAVES = dict(leaves())


def by_typer(name, entry):
    module = import_module(f"nessie_cli.cli.commands.{entry.module}")
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name, cls=ExampleCommand, epilog="\n".join(module.EXAMPLES))(getattr(module, entry.function))
    return typer.main.get_command(app)


def described(parameter):
    said = {name: value for name, value in vars(parameter).items() if name not in ("type", "callback", "_custom_shell_complete")}
    return type(parameter), said, type(parameter.type), vars(parameter.type), parameter.callback


@pytest.mark.parametrize("name", LEAVES)
def test_a_command_is_what_typer_makes_of_its_function(name):
    ours, theirs = load(name, LEAVES[name]), by_typer(name, LEAVES[name])

    assert list(map(described, ours.params)) == list(map(described, theirs.params))
    for attribute in ("name", "help", "epilog", "short_help", "options_metavar", "add_help_option", "no_args_is_help", "hidden", "deprecated"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    assert ours.rich_markup_mode == theirs.rich_markup_mode
    assert ours.context_settings == theirs.context_settings
