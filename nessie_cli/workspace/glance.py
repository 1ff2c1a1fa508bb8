"""Where a keystroke of shell completion looks: store and reference, by the same rules as a command, without loading what a command loads.

Everybody else asks `folder` and `user`. Whatever is not as expected means "none".
"""

# os.path: importing pathlib costs as much as all the rest of a keystroke.
# ruff: noqa: PTH109, PTH112, PTH118, PTH123, PTH208

from __future__ import annotations

import os

from nessie_cli.workspace.environment import DEFAULT_BRANCH, ENDPOINT, PROFILE, REFERENCE, STORE, variable
from nessie_cli.workspace.locations import FOLDER, home, user_config
from nessie_cli.workspace.trust import FOREIGN, TRUSTED
from nessie_cli.workspace.trust_records import may_name, trust_in

# Importing `typing` takes longer than all of this; checkers know this name without the import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nessie_cli.workspace.user import Profile

_PLUGIN = "nessie-"


class Place:
    """Where one looks from: the options of the command line first, then the environment, the workspace, the profile.

    `folders` are those of `-C`: the process goes there. A workspace that a command would refuse or ignore is none here.
    """

    def __init__(self, options: Mapping[str, str], folders: Sequence[str] = ()) -> None:
        for folder in folders:
            os.chdir(home(folder))
        self.options = options
        found = _root(os.getcwd())
        self._trust = trust_in(found) if found else TRUSTED
        named = options.get("--store") or options.get("--profile") or variable(STORE) or variable(ENDPOINT) or variable(PROFILE)
        self._refused = self._trust == FOREIGN and not named
        self.root = None if self._trust == FOREIGN or (named and self._trust != TRUSTED) else found
        self._profile: Profile | None = None

    def store(self) -> str | None:
        """The URL or path of the store; None if there is none, or the workspace may not name it."""
        if self._refused:
            return None
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
            named = (_text(os.path.join(self.root, FOLDER, "HEAD")) or "").strip() or None
        return named or variable(DEFAULT_BRANCH) or of_profile

    def _named_profile(self) -> str | None:
        """The profile that is chosen by name, where nothing nearer names a store."""
        named = self.options.get("--profile")
        return named if named or variable(STORE) or variable(ENDPOINT) else variable(PROFILE)

    def staged(self) -> list[tuple[str, list[str]]]:
        """Type and key elements of the operations that are staged."""
        text = _text(os.path.join(self.root, FOLDER, "batch.json")) if self.root else None
        if text is None:
            return []
        import json

        return [(operation["type"], operation["key"]["elements"]) for operation in json.loads(text)["operations"]]

    def runs(self) -> list[str]:
        """The names of the workspace's runs of the garbage collection, the newest first."""
        folder = os.path.join(self.root, FOLDER, "gc") if self.root else ""
        return sorted(os.listdir(folder), reverse=True) if os.path.isdir(folder) else []

    def aliases(self) -> dict[str, str]:
        """The user's own commands and what they stand for; those of a trusted workspace go before those of the user."""
        of_workspace = [os.path.join(self.root, FOLDER, "config.toml")] if self.root and self._trust == TRUSTED else []
        sources = [user_config(), *of_workspace]
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

    def _of_workspace(self, root: str) -> str | None:
        url = self._url_in(root)
        return url if may_name(url, root, self._trust) else None

    @staticmethod
    def _url_in(root: str) -> str:
        text = _text(os.path.join(root, FOLDER, "config.toml"))
        # Without the word there is no such setting: most files then need no parser.
        configured = _setting(text, "store") if text and ("store" in text or "\\" in text) else None
        if configured is None:
            return os.path.join(root, FOLDER, "store.sqlite")
        scheme, colon, rest = configured.partition("///")
        if colon and scheme == "sqlite:":
            return "sqlite:///" + os.path.join(root, rest)
        return configured if ":" in configured.partition("/")[0] else os.path.join(root, configured)

    def _of_profile(self, name: str | None) -> str | None:
        from nessie_cli.workspace.user import default_profile, named_profile

        self._profile = named_profile(name) if name else default_profile()
        return self._profile.store if self._profile else None


def _root(folder: str) -> str | None:
    while not os.path.isdir(os.path.join(folder, FOLDER)):
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
