"""Logging in at an OpenID Connect issuer: the authorization code flow with PKCE.

Authlib sends the requests. A cookie holds the state, the nonce and the code verifier, so one
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
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import MsgspecError, Struct, json

from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.model import Secret
from nessie_cli.server.auth.bounded_fetch import BoundedFetch
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
_UNREADABLE = (ValueError, TypeError, ArithmeticError, RecursionError)
"""What Authlib raises for an answer with values that it does not expect."""
_SENT = ("Accept", "Authorization")
"""The headers of requests for tokens. Others are those of forms."""
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


_encode, _decode = json.Encoder().encode, json.Decoder(PendingLogin).decode


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
        self._fetch, self._fetch_token = BoundedFetch(_TIMEOUT), BoundedFetch(_TIMEOUT)
        self._document: Mapping[str, Any] = {}
        self._fetched = self._failed = float("-inf")

    def begin(self, next_page: str) -> tuple[str, str]:
        """Returns the address of the issuer's login, and the value of the cookie.

        Raises `KeysUnavailable`.
        """
        from authlib.common.security import generate_token

        pending = PendingLogin(
            secrets.token_urlsafe(32),
            secrets.token_urlsafe(32),
            generate_token(48),
            next_page,
            int(self._clock()),
        )
        endpoint = self._endpoint("authorization_endpoint")
        with self._session() as session:
            url, _ = session.create_authorization_url(
                endpoint, state=pending.state, code_verifier=pending.verifier, nonce=pending.nonce
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
        from authlib.integrations.base_client import OAuthError

        try:
            with self._session() as session:
                answer = session.fetch_token(
                    self._endpoint("token_endpoint"),
                    code=code,
                    code_verifier=verifier,
                    grant_type="authorization_code",
                    allow_redirects=False,
                )
        except OAuthError as error:
            self._report(f"login at {self.issuer}: {error.error}")
            raise _refused() from None
        except (OSError, InvalidInput, *_UNREADABLE) as error:
            self._report(f"login at {self.issuer}: {type(error).__name__}")
            raise KeysUnavailable(_AWAY) from None
        return str(answer.get("id_token", ""))

    def _session(self) -> Any:
        from authlib.integrations.requests_client import OAuth2Session

        secret = self._settings.secret
        session = OAuth2Session(
            self.client,
            secret.reveal() if secret is not None else None,
            token_endpoint_auth_method="client_secret_basic" if secret is not None else "none",
            scope=self._settings.scope,
            redirect_uri=self._redirect,
            code_challenge_method="S256",
        )
        for scheme in ("http://", "https://"):
            session.mount(scheme, _adapter(self._fetch_token))
        return session

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


def _adapter(fetch: BoundedFetch) -> Any:
    """Returns what sends the requests of a session by `fetch`."""
    from requests import Response
    from requests.adapters import BaseAdapter

    class Bounded(BaseAdapter):
        def send(self, request: Any, *_: object, **__: object) -> Response:
            # `fetch` does not unpack answers.
            headers = {k: v for k, v in request.headers.items() if k in _SENT}
            answer = fetch.send(request.url, request.body.encode(), headers)
            response = Response()
            response.status_code, response.raw = answer.status, BytesIO(answer.body)
            response.request, response.url = request, request.url
            return response

        def close(self) -> None:
            """Does nothing."""

    return Bounded()


def _refused() -> Unauthenticated:
    return Unauthenticated(_REFUSED)
