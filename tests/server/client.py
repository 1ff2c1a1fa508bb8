"""An HTTP client for tests: requests with exact paths and bodies, and the JSON of answers."""

from __future__ import annotations

import http.client
import json
from typing import Any, NamedTuple
from urllib.parse import urlsplit

EMPTY = "2e1cfa82b035c26cbbbdae632cea070514eb8b773f616aaeaf668e2f0be8f10d"
HEADERS = {"accept": "application/json", "nessie-client-spec": "2"}


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: Any
    raw: bytes

    def expect(self, status: int, *texts: str) -> None:
        """Asserts the status and texts of the message of an error."""
        __tracebackhide__ = True
        message = self.body.get("message", "") if isinstance(self.body, dict) else ""
        faults = [
            *([f"the status is {self.status}, not {status}"] if self.status != status else []),
            *(f"the message lacks {text!r}" for text in texts if text not in message),
        ]
        assert not faults, "\n".join((*faults, self.raw.decode(errors="replace")[:10_000]))


class Client:
    """A persistent connection."""

    def __init__(self, url: str, timeout: float = 120) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port, timeout=timeout
        )

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        raw: bytes | None = None,
    ) -> Answer:
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        sent = (
            HEADERS
            | ({"content-type": "application/json"} if data is not None else {})
            | (headers or {})
        )
        self._connection.request(
            method, path, data, {name: value for name, value in sent.items() if value is not None}
        )
        reply = self._connection.getresponse()
        read = reply.read()
        found: dict[str, str] = {}
        for name, value in reply.getheaders():
            # Only this header may occur twice.
            before = found.get("set-cookie") if name.lower() == "set-cookie" else None
            found[name.lower()] = f"{before}\n{value}" if before else value
        is_json = (
            found.get("content-type", "").startswith("application/json")
            and read
            and "content-encoding" not in found
        )
        return Answer(reply.status, found, json.loads(read) if is_json else None, read)

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, headers=headers)

    def commit(
        self, branch: str, expected: str, *operations: Any, message: str = "m", version: int = 2
    ) -> Answer:
        body = {"commitMeta": {"message": message}, "operations": list(operations)}
        if version == 1:
            return self.send(
                "POST", f"/api/v1/trees/branch/{branch}/commit?expectedHash={expected}", body
            )
        return self.send("POST", f"/api/v2/trees/{branch}@{expected}/history/commit", body)

    def head(self, name: str = "main") -> str:
        hash_: str = self.get(f"/api/v2/trees/{name}").body["reference"]["hash"]
        return hash_

    @property
    def port(self) -> int:
        """The client's port of the connection."""
        number: int = self._connection.sock.getsockname()[1]
        return number

    def close(self) -> None:
        self._connection.close()

    def __del__(self) -> None:
        self.close()


def table(number: int = 1, content_id: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "ICEBERG_TABLE",
        "metadataLocation": f"file:/t/{number}.json",
        "snapshotId": number,
    }
    found |= {"schemaId": 0, "specId": 0, "sortOrderId": 0}
    return found | ({"id": content_id} if content_id else {})


def namespace(*elements: str) -> dict[str, Any]:
    return {"type": "NAMESPACE", "elements": list(elements)}


def put(*elements: str, content: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "PUT", "key": {"elements": list(elements)}, "content": content or table()}


def delete(*elements: str) -> dict[str, Any]:
    return {"type": "DELETE", "key": {"elements": list(elements)}}
