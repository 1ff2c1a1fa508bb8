"""The folders of this user (configuration, state), by the rules of `platformdirs`.

Every command needs one of them. Importing `platformdirs` would make each start 7 % slower, because
it loads `tempfile` and `random`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from nessie_cli.workspace.environment import variable

FOLDER = ".nessie"
"""The folder of a workspace within its root."""
_APPLICATION_SUPPORT = "Library/Application Support/nessie"


def home(path: str) -> str:
    """Returns a path with a leading `~` or `~name` expanded, as a shell does."""
    return os.path.expanduser(path)  # noqa: PTH111 (pathlib raises for an unknown user)


def user_config() -> Path:
    """Returns the user's settings file."""
    if sys.platform == "darwin":
        return Path(home(f"~/{_APPLICATION_SUPPORT}"), "config.toml")
    return Path(variable("XDG_CONFIG_HOME") or home("~/.config"), "nessie", "config.toml")


def system_config() -> Path:
    """Returns the settings file of all users of this machine."""
    if sys.platform == "darwin":
        return Path("/", _APPLICATION_SUPPORT, "config.toml")
    folders = (variable("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    return Path(folders[0], "nessie", "config.toml")


def state() -> Path:
    """Returns the folder of persistent state. It need not exist."""
    if sys.platform == "darwin":
        return Path(home(f"~/{_APPLICATION_SUPPORT}"))
    return Path(variable("XDG_STATE_HOME") or home("~/.local/state"), "nessie")
