"""How this invocation reaches a server: the settings and secrets that belong to the store's URL, as `connect` takes them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from nessie_cli.repository.access import CONNECT_TIMEOUT, TIMEOUT, Access, Basic, Bearer, Credentials, Grant, OAuth2, checked_url
from nessie_cli.workspace.access import AccessSettings, Lookup, needed

if TYPE_CHECKING:
    from collections.abc import Callable

    from nessie_cli.workspace.folder import Workspace
    from nessie_cli.workspace.user import Profile


def access_to(url: str, lookup: Lookup, place: Callable[[str], str], tell: Callable[[str], None] | None = None) -> Access:
    """How a server is reached by settings; `tell` shows a line to a person who can sign in. `InvalidInput` names what is missing or wrong."""
    settings = AccessSettings(lookup, checked_url(url), place)
    return Access(
        credentials=_credentials(settings, tell),
        ca=settings.path("ca-file"),
        certificate=settings.path("certificate-file"),
        key=settings.path("key-file"),
        key_password=settings.secret("key-password") if settings.text("certificate-file") else None,
        proxy=settings.text("proxy"),
        connect_timeout=settings.time("connect-timeout", CONNECT_TIMEOUT),
        timeout=settings.time("timeout", TIMEOUT),
    )


def _credentials(settings: AccessSettings, tell: Callable[[str], None] | None) -> Credentials | None:
    kind = settings.auth_type()
    if kind == "basic":
        username, password = settings.text("username"), settings.secret("password")
        if username is None:
            raise needed(kind, "username")
        if password is None:
            raise needed(kind, "password")
        return Basic(username, password)
    if kind == "bearer":
        token = settings.secret("token")
        if token is None:
            raise needed(kind, "token")
        return Bearer(token)
    return _oauth2(settings, tell) if kind == "oauth2" else None


def _oauth2(settings: AccessSettings, tell: Callable[[str], None] | None) -> OAuth2:
    from nessie_cli.workspace.tokens import token_file

    client, issuer, endpoint = settings.text("client-id"), settings.text("issuer-url"), settings.text("token-endpoint")
    if client is None:
        raise needed("oauth2", "client-id")
    if issuer is None and endpoint is None:
        raise needed("oauth2", "issuer-url")
    grant = Grant(settings.text("grant-type") or Grant.CLIENT_CREDENTIALS)
    secret = settings.secret("client-secret")
    if secret is None and grant is Grant.CLIENT_CREDENTIALS:
        raise needed("oauth2", "client-secret")
    scopes = (settings.text("client-scopes") or "").split()
    return OAuth2(
        client_id=client,
        client_secret=secret,
        issuer=issuer,
        token_endpoint=endpoint,
        device_endpoint=settings.text("device-auth-endpoint"),
        grant=grant,
        scopes=tuple(scopes),
        cache=token_file(issuer or endpoint or "", client, grant, *sorted(scopes)),
        tell=tell,
    )


def access_of(url: str, profile: Profile | None, workspace: Workspace | None, tell: Callable[[str], None]) -> Access:
    """How a server is reached by the settings of the profile, else of the workspace, that names it; the environment goes before both."""

    def lookup(name: str) -> str | None:
        if profile:
            from nessie_cli.workspace.user import user_settings

            return user_settings().text("profile", profile.name, name)
        return workspace.setting("access", name) if workspace else None

    def place(name: str) -> str:
        return f"profile.{profile.name}.{name}" if profile else f"access.{name}"

    on_terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    return access_to(url, lookup, place, tell if on_terminal else None)
