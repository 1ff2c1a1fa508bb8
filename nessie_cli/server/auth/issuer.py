"""JSON Web Tokens of other issuers, which name their subject (RFC 7519).

The library `jwt` does the cryptography.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nessie_cli.errors import InvalidInput
from nessie_cli.server.auth.identity import Caller, check_name
from nessie_cli.server.runtime.watched_files import Report

if TYPE_CHECKING:
    from nessie_cli.server.auth.identity import Credentials
    from nessie_cli.server.auth.jwt_keys import Keys

LEEWAY = 30
"""Seconds by which the clocks of issuer and server may differ."""
_CACHED_FOR = 60.0
"""Seconds for which a verified token is accepted without verifying it again."""
_MOST_CACHED = 5_000
_DOTS_OF_JWT = 2
MISSING = (
    "tokens of an issuer need the library PyJWT, which is not installed: pip install"
    " 'nessie-cli[serve]'"
)


class JwtSettings(NamedTuple):
    """The accepted tokens: those of `issuer` for `audience`.

    `keys` is a file or URL of a JSON Web Key Set; without it, the issuer's OpenID Connect document
    names one. `roles` and `name` are claims, with dots between the names of nested ones
    (`realm_access.roles`).
    """

    issuer: str
    audience: str
    keys: str | None = None
    roles: str = "roles"
    name: str = "sub"

    def check(self) -> None:
        """Raises `InvalidInput` for settings that cannot work."""
        if not self.audience:
            raise InvalidInput(
                "--jwt-issuer needs --jwt-audience: otherwise tokens for other services would be"
                " valid here"
            )
        try:
            from nessie_cli.server.auth.jwt_keys import check_url
        except ImportError:
            raise InvalidInput(MISSING) from None
        if self.keys is None:
            check_url(self.issuer, "--jwt-issuer without --jwt-keys")
        elif "://" in self.keys:
            check_url(self.keys, "--jwt-keys")

    def source(self, report: Report) -> Keys:
        """Returns the source of the keys."""
        from nessie_cli.server.auth.jwt_keys import KeyFile, KeyUrl

        if self.keys is not None and "://" not in self.keys:
            return KeyFile(Path(self.keys), report)
        return KeyUrl(self.issuer, self.keys, report)


class VerifiedToken(NamedTuple):
    """The caller of a verified token, and the second at which the token expires."""

    caller: Caller
    expires: int


class TokenVerifier:
    """Maps tokens of an issuer to callers. `clock` returns seconds since 1970."""

    def __init__(
        self, settings: JwtSettings, report: Report, clock: Callable[[], float] = time.time
    ) -> None:
        settings.check()
        self._settings = settings
        self._keys = settings.source(report)
        self._clock = clock
        self._verified_until: dict[bytes, tuple[VerifiedToken, float]] = {}

    def cached(self, given: Credentials) -> VerifiedToken | None:
        """Returns a token that was verified recently, or None. Never waits."""
        entry = self._verified_until.get(_digest(given.token))
        return (
            entry[0]
            if entry is not None and self._clock() < entry[1] and given.name is None
            else None
        )

    def verify(self, given: Credentials) -> VerifiedToken | None:
        """Returns the caller of a token, or None if it is invalid. May wait for the issuer.

        Raises `KeysUnavailable`.
        """
        verified = self._caller_and_claims(given.token) if given.name is None else None
        if verified is None:
            return None
        caller, claims = verified
        token = VerifiedToken(caller, int(claims["exp"]))
        self._remember(given.token, token)
        return token

    def id_token(self, token: str, nonce: str) -> VerifiedToken | None:
        """Returns the caller of an ID token with a nonce, for the audience alone, or None.

        May wait for the issuer. Raises `KeysUnavailable`.
        """
        verified = self._caller_and_claims(token)
        if verified is None:
            return None
        caller, claims = verified
        is_for_others = claims["aud"] not in (self._settings.audience, [self._settings.audience])
        party = claims.get("azp", None if is_for_others else self._settings.audience)
        if claims.get("nonce") != nonce or party != self._settings.audience:
            return None
        return VerifiedToken(caller, int(claims["exp"]))

    def _caller_and_claims(self, token: str) -> tuple[Caller, Mapping[str, Any]] | None:
        """Returns the caller and claims of a token, or None if it is invalid."""
        import jwt

        if token.count(".") != _DOTS_OF_JWT:
            return None
        try:
            claims = self._verified(token)
            caller = Caller(
                check_name(_text(claims, self._settings.name), "name"),
                tuple(_texts(claims, self._settings.roles)),
            )
        except (jwt.PyJWTError, InvalidInput, ValueError, TypeError):
            # The reason is for the issuer; the client only learns that the token is invalid.
            return None
        return caller, claims

    def _verified(self, token: str) -> Mapping[str, Any]:
        import jwt

        from nessie_cli.server.auth.jwt_keys import ALGORITHMS

        header: Mapping[str, Any] = jwt.get_unverified_header(token)
        algorithm, id_ = str(header.get("alg")), header.get("kid")
        if algorithm not in ALGORITHMS or "crit" in header:
            raise InvalidInput("this algorithm or extension is not accepted")
        # Check that the token claims this issuer before its keys are fetched.
        if (
            jwt.decode(token, options={"verify_signature": False}).get("iss")
            != self._settings.issuer
        ):
            raise InvalidInput("another issuer")
        for key in self._keys.find(id_, algorithm):
            try:
                claims: Mapping[str, Any] = jwt.decode(
                    token,
                    key,
                    algorithms=[algorithm],
                    audience=self._settings.audience,
                    issuer=self._settings.issuer,
                    leeway=LEEWAY,
                    options={"require": ["exp", "iss", "aud"]},
                )
            except jwt.InvalidSignatureError:
                continue
            return claims
        raise InvalidInput("no key of the issuer has signed it")

    def _remember(self, token: str, verified: VerifiedToken) -> None:
        if len(self._verified_until) >= _MOST_CACHED:
            self._verified_until.clear()
        until = min(verified.expires + LEEWAY, self._clock() + _CACHED_FOR)
        self._verified_until[_digest(token)] = (verified, until)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _claim(claims: Mapping[str, Any], path: str) -> Any:
    """Returns a claim by name, or a nested one by path; a claim whose own name has dots wins."""
    if path in claims:
        return claims[path]
    claim: Any = claims
    for name in path.split("."):
        claim = claim.get(name) if isinstance(claim, dict) else None
    return claim


def _text(claims: Mapping[str, Any], path: str) -> str:
    claim = _claim(claims, path)
    if not isinstance(claim, str):
        raise InvalidInput(f"the claim {path} is not a string")
    return claim


def _texts(claims: Mapping[str, Any], path: str) -> list[str]:
    """Returns roles from a list of strings, or from one text with spaces between them."""
    claim = _claim(claims, path)
    if claim is None:
        return []
    listed = claim.split() if isinstance(claim, str) else claim
    if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
        raise InvalidInput(f"the claim {path} is not a list of strings")
    return [check_name(text, "role") for text in dict.fromkeys(listed)]
