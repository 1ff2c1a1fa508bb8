"""The workspace: the folder `.nessie/`, found upwards from the current folder.

It contains `HEAD` (the current reference, one line), `PREVIOUS` (the one before), `config.toml`
(settings), `identity` (to which the user's trust refers), `batch.json` (the staged operations),
`stash.json` (stashed batches), `MESSAGE` (that of a failed commit), `lock`, optionally
`requests.json` (requests without an answer) and `hooks/`, and, unless the settings name another
store, the store.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nessie_cli.errors import InvalidInput, NotAllowed, StoreUnavailable
from nessie_cli.model import check_reference_name
from nessie_cli.workspace.files import read_text, replace_text
from nessie_cli.workspace.locations import FOLDER
from nessie_cli.workspace.settings import SettingsFile
from nessie_cli.workspace.trust import FOREIGN, TRUSTED
from nessie_cli.workspace.trust_records import may_name, trust_in

if TYPE_CHECKING:
    from nessie_cli.workspace.trust import Trust

DEFAULT_STORE = "store.sqlite"
FILE = "-file"
"""The endings of the names of settings that are files."""


class Workspace:
    """A workspace; `root` is the folder that contains `.nessie/`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / FOLDER
        self.ignored: list[str] = []
        """Settings that were read and ignored, because the workspace is not trusted."""

    @cached_property
    def trust(self) -> Trust:
        """The user's trust in the files of this workspace."""
        return trust_in(str(self.root))

    def refusal(self, consequence: str) -> NotAllowed:
        """Returns the error of an untrusted workspace, with the command to trust it."""
        root = self.root.resolve()
        whose = "belongs to another user" if self.trust == FOREIGN else "is not trusted"
        return NotAllowed(
            f"the workspace {root} {whose}, so {consequence}; if you trust what is in it, run"
            f" `{self.trusting}`"
        )

    @property
    def trusting(self) -> str:
        """The command line that trusts this workspace."""
        import shlex

        return f"nessie config set safe-directories {shlex.quote(str(self.root.resolve()))} --add"

    def file(self, name: str) -> Path:
        """Returns the path of a file in `.nessie/`.

        Raises `NotAllowed` for a symbolic link in a workspace that is not trusted: the file behind
        it may be secret, and a command shows the file or sends it to the workspace's server.
        """
        path = self.folder / name
        for link in (self.folder, path):
            if link.is_symlink() and self.trust != TRUSTED:
                raise self.refusal(f"{link}, a symbolic link, is not used")
        return path

    @property
    def head_path(self) -> Path:
        """The file with the current reference."""
        return self.file("HEAD")

    @property
    def previous_path(self) -> Path:
        """The file with the previous reference."""
        return self.file("PREVIOUS")

    @property
    def config_path(self) -> Path:
        """The settings file."""
        return self.file("config.toml")

    @property
    def batch_path(self) -> Path:
        """The file with the staged operations."""
        return self.file("batch.json")

    @property
    def hooks_path(self) -> Path:
        """The folder of hooks."""
        return self.folder / "hooks"

    @property
    def message_path(self) -> Path:
        """The file with a message while it is edited, and after its commit has failed."""
        return self.file("MESSAGE")

    @property
    def stash_path(self) -> Path:
        """The file with the stashed batches."""
        return self.file("stash.json")

    @property
    def lock_path(self) -> Path:
        """The lock of the writers of this workspace."""
        return self.file("lock")

    def current_reference(self) -> str | None:
        """The reference that commands use; None before the first `switch` or `init` has set one."""
        return _reference_in(self.head_path)

    def previous_reference(self) -> str | None:
        """The reference before the last switch; None if there was none."""
        return _reference_in(self.previous_path)

    def set_current_reference(self, name: str) -> None:
        """Sets the current reference, and remembers the previous one. Replaces an invalid file."""
        try:
            before = self.current_reference()
        except InvalidInput:
            before = None
        if before and before != name:
            replace_text(self.previous_path, before + "\n")
        replace_text(self.head_path, name + "\n")

    def follow_rename(self, old: str, new: str) -> None:
        """Updates the current and the previous reference after a rename."""
        for path in (self.head_path, self.previous_path):
            if _reference_in(path) == old:
                replace_text(path, new + "\n")

    def store(self) -> str:
        """Returns the URL or path of the store, with relative SQLite paths made absolute.

        Raises `NotAllowed` if the workspace may not choose this store for the user.
        """
        url = self.named_store()
        if not may_name(url, str(self.root), self.trust):
            raise self._store_refusal(url)
        return url

    def named_store(self) -> str:
        """Returns the store without a decision about it."""
        configured = SettingsFile(self.config_path).text("store")
        return (
            str(self.folder / DEFAULT_STORE)
            if configured is None
            else absolute_store(configured, self.root)
        )

    def _store_refusal(self, url: str) -> NotAllowed:
        from nessie_cli.workspace.secrets import without_secrets

        shown = without_secrets(url)
        if self.trust == TRUSTED:
            return NotAllowed(
                f"only the workspace {self.root} names the database {shown}; if you trust that"
                f" server, run `nessie login {shown}`"
            )
        return self.refusal(f"its store outside of it is not opened: {shown}")

    def access_setting(self, name: str) -> str | None:
        """Returns a setting about the server of this workspace. A file needs trust."""
        value = self.setting("access", name)
        if value is not None and name.endswith(FILE) and self.trust != TRUSTED:
            self.ignored.append(f"access.{name}")
            return None
        return value

    def setting(self, *names: str) -> str | None:
        """Returns a setting of this workspace."""
        return SettingsFile(self.config_path).text(*names)


def _reference_in(path: Path) -> str | None:
    text = read_text(path)
    if text is None or not text.strip():
        return None
    name = text.strip()
    try:
        return check_reference_name(name)
    except InvalidInput:
        raise InvalidInput(
            f"{path}, line 1: {name[:80]!r} is not a reference name; `nessie switch REF` sets one"
        ) from None


def absolute_store(url: str, root: Path) -> str:
    """Makes a relative SQLite path in a URL absolute, relative to `root`."""
    scheme, colon, rest = url.partition(":")
    if colon and rest.startswith("///") and scheme == "sqlite":
        path = rest.removeprefix("///")
        return url if path.startswith("/") else f"sqlite:///{root / path}"
    is_path = not colon or "/" in scheme
    return str(root / url) if is_path else url


def store_name(url: str, root: Path | None) -> str:
    """Returns the name under which files of the workspace at `root` refer to a store.

    All URLs of a store give one name. It has no secrets. A path inside the workspace is relative,
    so that the workspace can be moved.
    """
    from nessie_cli.workspace.secrets import without_secrets

    scheme, colon, rest = url.partition(":")
    if colon and scheme != "sqlite" and "/" not in scheme:
        return without_secrets(url).rstrip("/")
    path = Path(rest.removeprefix("///") if colon and scheme == "sqlite" else url).resolve()
    base = root.resolve() if root else None
    return str(path.relative_to(base) if base and path.is_relative_to(base) else path)


def working_folder() -> Path:
    """Returns the current folder. Raises `InvalidInput` if it has been deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise InvalidInput(
            "the current folder has been deleted", hint="`cd` to a folder that exists"
        ) from None


def find_workspace(start: Path) -> Workspace | None:
    """Returns the nearest workspace at or above a folder, or None."""
    for root in (start, *start.parents):
        if (root / FOLDER).is_dir():
            return Workspace(root)
    return None


def make_workspace(root: Path, store: str | None) -> Workspace:
    """Returns the workspace in a folder, and creates it if necessary.

    `store` is stored in its settings.
    """
    workspace = Workspace(root)
    try:
        workspace.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(f"{workspace.folder} cannot be made: {error.strerror}") from None
    ignore = workspace.folder / ".gitignore"
    if not ignore.exists():
        replace_text(ignore, "*\n")
    if store is not None and not workspace.config_path.exists():
        replace_text(workspace.config_path, f"store = {_toml_text(store)}\n")
    return workspace


def _toml_text(value: str) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
