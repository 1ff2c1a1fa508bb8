"""Tokens that outlive a process: those of OAuth2 servers, one file for each client, and those of `nessie login`, one file for each server.

Each is readable by the user alone, in the user's folder for such state.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nessie_cli.errors import NotAllowed, StoreUnavailable
from nessie_cli.workspace.files import locked, read_text
from nessie_cli.workspace.locations import state

_OTHERS = 0o077


class TokenFile:
    """The tokens of one client of one server: a file that is replaced whole."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> str | None:
        """What was kept. A file that others may read is not trusted: None."""
        try:
            if self.path.stat().st_mode & _OTHERS:
                return None
            return read_text(self.path)
        except (OSError, NotAllowed):
            return None

    def write(self, text: str | None) -> None:
        """Keep a text, or forget it. The folder has to exist. Raises `StoreUnavailable` where that is not possible."""
        try:
            if text is None:
                self.path.unlink(missing_ok=True)
                return
            beside = self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
            beside.unlink(missing_ok=True)
            with os.fdopen(
                os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
            ) as file:
                file.write(text)
            beside.replace(self.path)
        except OSError as error:
            raise StoreUnavailable(f"{self.path}: cannot be written: {error.strerror}") from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out while a token is renewed."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(
                f"{self.path.parent}: cannot be made: {error.strerror}"
            ) from None
        with locked(self.path.with_suffix(".lock")):
            yield


def token_file(*names: str) -> TokenFile:
    """The file for a client, by everything that tells it from others: server, client id, grant, scopes."""
    digest = hashlib.sha256("\0".join(names).encode()).hexdigest()[:32]
    return TokenFile(Path(state(), "tokens", f"{digest}.json"))


def login_file(server: str) -> TokenFile:
    """The file with the token that `nessie login` was given for a server."""
    digest = hashlib.sha256(server.encode()).hexdigest()[:32]
    return TokenFile(Path(state(), "tokens", f"{digest}.token"))
