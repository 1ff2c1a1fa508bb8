"""The facts about the user's trust: owners of files, `safe-directories`, and records.

They are never read from a workspace. Each record in the user's state folder is one line of a small
text file: `workspaces` has the workspaces that `nessie init` made, `servers` the servers of `nessie
login`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from nessie_cli.workspace import environment, trust
from nessie_cli.workspace.locations import FOLDER, home, state, system_config, user_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nessie_cli.workspace.credentials import Consent
    from nessie_cli.workspace.trust import Trust

SAFE_DIRECTORIES = "safe-directories"
TRUSTED_ENDPOINTS = "trusted-endpoints"
ALLOW_HTTP = "allow-http"
_WORKSPACES, _SERVERS = "workspaces", "servers"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
"""Characters that could end a record: a path with one of them is not recorded."""
_IDENTITY, _LENGTH = "identity", 64
"""The file in `.nessie/` with the identity of a workspace, and its length."""
_DATABASES = ("postgresql", "postgres")
_SQLITE_FILES = ("", "-wal", "-shm", "-journal")
_ELSEWHERE = ("http", "https", "memory")


# -- workspaces ----------------------------------------------------------------------------------


def trust_in(root: str) -> Trust:
    """Returns the trust in the workspace of a folder."""
    path = os.path.realpath(root)
    owners = _owners(path)
    if owners is None:
        return trust.FOREIGN
    return trust.decide(
        path,
        owners,
        uid=os.geteuid(),
        sudo_uid=trust.sudo_uid(environment.variable(environment.SUDO_UID)),
        safe=safe_directories(),
        recorded=trust.is_recorded(_records(_WORKSPACES), path, owners, _identity(path)),
    )


def record_workspace(root: str) -> bool:
    """Records that the user made the workspace of a folder. Returns whether that was possible.

    The workspace gets a new identity, so that the record does not hold for another one at its path.
    """
    path = os.path.realpath(root)
    owners = _owners(path)
    if owners is None or _CONTROL.search(path):
        return False
    if not _set_identity(path, identity := os.urandom(32).hex()):
        return False
    line = trust.record(path, owners, identity)
    return _change(_WORKSPACES, lambda lines: [*_without(lines, path), line])


def _without(lines: Iterable[str], path: str) -> list[str]:
    return [line for line in lines if line.split(" ", 2)[-1] != path]


def _set_identity(path: str, identity: str) -> bool:
    file = Path(path, FOLDER, _IDENTITY)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(file, flags, 0o600)
        try:
            os.write(descriptor, f"{identity}\n".encode())
        finally:
            os.close(descriptor)
    except OSError:
        return False
    return True


def _identity(path: str) -> str | None:
    """Returns the identity in a workspace; None without one."""
    try:
        # Opening a pipe would wait for a writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(Path(path, FOLDER, _IDENTITY), flags)
        try:
            text = os.read(descriptor, _LENGTH + 1).decode("ascii", "replace").strip()
        finally:
            os.close(descriptor)
    except OSError:
        return None
    return text if len(text) == _LENGTH and text.isalnum() else None


def _owners(path: str) -> set[int] | None:
    """Returns the owners of a folder, its `.nessie/`, and a link to it; None if unknown."""
    folder = Path(path, FOLDER)
    try:
        return {Path(path).stat().st_uid, folder.lstat().st_uid, folder.stat().st_uid}
    except OSError:
        return None


def safe_directories() -> list[str]:
    """Returns the absolute `safe-directories` of system, user and environment, resolved."""
    named = environment.variable(environment.SAFE_DIRECTORIES)
    folders = named.split(os.pathsep) if named else []
    for path in (system_config(), user_config()):
        folders += _listed(path, SAFE_DIRECTORIES, os.pathsep)
    return [
        _resolved(entry)
        for text in folders
        if (entry := home(text.strip())) == trust.EVERYWHERE or Path(entry).is_absolute()
    ]


def _resolved(entry: str) -> str:
    if entry == trust.EVERYWHERE:
        return entry
    bare, below = (entry[:-2], "/*") if entry.endswith("/*") else (entry, "")
    return os.path.realpath(bare).rstrip("/") + below if below else os.path.realpath(bare)


# -- servers -------------------------------------------------------------------------------------


def consent() -> Consent:
    """Returns the servers that the user named in the environment, the configuration or by login.

    Raises `InvalidInput` for a setting that names no server.
    """
    from nessie_cli.workspace.credentials import AllowedHttp, Consent, checked_endpoints, endpoint

    named = _split(environment.variable(environment.TRUSTED_ENDPOINTS))
    records = _records(_SERVERS)
    servers = {server for text in (*records, *_profile_urls()) if (server := endpoint(text))}
    servers |= checked_endpoints(named, environment.TRUSTED_ENDPOINTS)
    servers |= checked_endpoints(_listed(user_config(), TRUSTED_ENDPOINTS, None), TRUSTED_ENDPOINTS)
    http = [
        *_split(environment.variable(environment.ALLOW_HTTP)),
        *_listed(user_config(), ALLOW_HTTP, None),
    ]
    return Consent(servers, AllowedHttp(http), records)


def _profile_urls() -> list[str]:
    """Yields every URL in the user's profiles."""
    if "profile" not in _text(user_config()):
        return []
    from nessie_cli.workspace.user import user_settings

    return [
        value
        for names, value in user_settings().texts().items()
        if names[0] == "profile" and "://" in value
    ]


def record_server(url: str) -> bool:
    """Records that the user named this server. Returns whether that was possible."""
    return _change(_SERVERS, lambda lines: lines if url in lines else [*lines, url])


def forget_server(url: str) -> bool:
    """Removes a server. Returns whether it was recorded."""
    was_recorded = url in _records(_SERVERS)
    return was_recorded and _change(_SERVERS, lambda lines: [line for line in lines if line != url])


def may_name(url: str, root: str, trusted: Trust) -> bool:
    """Returns whether the workspace of a folder may choose this store for the user.

    A database gets the user's passwords, so the user must have named it. A file outside of the
    folder needs trust. Credentials for a web server are decided where they are read.
    """
    scheme, colon, rest = url.partition(":")
    scheme = scheme.lower() if colon else ""
    if scheme in _DATABASES:
        return consent().covers(url)
    if trusted == trust.TRUSTED or scheme in _ELSEWHERE:
        return True
    path = rest.removeprefix("///") if scheme == "sqlite" else url
    inside = os.path.realpath(root) + os.sep
    # SQLite opens files beside the store, which may be links as well.
    return all(os.path.realpath(path + suffix).startswith(inside) for suffix in _SQLITE_FILES)


# -- files ---------------------------------------------------------------------------------------


def _split(text: str | None) -> list[str]:
    return text.replace(",", " ").split() if text else []


def _listed(path: Path, name: str, separator: str | None) -> list[str]:
    """Returns a list of a settings file: an array of strings, or one text with separators."""
    # Most files do not contain the word, and need no parser.
    if name not in _text(path):
        return []
    from nessie_cli.workspace.settings import SettingsFile

    entries = [
        entry
        for text in SettingsFile(path).texts_of(name)
        for entry in (text.split(separator) if separator else _split(text))
    ]
    return [entry for entry in entries if entry.strip()]


def _text(path: Path) -> str:
    """Returns the text of a file, or an empty one if it cannot be read."""
    try:
        # Other characters than a line feed end no line.
        with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            return file.read()
    except OSError:
        return ""


def _records(name: str) -> list[str]:
    folder = state()
    # The path is relative for a user without a home.
    return (
        [line for line in _text(folder / name).split("\n") if line] if folder.is_absolute() else []
    )


def _change(name: str, change: Callable[[list[str]], list[str]]) -> bool:
    """Changes a file of records under its lock. Returns False if that is not possible."""
    from nessie_cli.errors import StoreUnavailable
    from nessie_cli.workspace.files import locked, replace_text

    folder = state()
    if not folder.is_absolute():
        return False
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(folder / f"{name}.lock"):
            before = _records(name)
            after = change(before)
            if after != before:
                replace_text(folder / name, "".join(f"{line}\n" for line in after))
    except (OSError, StoreUnavailable, UnicodeEncodeError):
        return False
    return True
