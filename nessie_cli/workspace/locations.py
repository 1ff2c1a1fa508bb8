"""The folders of this user (configuration, state), by the rules of `platformdirs`.

Importing `platformdirs` or `pathlib` takes longer than a keystroke of completion may, so this
module uses neither.
"""

# ruff: noqa: PTH111, PTH118

from __future__ import annotations

import os
import sys

from nessie_cli.workspace.environment import variable

FOLDER = ".nessie"
"""The folder of a workspace within its root."""
_APPLICATION_SUPPORT = "Library/Application Support/nessie"


def home(path: str) -> str:
    """Returns a path with a leading `~` or `~name` expanded, as a shell does."""
    return os.path.expanduser(path)


def user_config() -> str:
    """Returns the user's settings file."""
    if sys.platform == "darwin":
        return home(f"~/{_APPLICATION_SUPPORT}/config.toml")
    return os.path.join(variable("XDG_CONFIG_HOME") or home("~/.config"), "nessie", "config.toml")


def system_config() -> str:
    """Returns the settings file of all users of this machine."""
    if sys.platform == "darwin":
        return f"/{_APPLICATION_SUPPORT}/config.toml"
    folders = (variable("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    return os.path.join(folders[0], "nessie", "config.toml")


def state() -> str:
    """Returns the folder of persistent state. It need not exist."""
    if sys.platform == "darwin":
        return home(f"~/{_APPLICATION_SUPPORT}")
    return os.path.join(variable("XDG_STATE_HOME") or home("~/.local/state"), "nessie")
