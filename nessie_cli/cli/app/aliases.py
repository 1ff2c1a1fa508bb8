"""Aliases: commands of the user, such as `alias.lg`, in the settings of the workspace or the user."""

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
    """Returns a command line with its alias replaced.

    Settings are read only if the first word is not a command. Raises `InvalidInput` for an alias
    that can never work.
    """
    words = list(argv)
    position = command_position(words)
    if position is None or words[position] in COMMANDS:
        return words
    name, folder = words[position], _working_folder(words[:position])
    text = aliases(folder).get(name)
    if text is None:
        _warn_if_untrusted(name, folder)
        return words
    return [*words[:position], *check_alias(name, text), *words[position + 1 :]]


def aliases(folder: Path) -> Mapping[str, str]:
    """Returns the aliases that apply in a folder.

    Those of a trusted workspace override those of the user. An untrusted workspace has none,
    because an alias can name a store on the command line.
    """
    from nessie_cli.workspace.folder import find_workspace
    from nessie_cli.workspace.settings import Settings
    from nessie_cli.workspace.trust import TRUSTED
    from nessie_cli.workspace.user import user_settings

    sources = [user_settings()]
    workspace = find_workspace(folder)
    if workspace is not None and workspace.trust == TRUSTED:
        sources.append(Settings(workspace.config_path))
    texts = (item for source in sources for item in source.texts().items())
    return {name[1]: text for name, text in texts if len(name) > 1 and name[0] == "alias"}


def check_alias(name: str, text: str) -> list[str]:
    """Returns the words of an alias.

    Raises `InvalidInput` if the alias hides a command, or does not begin with one.
    """
    if name in COMMANDS:
        raise InvalidInput(f"alias.{name}: '{name}' is a command, and aliases never hide commands")
    if name.startswith("-") or not name.isprintable() or " " in name:
        raise InvalidInput(f"alias.{name}: this name can never be typed as a command")
    try:
        import shlex

        words = shlex.split(text)
    except ValueError as error:
        raise InvalidInput(f"alias.{name}: {text!r} cannot be split into words: {error}") from None
    position = command_position(words)
    if position is None or words[position] not in COMMANDS:
        raise InvalidInput(f"alias.{name}: {text!r} does not begin with a command of nessie")
    return words


def _warn_if_untrusted(name: str, folder: Path) -> None:
    """Prints a hint if the word is an alias of an untrusted workspace."""
    from nessie_cli.workspace.folder import find_workspace
    from nessie_cli.workspace.trust import OWN

    workspace = find_workspace(folder)
    if workspace is not None and workspace.trust == OWN and workspace.setting("alias", name):
        sys.stderr.write(
            f"hint: the workspace {workspace.root} is not trusted, so its alias.{name} is ignored; `{workspace.trusting}` trusts it\n",
        )


def _working_folder(words: Sequence[str]) -> Path:
    """The folder in which the command runs: every `-C` before the command counts."""
    folders = [following for word, following in pairwise(words) if word == "-C"]
    # `-C` changes the folder, so `..` is resolved as the operating system does.
    from nessie_cli.workspace.folder import working_folder

    return Path(os.path.normpath(working_folder().joinpath(*folders)))
