"""Where this user's files are: configuration, cache and state, by the rules of `platformdirs`.

Importing `platformdirs` or `pathlib` takes longer than a keystroke of completion may, so this module needs neither.
"""

# ruff: noqa: PTH111, PTH118

from __future__ import annotations

import os
import sys

from nessie_cli.workspace.environment import variable

FOLDER = ".nessie"
"""The folder of a workspace, in the folder that it is for."""
_APPLICATION_SUPPORT = "Library/Application Support/nessie"


def home(path: str) -> str:
    """A path with a leading `~` or `~name` replaced, as a shell does it."""
    return os.path.expanduser(path)


def user_config() -> str:
    """The user's settings file."""
    if sys.platform == "darwin":
        return home(f"~/{_APPLICATION_SUPPORT}/config.toml")
    return os.path.join(variable("XDG_CONFIG_HOME") or home("~/.config"), "nessie", "config.toml")


def system_config() -> str:
    """The settings file of all users of this machine."""
    if sys.platform == "darwin":
        return f"/{_APPLICATION_SUPPORT}/config.toml"
    folders = (variable("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    return os.path.join(folders[0], "nessie", "config.toml")


def cache() -> str:
    """The folder of what may be deleted at any time. It need not exist."""
    if sys.platform == "darwin":
        return home("~/Library/Caches/nessie")
    return os.path.join(variable("XDG_CACHE_HOME") or home("~/.cache"), "nessie")


def state() -> str:
    """The folder of what outlives a command and is no setting. It need not exist."""
    if sys.platform == "darwin":
        return home(f"~/{_APPLICATION_SUPPORT}")
    return os.path.join(variable("XDG_STATE_HOME") or home("~/.local/state"), "nessie")
