"""Aliases: commands that users define, such as `alias.lg`, in workspace or user settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from nessie_cli.cli.app.global_options import command_position
from nessie_cli.cli.registry import COMMANDS
from nessie_cli.errors import InvalidInput


def expanded(argv: Sequence[str]) -> list[str]:
    """Returns a command line with its alias expanded.

    Settings are read only if the first word is not a command. Raises `InvalidInput` for an invalid
    alias.
    """
    arguments = list(argv)
    position = command_position(arguments)
    if position is None or arguments[position] in COMMANDS:
        return arguments
    name, folder = arguments[position], _working_folder(arguments[:position])
    text = aliases(folder).get(name)
    if text is None:
        _warn_if_untrusted(name, folder)
        return arguments
    return [*arguments[:position], *check_alias(name, text), *arguments[position + 1 :]]


def aliases(folder: Path) -> Mapping[str, str]:
    """Returns the aliases that apply in a folder.

    Aliases of a trusted workspace override the user's. Aliases of an untrusted workspace are
    ignored, because an alias can name a store on the command line.
    """
    from nessie_cli.workspace.folder import find_workspace
    from nessie_cli.workspace.settings import SettingsFile
    from nessie_cli.workspace.trust import TRUSTED
    from nessie_cli.workspace.user import user_settings

    sources = [user_settings()]
    workspace = find_workspace(folder)
    if workspace is not None and workspace.trust == TRUSTED:
        sources.append(SettingsFile(workspace.config_path))
    texts = (item for source in sources for item in source.texts().items())
    return {name[1]: text for name, text in texts if len(name) > 1 and name[0] == "alias"}


def check_alias(name: str, text: str) -> list[str]:
    """Returns the words of an alias.

    Raises `InvalidInput` if the alias hides a command, or does not begin with one.
    """
    if name in COMMANDS:
        raise InvalidInput(
            f"alias.{name}: '{name}' is a command, and an alias cannot override a command"
        )
    if name.startswith("-") or not name.isprintable() or " " in name:
        raise InvalidInput(f"alias.{name}: this is not a valid command name")
    try:
        import shlex

        arguments = shlex.split(text)
    except ValueError as error:
        raise InvalidInput(f"alias.{name}: {text!r} is not a valid command line: {error}") from None
    position = command_position(arguments)
    if position is None or arguments[position] not in COMMANDS:
        raise InvalidInput(f"alias.{name}: {text!r} does not begin with a nessie command")
    return arguments


def _warn_if_untrusted(name: str, folder: Path) -> None:
    """Prints a hint if the word is an alias of an untrusted workspace."""
    from nessie_cli.workspace.folder import find_workspace
    from nessie_cli.workspace.trust import OWN

    workspace = find_workspace(folder)
    if workspace is not None and workspace.trust == OWN and workspace.setting("alias", name):
        sys.stderr.write(
            f"hint: the workspace {workspace.root} is not trusted, so its alias.{name} is ignored;"
            f" `{workspace.trusting}` trusts it\n",
        )


def _working_folder(arguments: Sequence[str]) -> Path:
    """The folder in which the command runs, after every `-C` before the command."""
    folders = [following for argument, following in pairwise(arguments) if argument == "-C"]
    # `-C` changes the folder, so `..` is resolved as the operating system does.
    from nessie_cli.workspace.folder import working_folder

    return Path(os.path.normpath(working_folder().joinpath(*folders)))
