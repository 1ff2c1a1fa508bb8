"""Certificates and keys of a CA, a server and a client, created in each process that needs
them.

An encrypted copy of the client's key has the password `opensesame`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from tests.server.certificates import Authority, encrypted

PASSWORD = "opensesame"


def _made() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="nessie-tests-tls-"))
    atexit.register(_remove, folder, os.getpid())
    authority = Authority(folder, "ca")
    authority.server()
    encrypted(authority.client().key, folder / "client-encrypted.key", PASSWORD)
    return folder


def _remove(folder: Path, owner: int) -> None:
    """Removes the folder when its creator exits, but not when forked children do."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


TLS = _made()
"""The folder with `ca.pem`, `server.pem`, `server.key`, `client.pem`, `client.key`,
`client-encrypted.key`."""
