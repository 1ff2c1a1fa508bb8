"""Where a keystroke of shell completion looks: store and reference, by the same rules as a command, without loading what a command loads.

Everybody else asks `folder` and `user`. Whatever is not as expected means "none".
"""

# os.path: importing pathlib costs as much as all the rest of a keystroke.
# ruff: noqa: PTH109, PTH111, PTH112, PTH118, PTH123, PTH208

from __future__ import annotations

import os
import sys

from nessie_cli.workspace.environment import DEFAULT_BRANCH, ENDPOINT, PROFILE, REFERENCE, STORE, variable

# Importing `typing` takes longer than all of this; checkers know this name without the import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nessie_cli.workspace.user import Profile

_FOLDER = ".nessie"
_PLUGIN = "nessie-"


class Place:
    """Where one looks from: the options of the command line first, then the environment, the workspace, the profile.

    `folders` are those of `-C`: the process goes there.
    """

    def __init__(self, options: Mapping[str, str], folders: Sequence[str] = ()) -> None:
        for folder in folders:
            os.chdir(home(folder))
        self.options = options
        self.root = _root(os.getcwd())
        self._profile: Profile | None = None

    def store(self) -> str | None:
        """The URL or path of the store."""
        named = self.options.get("--store")
        profile = self._named_profile()
        if named is None and profile:
            return self._of_profile(profile)
        named = named or variable(STORE) or variable(ENDPOINT)
        if named is None and self.root:
            return self._of_workspace(self.root)
        return named or self._of_profile(None)

    def reference(self) -> str | None:
        """The reference that is worked on; None for the default branch of the store. To be asked after `store`."""
        named = self.options.get("--ref") or variable(REFERENCE)
        of_profile = self._profile.ref if self._profile else None
        if named is None and self._named_profile():
            named = of_profile
        if named is None and self.root:
            named = (_text(os.path.join(self.root, _FOLDER, "HEAD")) or "").strip() or None
        return named or variable(DEFAULT_BRANCH) or of_profile

    def _named_profile(self) -> str | None:
        """The profile that is chosen by name, where nothing nearer names a store."""
        named = self.options.get("--profile")
        return named if named or variable(STORE) or variable(ENDPOINT) else variable(PROFILE)

    def staged(self) -> list[tuple[str, list[str]]]:
        """Type and key elements of the operations that are staged."""
        text = _text(os.path.join(self.root, _FOLDER, "batch.json")) if self.root else None
        if text is None:
            return []
        import json

        return [(operation["type"], operation["key"]["elements"]) for operation in json.loads(text)["operations"]]

    def runs(self) -> list[str]:
        """The names of the workspace's runs of the garbage collection, the newest first."""
        folder = os.path.join(self.root, _FOLDER, "gc") if self.root else ""
        return sorted(os.listdir(folder), reverse=True) if os.path.isdir(folder) else []

    def aliases(self) -> dict[str, str]:
        """The user's own commands and what they stand for; those of the workspace go before those of the user."""
        sources = [_user_config(), *([os.path.join(self.root, _FOLDER, "config.toml")] if self.root else [])]
        found: dict[str, str] = {}
        for source in sources:
            text = _text(source)
            if text and "alias" in text:
                import tomllib

                found |= tomllib.loads(text).get("alias", {})
        return found

    @staticmethod
    def plugins() -> list[str]:
        """The names of programs `nessie-NAME` on the PATH."""
        found = []
        for folder in (variable("PATH") or os.defpath).split(os.pathsep):
            try:
                names = os.listdir(folder or ".")
            except OSError:
                continue
            found += [name.removeprefix(_PLUGIN) for name in names if name.startswith(_PLUGIN) and os.access(os.path.join(folder, name), os.X_OK)]
        return found

    @staticmethod
    def profiles() -> list[str]:
        """The names of the user's profiles."""
        from nessie_cli.workspace.user import profile_names

        return profile_names()

    @staticmethod
    def cache() -> str:
        """The user's cache folder, which need not be there."""
        if sys.platform == "darwin":
            return home("~/Library/Caches/nessie")
        return os.path.join(variable("XDG_CACHE_HOME") or home("~/.cache"), "nessie")

    def _of_workspace(self, root: str) -> str:
        text = _text(os.path.join(root, _FOLDER, "config.toml"))
        # Without the word there is no such setting: most files then need no parser.
        configured = _setting(text, "store") if text and ("store" in text or "\\" in text) else None
        if configured is None:
            return os.path.join(root, _FOLDER, "store.sqlite")
        scheme, colon, rest = configured.partition("///")
        if colon and scheme == "sqlite:":
            return "sqlite:///" + os.path.join(root, rest)
        return configured if ":" in configured.partition("/")[0] else os.path.join(root, configured)

    def _of_profile(self, name: str | None) -> str | None:
        from nessie_cli.workspace.user import default_profile, named_profile

        self._profile = named_profile(name) if name else default_profile()
        return self._profile.store if self._profile else None


def _user_config() -> str:
    """The user's configuration; `platformdirs`, which everybody else asks, costs more than all the rest of a keystroke."""
    if sys.platform == "darwin":
        return home("~/Library/Application Support/nessie/config.toml")
    return os.path.join(variable("XDG_CONFIG_HOME") or home("~/.config"), "nessie", "config.toml")


def home(path: str) -> str:
    """A path with a leading `~` or `~name` replaced, as a shell does it."""
    return os.path.expanduser(path)


def _root(folder: str) -> str | None:
    while not os.path.isdir(os.path.join(folder, _FOLDER)):
        folder, below = os.path.split(folder)
        if not below:
            return None
    return folder


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _setting(source: str, name: str) -> str | None:
    """A text at the top of a TOML file. A plain line is read without the parser, which costs more than all the rest."""
    for line in source.splitlines():
        if line.startswith("["):
            break
        key, equals, value = line.partition("=")
        value = value.strip()
        if equals and key.strip() == name and value[:1] == value[-1:] == '"' and value.count('"') == 2 and "\\" not in value:  # noqa: PLR2004
            return value[1:-1]
    import tomllib

    found = tomllib.loads(source).get(name)
    return found if isinstance(found, str) else None
