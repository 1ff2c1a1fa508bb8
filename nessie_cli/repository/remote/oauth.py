"""Tokens of an OAuth2 server: asked for, kept, and renewed before they end (RFC 6749, RFC 8628; discovery as OpenID Connect has it).

One thread renews while the others wait, and one process while the others do. Errors tell the server's error code, never a text of its own making:
that could hold what it was sent.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from urllib.parse import quote_plus

import requests

from nessie_cli.errors import InvalidInput, NessieError, NotAllowed, StoreUnavailable
from nessie_cli.model import Secret
from nessie_cli.repository.access import Access, Grant, OAuth2, Tokens, bearer, read_tokens, shown, write_tokens
from nessie_cli.repository.remote.http import Http
from nessie_cli.repository.remote.unreachable import for_good, unreachable

DEFAULT_LIFETIME = 60.0
"""Seconds that a token lasts whose end the server does not tell; the original client's."""
DEFAULT_INTERVAL = 5.0
SLOWER = 5.0
"""Seconds between two questions whether the person has signed in, and how many more when the server wants it slower (RFC 8628, 3.2 and 3.5)."""
DEFAULT_PATIENCE = 300.0
_TRIES = 3
_DISCOVERY = "/.well-known/openid-configuration"
_DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
_BASIC, _POST = "client_secret_basic", "client_secret_post"
_OK, _BAD, _UNAUTHORIZED = 200, 400, 401
_BUSY = (429, 502, 503, 504)
_CODE = re.compile(r"[a-z_]{1,40}")


class TokenSource:
    """The `Authorization` headers of one client. Asks the server only when it has to."""

    def __init__(self, client: OAuth2, access: Access) -> None:
        if client.issuer is None and client.token_endpoint is None:
            raise InvalidInput("OAuth2 needs the address of its server: issuer-url (NESSIE_OAUTH2_ISSUER_URL) or token-endpoint")
        self._client = client
        self._http = Http(access)
        self._timeout = access.timeout
        self._lock = threading.Lock()
        self._tokens: Tokens | None = None
        self._document: Mapping[str, Any] | None = None

    def header(self) -> str:
        """The header of the next request; raises `NotAllowed` where the server gives no token, `StoreUnavailable` where it does not answer."""
        with self._lock:
            if self._tokens is None or not self._tokens.usable(time.time()):
                with self._cached():
                    self._tokens = self._renewed(refused=None)
            return bearer(self._tokens.access.reveal())

    def refused(self, header: str) -> bool:
        """A server has answered 401 to a header: get another token, unless another thread has one already. Answers whether there is another one."""
        with self._lock:
            if self._tokens is None or bearer(self._tokens.access.reveal()) == header:
                with self._cached():
                    self._tokens = self._renewed(refused=header)
            return bearer(self._tokens.access.reveal()) != header

    def close(self) -> None:
        """Close the connections to the OAuth2 server."""
        self._http.close()

    def _cached(self) -> AbstractContextManager[None]:
        return self._client.cache.locked() if self._client.cache else nullcontext()

    # -- which token ---------------------------------------------------------------------------------------------------------------

    def _renewed(self, refused: str | None) -> Tokens:
        """A usable token, the cheapest way there is: kept by another process, refreshed, or granted anew."""
        kept = read_tokens(self._client.cache) or self._tokens
        if kept and kept.usable(time.time()) and bearer(kept.access.reveal()) != refused:
            return kept
        tokens = self._refreshed(kept.refresh) if kept and kept.refreshable(time.time()) and kept.refresh else None
        tokens = tokens or self._granted()
        write_tokens(self._client.cache, tokens)
        return tokens

    def _refreshed(self, refresh: Secret) -> Tokens | None:
        """New tokens for a refresh token; None where the server takes it no more."""
        try:
            answer = self._ask({"grant_type": "refresh_token", "refresh_token": refresh.reveal(), **self._scope()})
        except _Refused as refusal:
            if refusal.reason in ("invalid_client", "unauthorized_client"):
                raise
            return None
        return _tokens(answer, refresh)

    def _granted(self) -> Tokens:
        if self._client.grant is Grant.DEVICE_CODE:
            return self._signed_in()
        return _tokens(self._ask({"grant_type": "client_credentials", **self._scope()}), None)

    def _signed_in(self) -> Tokens:
        """Tokens after a person has signed in elsewhere."""
        if self._client.tell is None:
            raise NotAllowed(f"{self._name}: somebody has to sign in, which needs a terminal; run a command on one first")
        found = self._post(self._endpoint("device_authorization_endpoint", self._client.device_endpoint, "device-auth-endpoint"), self._scope())
        try:
            code, user_code, where = (str(found[name]) for name in ("device_code", "user_code", "verification_uri"))
            interval, patience = float(found.get("interval", DEFAULT_INTERVAL)), float(found.get("expires_in", DEFAULT_PATIENCE))
        except (KeyError, TypeError, ValueError):
            raise StoreUnavailable(f"{self._name}: its answer to a device's wish to sign in is not understood") from None
        self._client.tell(
            f"to sign in, open {_one_line(str(found.get('verification_uri_complete') or where))} and give the code {_one_line(user_code)}"
        )
        return self._awaited(code, interval, time.monotonic() + patience)

    def _awaited(self, code: str, interval: float, end: float) -> Tokens:
        while time.monotonic() < end:
            time.sleep(max(interval, 0.1))
            try:
                return _tokens(self._ask({"grant_type": _DEVICE, "device_code": code}), None)
            except _Refused as refusal:
                if refusal.reason == "slow_down":
                    interval += SLOWER
                elif refusal.reason != "authorization_pending":
                    raise
        raise NotAllowed(f"{self._name}: nobody has signed in in time; run the command again")

    # -- requests ------------------------------------------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return f"OAuth2 server {shown(self._client.issuer or self._client.token_endpoint or '')}"

    def _scope(self) -> dict[str, str]:
        return {"scope": " ".join(self._client.scopes)} if self._client.scopes else {}

    def _ask(self, form: Mapping[str, str]) -> Mapping[str, Any]:
        return self._post(self._endpoint("token_endpoint", self._client.token_endpoint, "token-endpoint"), form)

    def _endpoint(self, name: str, told: str | None, setting: str) -> str:
        if told:
            return told
        found = self._discovered().get(name) if self._client.issuer else None
        if not isinstance(found, str) or not found.startswith(("http://", "https://")):
            raise InvalidInput(f"{self._name}: does not tell its {name}; the setting {setting} may")
        return found

    def _discovered(self) -> Mapping[str, Any]:
        if self._document is None:
            url = (self._client.issuer or "").rstrip("/") + _DISCOVERY
            answer = self._tried(lambda: self._http.request("GET", url, headers={"Accept": "application/json"}), url)
            document = _json(answer)
            if answer.status_code != _OK or not isinstance(document, dict):
                raise InvalidInput(f"{self._name}: no issuer answers there (its document {_DISCOVERY} was answered with {answer.status_code})")
            self._document = document
        return self._document

    def _post(self, url: str, form: Mapping[str, str]) -> Mapping[str, Any]:
        """The answer to a form; raises `_Refused` with the server's error code."""
        fields, headers = dict(form), {"Accept": "application/json"}
        auth = None
        if self._client.client_secret is None:
            fields["client_id"] = self._client.client_id
        elif self._method() == _POST:
            fields |= {"client_id": self._client.client_id, "client_secret": self._client.client_secret.reveal()}
        else:
            auth = requests.auth.HTTPBasicAuth(quote_plus(self._client.client_id), quote_plus(self._client.client_secret.reveal()))
        answer = self._tried(lambda: self._http.request("POST", url, auth=auth, data=fields, headers=headers), url)
        document = _json(answer)
        if answer.status_code == _OK and isinstance(document, dict):
            return document
        code = document.get("error") if isinstance(document, dict) else None
        if answer.status_code in (_BAD, _UNAUTHORIZED) and isinstance(code, str) and _CODE.fullmatch(code):
            raise _Refused(f"{self._name}: {_EXPLAINED.get(code, 'gave no token')} ({code})", code)
        if answer.status_code in _BUSY:
            raise StoreUnavailable(f"{self._name}: answered {answer.status_code}, it is busy or away; try again later")
        raise NotAllowed(f"{self._name}: gave no token; {shown(url)} answered {answer.status_code}")

    def _method(self) -> str:
        """How the client names itself: by a header, unless the issuer takes only the form."""
        known = self._discovered().get("token_endpoint_auth_methods_supported") if self._client.issuer else None
        return _POST if isinstance(known, list) and _POST in known and _BASIC not in known else _BASIC

    def _tried(self, send: Callable[[], requests.Response], url: str) -> requests.Response:
        """An answer, after another try or two where the server was busy or away. What a lost answer has used up, the next one tells."""
        for number in range(_TRIES):
            last = number == _TRIES - 1
            try:
                answer = send()
            except OSError as error:
                fault: NessieError = unreachable(shown(url), error, timeout=self._timeout)
                if last or for_good(error):
                    raise StoreUnavailable(fault.message.replace("server", "OAuth2 server", 1)) from None
            else:
                if last or answer.status_code not in _BUSY:
                    return answer
            time.sleep(0.2 * 2**number)
        raise AssertionError


_EXPLAINED = {
    "invalid_client": "did not take the client id and its secret",
    "unauthorized_client": "does not allow this client to do so",
    "invalid_scope": "did not take the scopes",
    "unsupported_grant_type": "does not know this grant type",
    "access_denied": "the person has refused",
    "expired_token": "nobody has signed in in time; run the command again",
}


class _Refused(NotAllowed):
    """The server gave an error code instead of a token."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.reason = code


def _json(answer: requests.Response) -> Any:
    try:
        return answer.json()
    except requests.JSONDecodeError:
        return None


def _tokens(answer: Mapping[str, Any], refresh: Secret | None) -> Tokens:
    """The tokens of an answer; a refresh token that is not replaced stays good."""
    token = answer.get("access_token")
    if not isinstance(token, str) or str(answer.get("token_type", "bearer")).lower() != "bearer":
        raise StoreUnavailable("the OAuth2 server's answer has no bearer token in it")
    bearer(token)
    now = time.time()
    renewed, refresh_end = answer.get("refresh_token"), answer.get("refresh_expires_in")
    return Tokens(
        Secret(token),
        now,
        now + _seconds(answer.get("expires_in"), DEFAULT_LIFETIME),
        Secret(renewed) if isinstance(renewed, str) else refresh,
        # Keycloak says 0 for "does not end".
        now + _seconds(refresh_end, 0) if refresh_end else None,
    )


def _seconds(value: Any, missing: float) -> float:
    try:
        return missing if value is None else float(value)
    except (TypeError, ValueError):
        return missing


def _one_line(text: str) -> str:
    return "".join(char for char in text if char.isprintable())
