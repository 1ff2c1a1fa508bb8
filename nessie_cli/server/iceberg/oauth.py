"""OAuth tokens: client credentials, and the exchange of a token for a new time to live.

The catalog issues no tokens of its own. A client's credentials are a token of `nessie token`, which
it gets back: either the secret is the whole token and the id is arbitrary, or the id is the first
part of the token and the secret the rest.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qsl, unquote_plus

from msgspec import json

from nessie_cli.server.auth.gate import Gate
from nessie_cli.server.auth.identity import Credentials, Unauthenticated
from nessie_cli.server.auth.tokens import is_ours
from nessie_cli.server.http.messages import JSON, Headers, Reply, header
from nessie_cli.server.iceberg.call import IcebergCall

LIFETIME = 3600
"""Seconds after which a client renews its token, if it does not expire before."""
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - the name of a type
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_PREFIX = "nessie_"
_NOT_STORED = [(b"content-type", JSON), (b"cache-control", b"no-store")]
_FORM = b"application/x-www-form-urlencoded"
MOST_FIELDS = 20
"""The most fields of a form, which is read on the event loop before the caller is known."""


async def token(call: IcebergCall) -> Reply:
    """`POST /v1/oauth/tokens`."""
    headers = call.all_headers
    if header(headers, b"content-type").partition(b";")[0].strip().lower() != _FORM:
        return _error("invalid_request", f"the body must be {_FORM.decode()}")
    try:
        fields = parse_qsl(
            call.body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS
        )
    except ValueError:
        return _error("invalid_request", f"the form has more than {MOST_FIELDS} fields")
    return _granted(call.services.gate, headers, dict(fields))


def _granted(gate: Gate | None, headers: Headers, form: Mapping[str, str]) -> Reply:
    grant = form.get("grant_type", "")
    if gate is None or not gate.knows_tokens:
        return _error(
            "unauthorized_client",
            "this server issues no tokens; leave the credential out, or name your issuer as"
            " oauth2-server-uri",
        )
    if grant == "client_credentials":
        candidate = _from_client(form, headers)
    elif grant == _EXCHANGE:
        candidate = form.get("subject_token", "")
        if not is_ours(candidate):
            return _error(
                "invalid_grant",
                "only tokens of this server are exchanged; others are renewed by their issuer,"
                " oauth2-server-uri",
            )
    else:
        return _error(
            "unsupported_grant_type",
            "grant_type must be client_credentials, or token-exchange for a token of this server",
        )
    try:
        expires = gate.token_entry(Credentials(candidate)).expires
    except Unauthenticated:
        return _error("invalid_client", "the credentials are unknown, expired or withdrawn", 401)
    return _issued(candidate, expires)


def _from_client(form: Mapping[str, str], headers: Headers) -> str:
    """Returns the token that client credentials stand for; they come in the form or by Basic."""
    id_, secret = form.get("client_id", ""), form.get("client_secret", "")
    if not secret:
        id_, secret = _basic(header(headers, b"authorization"))
    if is_ours(secret):
        return secret
    return f"{_PREFIX}{id_.removeprefix(_PREFIX)}_{secret}"


def _basic(authorization: bytes) -> tuple[str, str]:
    scheme, _, text = authorization.partition(b" ")
    try:
        id_, _, secret = b64decode(text, validate=True).decode().partition(":")
    except (ValueError, binascii.Error):
        return "", ""
    return (unquote_plus(id_), unquote_plus(secret)) if scheme.lower() == b"basic" else ("", "")


def _issued(token: str, expires: datetime | None) -> Reply:
    left = LIFETIME if expires is None else int((expires - datetime.now(UTC)).total_seconds())
    answer = {
        "access_token": token,
        "token_type": "bearer",
        "expires_in": max(1, min(LIFETIME, left)),
        "issued_token_type": _ACCESS_TOKEN,
    }
    return Reply(200, [*_NOT_STORED, (b"pragma", b"no-cache")], json.encode(answer))


def _error(code: str, description: str, status: int = 400) -> Reply:
    return Reply(
        status, _NOT_STORED, json.encode({"error": code, "error_description": description})
    )
