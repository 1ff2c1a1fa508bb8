"""Commands of a user's own: `alias.NAME` in the settings of the workspace or of the user. Loaded for words that are no command only."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from nessie_cli.cli.options import command_position
from nessie_cli.cli.registry import COMMANDS
from nessie_cli.errors import InvalidInput


def expanded(argv: Sequence[str]) -> list[str]:
    """Returns a command line with its alias replaced. Settings are read only if its first word is no command.

    Raises `InvalidInput` for an alias that can never work.
    """
    words = list(argv)
    position = command_position(words)
    if position is None or words[position] in COMMANDS:
        return words
    return [*words[:position], *expansion(words, position)]


def expansion(words: Sequence[str], position: int) -> list[str]:
    """The words from `position` on, the alias there replaced by what it stands for; unchanged where it is none."""
    name, folder = words[position], _folder(words[:position])
    found = aliases(folder).get(name)
    if found is None:
        _tell_ignored(name, folder)
    return list(words[position:]) if found is None else [*check_alias(name, found), *words[position + 1 :]]


def aliases(folder: Path) -> Mapping[str, str]:
    """All aliases that hold in a folder; those of a trusted workspace go before those of the user."""
    from nessie_cli.workspace.folder import find_workspace
    from nessie_cli.workspace.settings import Settings
    from nessie_cli.workspace.trust import TRUSTED
    from nessie_cli.workspace.user import user_settings

    workspace = find_workspace(folder)
    # An alias could name a store on the command line, as only the user may.
    trusted = workspace is not None and workspace.trust == TRUSTED
    sources = [user_settings(), *([Settings(workspace.config_path)] if workspace and trusted else [])]
    return {names[1]: text for source in sources for names, text in source.texts().items() if len(names) > 1 and names[0] == "alias"}


def _tell_ignored(name: str, folder: Path) -> None:
    """One line on stderr if the word is an alias of a workspace that is not trusted."""
    from nessie_cli.workspace.folder import find_workspace
    from nessie_cli.workspace.trust import OWN

    workspace = find_workspace(folder)
    if workspace is not None and workspace.trust == OWN and workspace.setting("alias", name):
        hint = f"the workspace {workspace.root} is not trusted, so its alias.{name} is ignored; `{workspace.trusting}` trusts it"
        sys.stderr.write(f"hint: {hint}\n")


def check_alias(name: str, text: str) -> list[str]:
    """The words of an alias; raises `InvalidInput` for one that hides a command, or that does not lead to a command."""
    if name in COMMANDS:
        raise InvalidInput(f"alias.{name}: '{name}' is a command, and aliases never hide commands")
    if name.startswith("-") or not name.isprintable() or " " in name:
        raise InvalidInput(f"alias.{name}: such a word is never a command")
    try:
        import shlex

        words = shlex.split(text)
    except ValueError as error:
        raise InvalidInput(f"alias.{name}: {text!r} cannot be taken apart: {error}") from None
    position = command_position(words)
    if position is None or words[position] not in COMMANDS:
        raise InvalidInput(f"alias.{name}: {text!r} does not begin with a command of nessie")
    return words


def _folder(words: Sequence[str]) -> Path:
    """Where the command will work: every `-C` that stands before it counts."""
    folders = [following for word, following in pairwise(words) if word == "-C"]
    # As the operating system sees it, for `-C` of the parser is a change of folder.
    return Path(os.path.normpath(Path.cwd().joinpath(*folders)))
