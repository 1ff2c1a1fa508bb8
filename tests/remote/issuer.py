"""An OAuth2 server for tests: it announces its endpoints, issues tokens for all grants that
the client supports, and records requests."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote_plus

from tests.remote.listening import Answer, Request, listening

CLIENT, SECRET = "nessie-client", "the client's s3cret/+%"


class Issuer:
    """Issues the tokens `token-1`, `token-2`, ...; refresh tokens are valid once."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[dict[str, str]] = []
        self.lifetime: float | None = 3600
        self.refreshing = False
        self.pending = 0
        self.denied = ""
        self.methods = ["client_secret_basic", "client_secret_post"]
        self.failing: list[Answer] = []
        self.public = False
        self.changes: dict[str, Any] = {}
        self._refresh = ""
        self._count = 0
        self._lock = threading.Lock()

    @property
    def grants(self) -> list[str]:
        """Returns the grants of the token requests."""
        return [
            form["grant_type"].rpartition(":")[2] for form in self.asked if "grant_type" in form
        ]

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            if request.path == "/realm/.well-known/openid-configuration":
                return _json(200, self._document())
            if self.failing:
                return self.failing.pop(0)
            form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
            self.asked.append(form)
            if not self._is_known(request, form):
                return _json(
                    401, {"error": "invalid_client", "error_description": f"{SECRET} is wrong"}
                )
            return self._device() if request.path == "/device" else self._token(form)

    def _document(self) -> dict[str, Any]:
        return {
            "issuer": f"{self.url}/realm",
            "token_endpoint": f"{self.url}/token",
            "device_authorization_endpoint": f"{self.url}/device",
            "token_endpoint_auth_methods_supported": self.methods,
        } | self.changes

    def _is_known(self, request: Request, form: dict[str, str]) -> bool:
        if self.public:
            return form.get("client_id") == CLIENT
        if self.methods == ["client_secret_post"]:
            return (form.get("client_id"), form.get("client_secret")) == (CLIENT, SECRET)
        scheme, _, pair = request.headers.get("authorization", "").partition(" ")
        name, _, secret = base64.b64decode(pair).decode().partition(":")
        return scheme == "Basic" and (unquote_plus(name), unquote_plus(secret)) == (CLIENT, SECRET)

    def _device(self) -> Answer:
        return _json(
            200,
            {
                "device_code": "device-secret",
                "user_code": "ABCD-EFGH",
                "verification_uri": f"{self.url}/sign-in",
                "expires_in": 600,
                "interval": 0.1,
            },
        )

    def _token(self, form: dict[str, str]) -> Answer:
        grant = form["grant_type"]
        if grant == "refresh_token" and form["refresh_token"] != self._refresh:
            return _json(400, {"error": "invalid_grant"})
        if grant.endswith("device_code"):
            if form["device_code"] != "device-secret":
                return _json(400, {"error": "invalid_grant"})
            if self.denied:
                return _json(400, {"error": self.denied})
            if self.pending:
                self.pending -= 1
                return _json(400, {"error": "authorization_pending"})
        self._count += 1
        given: dict[str, Any] = {"access_token": f"token-{self._count}", "token_type": "Bearer"}
        if self.lifetime is not None:
            given["expires_in"] = self.lifetime
        if self.refreshing:
            self._refresh = given["refresh_token"] = f"refresh-{self._count}"
        return _json(200, given)


def _json(status: int, body: Any) -> Answer:
    return Answer(status, json.dumps(body).encode())


@contextmanager
def issuing() -> Iterator[Issuer]:
    """Yields a running OAuth2 server."""
    issuer = Issuer()
    with listening(issuer) as url:
        issuer.url = url
        yield issuer
