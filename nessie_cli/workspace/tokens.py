"""Stored tokens: one file per client of an OAuth2 server, and per server of `nessie login`.

Only the user can read them, in the user's state folder.
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
    """The tokens of one client of one server: a file that is replaced atomically."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> str | None:
        """Returns the stored text, or None. A file that others may read is not used."""
        try:
            if self.path.stat().st_mode & _OTHERS:
                return None
            return read_text(self.path)
        except (OSError, NotAllowed):
            return None

    def write(self, text: str | None) -> None:
        """Stores a text, or deletes it. The folder must exist. Raises `StoreUnavailable`."""
        try:
            if text is None:
                self.path.unlink(missing_ok=True)
                return
            temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
            temporary.unlink(missing_ok=True)
            with os.fdopen(
                os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600),
                "w",
                encoding="utf-8",
            ) as file:
                file.write(text)
            temporary.replace(self.path)
        except OSError as error:
            raise StoreUnavailable(f"{self.path} cannot be written: {error.strerror}") from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes out while a token is renewed."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(f"{self.path.parent} cannot be made: {error.strerror}") from None
        with locked(self.path.with_suffix(".lock")):
            yield


def token_file(*names: str) -> TokenFile:
    """Returns the file for a client, by server, client id, grant and scopes."""
    digest = hashlib.sha256("\0".join(names).encode()).hexdigest()[:32]
    return TokenFile(state() / "tokens" / f"{digest}.json")


def login_file(server: str) -> TokenFile:
    """Returns the file with the token that `nessie login` got for a server."""
    digest = hashlib.sha256(server.encode()).hexdigest()[:32]
    return TokenFile(state() / "tokens" / f"{digest}.token")
