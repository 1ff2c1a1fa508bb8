"""Logging in at an OpenID Connect issuer: the authorization code flow with PKCE.

Authlib writes the requests. A cookie holds the state, the nonce and the code verifier, so one
browser cannot finish the login of another one. The ID token is verified with the keys of the
issuer, for the client id and the nonce (OpenID Connect Core 1.0, section 3.1.3.7; RFC 9700,
section 2.1).
"""

from __future__ import annotations

import hmac
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import MsgspecError, Struct, json

from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.model import Secret
from nessie_cli.server.auth.identity import Caller, KeysUnavailable, Unauthenticated
from nessie_cli.server.auth.issuer import JwtSettings, TokenVerifier
from nessie_cli.server.runtime.watched_files import SECRET, Report, read_guarded

CALLBACK = "/ui/login/callback"
"""The path to which the issuer sends the browser back."""
LOGIN_SECONDS = 600
"""Seconds that a login at the issuer may take."""
_TIMEOUT = 5.0
"""Seconds for each request to the issuer."""
_DOCUMENT_LIFETIME = 3600.0
_RETRY = 5.0
_FORM = "application/x-www-form-urlencoded"
_FAILED = 500
_LONGEST_ERROR = 100
_SCOPE = "openid profile"
_REFUSED = "The login at the issuer was not accepted; start it again"
_AWAY = "The issuer cannot be reached now; try again"


class OidcSettings(NamedTuple):
    """The client of the server at an issuer. `roles` and `name` are claims; see `JwtSettings`.

    `secret` is None for a public client. `keys` is a file or URL of the keys of the issuer, by
    default those of its OpenID document.
    """

    issuer: str
    client: str
    secret: Secret | None = None
    roles: str = "roles"
    name: str = "sub"
    keys: str | None = None
    scope: str = _SCOPE


class PendingLogin(Struct, frozen=True):
    """A login that a browser has begun, as its cookie holds it."""

    state: str
    nonce: str
    verifier: str
    next: str
    began: int


class FinishedLogin(NamedTuple):
    """A caller, the second at which the ID token expires, and the page to return to."""

    caller: Caller
    expires: int
    next: str


def read_secret(path: Path) -> Secret:
    """Reads the secret of a client from a file. Raises `InvalidInput` and `NotAllowed`."""
    try:
        text = read_guarded(path, SECRET, "secret file").decode().strip()
    except UnicodeDecodeError:
        text = ""
    if not text:
        raise InvalidInput(f"secret file {path} has no text")
    return Secret(text)


class _TokenAnswer(Struct):
    """The answer of the issuer's token endpoint (RFC 6749, sections 5.1 and 5.2)."""

    id_token: str | None = None
    error: str | None = None


_encode, _decode = json.Encoder().encode, json.Decoder(PendingLogin).decode
_decode_token = json.Decoder(_TokenAnswer).decode


class OidcLogin:
    """The logins at one issuer. `public_url` is the address of the server for browsers.

    `begin` and `finish` wait for the issuer, so they must not run on the event loop.
    """

    def __init__(
        self,
        settings: OidcSettings,
        public_url: str,
        report: Report,
        clock: Callable[[], float] = time.time,
    ) -> None:
        from nessie_cli.server.auth.bounded_fetch import BoundedFetch
        from nessie_cli.server.auth.jwt_keys import check_url

        check_url(settings.issuer, "--jwt-issuer with --oidc-client")
        self.issuer, self.client = settings.issuer, settings.client
        self._settings = settings
        self._redirect = public_url + CALLBACK
        self._report = report
        self._clock = clock
        tokens = JwtSettings(
            settings.issuer, settings.client, settings.keys, settings.roles, settings.name
        )
        self._verifier = TokenVerifier(tokens, report, clock)
        self._fetch = BoundedFetch(_TIMEOUT)
        self._document: Mapping[str, Any] = {}
        self._fetched = self._failed = float("-inf")

    def begin(self, next_page: str) -> tuple[str, str]:
        """Returns the address of the issuer's login, and the value of the cookie.

        Raises `KeysUnavailable`.
        """
        from authlib.common.security import generate_token
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        pending = PendingLogin(
            secrets.token_urlsafe(32),
            secrets.token_urlsafe(32),
            generate_token(48),
            next_page,
            int(self._clock()),
        )
        url = prepare_grant_uri(
            self._endpoint("authorization_endpoint"),
            self.client,
            "code",
            redirect_uri=self._redirect,
            scope=self._settings.scope,
            state=pending.state,
            nonce=pending.nonce,
            code_challenge=create_s256_code_challenge(pending.verifier),
            code_challenge_method="S256",
        )
        return str(url), urlsafe_b64encode(_encode(pending)).decode().rstrip("=")

    def finish(self, cookie: str, query: Mapping[str, str]) -> FinishedLogin:
        """Returns the caller who has logged in. `query` is that of the issuer's redirect.

        Raises `Unauthenticated` and `KeysUnavailable`.
        """
        pending = self._pending(cookie)
        state = query.get("state", "")
        if pending is None or not hmac.compare_digest(state.encode(), pending.state.encode()):
            raise _refused()
        # RFC 9207: the answer of another issuer is not for this login.
        names_issuer = self._metadata().get("authorization_response_iss_parameter_supported")
        if query.get("iss", None if names_issuer is True else self.issuer) != self.issuer:
            raise _refused()
        if "error" in query or not query.get("code"):
            raise _refused()
        id_token = self._id_token(query["code"], pending.verifier)
        verified = self._verifier.id_token(id_token, pending.nonce)
        if verified is None:
            raise _refused()
        return FinishedLogin(verified.caller, verified.expires, pending.next)

    def _pending(self, cookie: str) -> PendingLogin | None:
        """Returns the login of a cookie, or None if there is none or it is too old."""
        try:
            pending = _decode(urlsafe_b64decode(cookie + "=" * (-len(cookie) % 4)))
        except (MsgspecError, ValueError):
            return None
        age = self._clock() - pending.began
        return pending if age + 1 >= 0 and age <= LOGIN_SECONDS else None

    def _id_token(self, code: str, verifier: str) -> str:
        from authlib.oauth2.rfc6749.parameters import prepare_token_request

        body = prepare_token_request(
            "authorization_code",
            redirect_uri=self._redirect,
            code=code,
            code_verifier=verifier,
        )
        headers = {"accept": "application/json", "content-type": _FORM}
        endpoint, headers, body = self._authentication().prepare(
            "POST", self._endpoint("token_endpoint"), headers, body
        )
        try:
            answer = self._fetch.post(endpoint, headers, body.encode())
            document = _decode_token(answer.body)
        except (OSError, NessieError, MsgspecError, RecursionError) as error:
            self._report(f"login at {self.issuer}: {type(error).__name__}")
            raise KeysUnavailable(_AWAY) from None
        if answer.status >= _FAILED:
            self._report(f"login at {self.issuer}: status {answer.status}")
            raise KeysUnavailable(_AWAY)
        if document.error:
            self._report(f"login at {self.issuer}: {document.error[:_LONGEST_ERROR]!r}")
            raise _refused()
        return document.id_token or ""

    def _authentication(self) -> Any:
        from authlib.oauth2.auth import ClientAuth

        secret = self._settings.secret
        if secret is None:
            return ClientAuth(self.client, None, "none")
        return ClientAuth(self.client, secret.reveal(), "client_secret_basic")

    def _endpoint(self, name: str) -> str:
        from nessie_cli.server.auth.jwt_keys import check_url

        url = self._metadata().get(name)
        try:
            return check_url(url if isinstance(url, str) else "", name)
        except InvalidInput as error:
            self._report(f"OpenID document of {self.issuer}: {error.message}")
            raise KeysUnavailable(_AWAY) from None

    def _metadata(self) -> Mapping[str, Any]:
        """Returns the OpenID document of the issuer, fetched at most every hour."""
        from nessie_cli.server.auth.jwt_keys import DISCOVERY

        now = time.monotonic()
        if now - self._fetched > _DOCUMENT_LIFETIME and now - self._failed > _RETRY:
            try:
                document = self._fetch.json(self.issuer.rstrip("/") + DISCOVERY)
                if not isinstance(document, dict) or document.get("issuer") != self.issuer:
                    raise InvalidInput("it is the document of another issuer")
            except (OSError, NessieError) as error:
                self._failed = now
                self._report(f"OpenID document of {self.issuer}: {error}")
            else:
                self._document, self._fetched = document, now
        if not self._document:
            raise KeysUnavailable(_AWAY)
        return self._document


def _refused() -> Unauthenticated:
    return Unauthenticated(_REFUSED)
