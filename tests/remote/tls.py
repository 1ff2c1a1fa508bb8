"""Certificates and keys of a CA, a server and a client, created in each process that needs them.

The client's key is also there encrypted with the password `opensesame`.
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
    """At the end of the process that made it; children that a test has forked end too."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


TLS = _made()
"""The folder: `ca.pem`, `server.pem`, `server.key`, `client.pem`, `client.key`,
`client-encrypted.key`."""
