"""Tokens of an OAuth2 server: requested with Authlib, cached, renewed before they expire.

One thread renews while the others wait, and one process while the others wait. Errors name the
server's error code, never a text of the server: that could repeat a secret that it was sent.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partialmethod
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from urllib3 import Retry

from nessie_cli.errors import InvalidInput, NotAllowed, StoreUnavailable
from nessie_cli.model import Secret
from nessie_cli.repository.access import (
    Access,
    OAuth2,
    OAuth2Grant,
    OAuth2Tokens,
    bearer,
    read_tokens,
    shown,
    write_tokens,
)
from nessie_cli.repository.remote.http import Http, HttpAnswer
from nessie_cli.repository.remote.unreachable import unreachable

if TYPE_CHECKING:
    from authlib.oauth2.client import OAuth2Client

DEFAULT_LIFETIME = 60.0
"""Seconds that a token lasts if the server does not say; the original client's."""
_INTERVAL = 5.0
"""Seconds between polls during a sign-in, and those added on `slow_down` (RFC 8628, 3.5)."""
_PATIENCE = 300.0
_DISCOVERY = "/.well-known/openid-configuration"
_DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
_BASIC, _POST = "client_secret_basic", "client_secret_post"
_OK, _BAD, _UNAUTHORIZED = 200, 400, 401
_BUSY = (429, 502, 503, 504)
_RETRIES = Retry(
    2,
    other=0,
    status_forcelist=_BUSY,
    allowed_methods=None,
    raise_on_status=False,
    respect_retry_after_header=False,
    backoff_factor=0.2,
)
_LARGEST = 1 << 20
"""The limit of an answer with tokens, in bytes."""
_JSON = {"Accept": "application/json"}
_CODE = re.compile(r"[a-z_]{1,40}")
_EXPLAINED = {
    "invalid_client": "did not take the client id and its secret",
    "unauthorized_client": "does not allow this client to do so",
    "invalid_scope": "did not take the scopes",
    "unsupported_grant_type": "does not know this grant type",
    "access_denied": "the person has refused",
    "expired_token": "nobody has signed in in time; run the command again",
}


class TokenSource:
    """The `Authorization` headers of one client. Requests a token only if none is cached."""

    def __init__(self, client: OAuth2, access: Access) -> None:
        if client.issuer is None and client.token_endpoint is None:
            raise InvalidInput(
                "OAuth2 needs the address of its server: issuer-url (NESSIE_OAUTH2_ISSUER_URL) or"
                " token-endpoint"
            )
        self._client = client
        self._name = f"OAuth2 server {shown(client.issuer or client.token_endpoint or '')}"
        self._http = _TokenHttp(access)
        self._lock = threading.Lock()
        self._tokens: OAuth2Tokens | None = None

    def header(self) -> str:
        """Returns the header of the next request.

        Raises `NotAllowed` if the server refuses, `StoreUnavailable` if it does not answer.
        """
        with self._lock:
            if self._tokens is None or not self._tokens.usable(time.time()):
                self._tokens = self._renewed(refused=None)
            return bearer(self._tokens.access.reveal())

    def refused(self, header: str) -> bool:
        """Requests another token after a 401 for `header`, unless another thread has.

        Returns whether there is another one.
        """
        with self._lock:
            if self._tokens is None or bearer(self._tokens.access.reveal()) == header:
                self._tokens = self._renewed(refused=header)
            return bearer(self._tokens.access.reveal()) != header

    def close(self) -> None:
        """Closes the connections to the OAuth2 server."""
        self._http.close()

    # -- which token ------------------------------------------------------------------------------

    def _renewed(self, refused: str | None) -> OAuth2Tokens:
        """Returns a usable token: cached by another process, otherwise refreshed or granted."""
        with self._locked():
            cached = read_tokens(self._client.cache) or self._tokens
            if cached and cached.usable(time.time()) and bearer(cached.access.reveal()) != refused:
                return cached
            tokens = (
                self._refreshed(cached.refresh)
                if cached and cached.refreshable(time.time()) and cached.refresh
                else None
            )
            tokens = tokens or self._granted()
            write_tokens(self._client.cache, tokens)
            return tokens

    def _locked(self) -> AbstractContextManager[None]:
        return self._client.cache.locked() if self._client.cache else nullcontext()

    def _refreshed(self, refresh: Secret) -> OAuth2Tokens | None:
        """Returns new tokens for a refresh token, or None if the server no longer accepts it."""
        try:
            return self._asked(
                "refresh_token", refresh, refresh_token=refresh.reveal(), scope=self._scope
            )
        except _Refused as refusal:
            if refusal.reason in ("invalid_client", "unauthorized_client"):
                raise
            return None

    def _granted(self) -> OAuth2Tokens:
        if self._client.grant is OAuth2Grant.DEVICE_CODE:
            return self._signed_in()
        return self._asked("client_credentials", scope=self._scope)

    def _signed_in(self) -> OAuth2Tokens:
        """Returns tokens after a person has signed in with a browser."""
        if self._client.print_line is None:
            raise NotAllowed(
                f"{self._name}: a person must sign in on a terminal",
                hint="run a command there first",
            )
        url = self._endpoint(
            "device_authorization_endpoint", self._client.device_endpoint, "device-auth-endpoint"
        )
        auth = self._oauth.client_auth(self._oauth.token_endpoint_auth_method)
        answer = _json(
            self._checked(
                self._http.post(url, auth=auth, data={"scope": self._scope}, headers=_JSON)
            )
        )
        try:
            code, user_code, page = (
                str(answer[name]) for name in ("device_code", "user_code", "verification_uri")
            )
            interval, patience = (
                float(answer.get("interval", _INTERVAL)),
                float(answer.get("expires_in", _PATIENCE)),
            )
        except (KeyError, TypeError, ValueError):
            raise StoreUnavailable(
                f"{self._name}: its answer to the request for a device code is invalid"
            ) from None
        page = str(answer.get("verification_uri_complete") or page)
        self._client.print_line(
            f"to sign in, open {_one_line(page)} and give the code {_one_line(user_code)}"
        )
        return self._polled(code, interval, time.monotonic() + patience)

    def _polled(self, code: str, interval: float, end: float) -> OAuth2Tokens:
        while time.monotonic() < end:
            time.sleep(max(interval, 0.1))
            try:
                return self._asked(_DEVICE, device_code=code)
            except _Refused as refusal:
                if refusal.reason == "slow_down":
                    interval += _INTERVAL
                elif refusal.reason != "authorization_pending":
                    raise
        raise NotAllowed(f"{self._name}: nobody has signed in in time; run the command again")

    # -- the server -------------------------------------------------------------------------------

    def _asked(self, grant: str, refresh: Secret | None = None, **form: str | None) -> OAuth2Tokens:
        url = self._endpoint("token_endpoint", self._client.token_endpoint, "token-endpoint")
        try:
            return _tokens(self._oauth.fetch_token(url, grant_type=grant, **form), refresh)
        except (KeyError, TypeError, ValueError):
            raise StoreUnavailable(
                f"{self._name}: its answer has no bearer token that is understood"
            ) from None

    @property
    def _scope(self) -> str | None:
        return " ".join(self._client.scopes) or None

    @cached_property
    def _oauth(self) -> OAuth2Client:
        """Authlib's client.

        It is imported here, because most commands find a token in the cache.
        """
        from authlib.oauth2.auth import ClientAuth
        from authlib.oauth2.client import OAuth2Client

        class RequestAuth(ClientAuth, AuthBase):  # type: ignore[misc] # Authlib has no types
            def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
                request.url, request.headers, request.body = self.prepare(
                    request.method, request.url, request.headers, request.body
                )
                return request

        name, secret, method = self._client.client_id, None, "none"
        if self._client.client_secret is not None:
            secret, method = self._client.client_secret.reveal(), self._auth_method()
        if method == _BASIC and secret is not None:
            # Authlib leaves this to its caller (RFC 6749, 2.3.1).
            name, secret = quote_plus(name), quote_plus(secret)
        oauth = OAuth2Client(self._http, name, secret, token_endpoint_auth_method=method)
        oauth.client_auth_class = RequestAuth
        oauth.register_compliance_hook("access_token_response", self._checked)
        return oauth

    def _auth_method(self) -> str:
        """Returns the method of authentication: a header unless the issuer only accepts a form."""
        methods = (
            self._document.get("token_endpoint_auth_methods_supported")
            if self._client.issuer
            else None
        )
        return (
            _POST
            if isinstance(methods, list) and _POST in methods and _BASIC not in methods
            else _BASIC
        )

    def _endpoint(self, name: str, configured: str | None, setting: str) -> str:
        if configured:
            return configured
        endpoint = self._document.get(name) if self._client.issuer else None
        if not isinstance(endpoint, str) or not endpoint.startswith(("http://", "https://")):
            raise InvalidInput(
                f"{self._name} does not announce its {name}; the setting {setting} may name it"
            )
        if not endpoint.startswith("https://") and _server(endpoint) != _server(
            self._client.issuer or ""
        ):
            # An issuer without TLS, on this machine or allowed by the user, may name itself and
            # nothing else.
            raise NotAllowed(
                f"{self._name}: its {name} {shown(endpoint)} is not used: secrets are sent over"
                " https only"
            )
        return endpoint

    @cached_property
    def _document(self) -> Mapping[str, Any]:
        """The configuration of an OpenID Connect issuer."""
        answer = self._http.request(
            "GET", (self._client.issuer or "").rstrip("/") + _DISCOVERY, headers=_JSON
        )
        document = _json(answer)
        if answer.status_code != _OK or not isinstance(document, dict):
            raise InvalidInput(
                f"{self._name}: no issuer answers there (its document {_DISCOVERY} was answered"
                f" with {answer.status_code})"
            )
        # Another issuer's document may be an attacker's (OpenID Connect Discovery, 4.3). A slash at
        # the end makes no difference.
        issuer = document.get("issuer")
        if not isinstance(issuer, str) or issuer.rstrip("/") != (self._client.issuer or "").rstrip(
            "/"
        ):
            named = f"issuer {_one_line(shown(issuer))}" if isinstance(issuer, str) else "no issuer"
            raise NotAllowed(
                f"{self._name}: its document names {named}, not the configured one; compare"
                " issuer-url (NESSIE_OAUTH2_ISSUER_URL)"
            )
        return document

    def _checked(self, answer: HttpAnswer) -> HttpAnswer:
        """Returns an answer of success. Raises `_Refused` with the server's error code."""
        document = _json(answer)
        if answer.status_code == _OK and isinstance(document, dict):
            return answer
        code = document.get("error") if isinstance(document, dict) else None
        if (
            answer.status_code in (_BAD, _UNAUTHORIZED)
            and isinstance(code, str)
            and _CODE.fullmatch(code)
        ):
            raise _Refused(f"{self._name}: {_EXPLAINED.get(code, 'gave no token')} ({code})", code)
        if answer.status_code in _BUSY:
            raise StoreUnavailable(
                f"{self._name}: answered {answer.status_code}, it is busy or away; try again later"
            )
        raise NotAllowed(
            f"{self._name}: gave no token; {shown(answer.url)} answered {answer.status_code}"
        )


class _Refused(NotAllowed):
    """The server gave an error code instead of a token."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.reason = code


class _TokenHttp(Http):
    """HTTP that repeats a request if the server is busy or away.

    If a lost answer has used a code up, the next answer says so.
    """

    def __init__(self, access: Access) -> None:
        super().__init__(access, _LARGEST)
        self._seconds = access.timeout
        for adapter in self.session.adapters.values():
            if isinstance(adapter, HTTPAdapter):
                adapter.max_retries = _RETRIES

    def request(
        self, method: str, url: str, *, auth: AuthBase | None = None, **more: Any
    ) -> HttpAnswer:
        """Sends a request as the base class. Raises `StoreUnavailable` if no answer comes."""
        try:
            return super().request(method, url, auth=auth, **more)
        except OSError as error:
            fault = unreachable(shown(url), error, timeout=self._seconds)
            raise StoreUnavailable(fault.message.replace("server", "OAuth2 server", 1)) from None

    post = partialmethod(request, "POST")
    """The method that Authlib calls."""


def _json(answer: HttpAnswer) -> Any:
    try:
        return answer.json()
    except (ValueError, RecursionError):
        return None


def _tokens(answer: Mapping[str, Any], refresh: Secret | None) -> OAuth2Tokens:
    """Returns the tokens of an answer. A refresh token that is not replaced stays good."""
    if (
        not isinstance(answer["access_token"], str)
        or str(answer.get("token_type", "bearer")).lower() != "bearer"
    ):
        raise ValueError
    bearer(answer["access_token"])
    now, lifetime = time.time(), answer.get("expires_in")
    # Keycloak says 0 for a refresh token that does not expire.
    renewed, refresh_lifetime = answer.get("refresh_token"), answer.get("refresh_expires_in")
    return OAuth2Tokens(
        Secret(answer["access_token"]),
        now,
        now + (DEFAULT_LIFETIME if lifetime is None else float(lifetime)),
        Secret(renewed) if isinstance(renewed, str) else refresh,
        now + float(refresh_lifetime) if refresh_lifetime else None,
    )


def _server(url: str) -> tuple[str, str]:
    """Returns scheme, host and port of a URL."""
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _one_line(text: str) -> str:
    return "".join(char for char in text if char.isprintable())
