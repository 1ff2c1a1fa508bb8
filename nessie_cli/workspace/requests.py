"""Requests to a server with unknown outcome, which a repeated command asks about first.

`requests.json` contains the request id of each, by a digest of the request.
"""

from __future__ import annotations

import hashlib
import json

from nessie_cli.workspace.files import locked, read_text, remove, replace_text
from nessie_cli.workspace.folder import Workspace

MOST = 50
"""The most requests that are kept; the oldest one is dropped first."""


class Requests:
    """The requests of a workspace without an answer."""

    def __init__(self, workspace: Workspace) -> None:
        self._path = workspace.file("requests.json")
        self._lock = workspace.lock_path

    def begin(self, request: str, new_id: str) -> str:
        """Returns the id of a request: that of an earlier try, otherwise the new one.

        The id is kept until an answer comes.
        """
        with locked(self._lock):
            requests = self._read()
            digest = _digest(request)
            if digest not in requests:
                requests = dict(list(requests.items())[1 - MOST :]) | {digest: new_id}
                replace_text(self._path, json.dumps(requests, indent=1) + "\n")
            return requests[digest]

    def end(self, request: str) -> None:
        """Removes a request that was answered."""
        with locked(self._lock):
            requests = self._read()
            if requests.pop(_digest(request), None) is None:
                return
            if requests:
                replace_text(self._path, json.dumps(requests, indent=1) + "\n")
            else:
                remove(self._path)

    def has(self, request_id: str) -> bool:
        """Returns whether a request is kept."""
        return request_id in self._read().values()

    def _read(self) -> dict[str, str]:
        """Returns the ids of unanswered requests, by digest. Ignores an invalid file."""
        try:
            document = json.loads(read_text(self._path) or "{}")
        except (ValueError, RecursionError):
            return {}
        return (
            {str(name): str(value) for name, value in document.items()}
            if isinstance(document, dict)
            else {}
        )


def _digest(request: str) -> str:
    return hashlib.sha256(request.encode("utf-8", "surrogatepass")).hexdigest()[:32]
