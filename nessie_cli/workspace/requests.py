"""Requests to a server whose outcome is not known: kept in the workspace, so that the same command asks what became of them before it sends anything.

`requests.json` holds the request id of each, by a digest of all that was asked for.
"""

from __future__ import annotations

import hashlib
import json

from nessie_cli.workspace.files import locked, read_text, remove, replace_text
from nessie_cli.workspace.folder import Workspace

MOST = 50
"""Requests that are kept; the oldest one goes first."""


class Requests:
    """The requests of one workspace that have been sent and not been answered."""

    def __init__(self, workspace: Workspace) -> None:
        self._path = workspace.folder / "requests.json"
        self._lock = workspace.lock_path

    def begin(self, what: str, new_id: str) -> str:
        """The id under which `what` is sent: that of an earlier try without an answer, else the new one, which is kept from now on."""
        with locked(self._lock):
            kept = self._read()
            digest = _digest(what)
            if digest not in kept:
                kept = dict(list(kept.items())[1 - MOST :]) | {digest: new_id}
                replace_text(self._path, json.dumps(kept, indent=1) + "\n")
            return kept[digest]

    def end(self, what: str) -> None:
        """An answer came: there is nothing left to ask."""
        with locked(self._lock):
            kept = self._read()
            if kept.pop(_digest(what), None) is None:
                return
            if kept:
                replace_text(self._path, json.dumps(kept, indent=1) + "\n")
            else:
                remove(self._path)

    def has(self, request_id: str) -> bool:
        """Whether a request is kept."""
        return request_id in self._read().values()

    def _read(self) -> dict[str, str]:
        """What is kept. What cannot be understood counts for nothing: it only saves a question."""
        try:
            found = json.loads(read_text(self._path) or "{}")
        except ValueError:
            return {}
        return (
            {str(name): str(value) for name, value in found.items()}
            if isinstance(found, dict)
            else {}
        )


def _digest(what: str) -> str:
    return hashlib.sha256(what.encode("utf-8", "surrogatepass")).hexdigest()[:32]
