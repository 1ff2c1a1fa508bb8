"""Opens repositories with the author and credentials of the user's settings.

`workspace/` reads the settings, `repository/` uses them; neither imports the other.
"""

from __future__ import annotations

from collections.abc import Callable

from nessie_cli.repository.access import (
    CONNECT_TIMEOUT,
    TIMEOUT,
    Access,
    Basic,
    Bearer,
    Credentials,
    OAuth2,
    OAuth2Grant,
    checked_url,
)
from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import connect
from nessie_cli.repository.urls import is_server
from nessie_cli.workspace import environment
from nessie_cli.workspace.access import (
    BY_USER,
    VARIABLES,
    AccessSettings,
    Lookup,
    SettingsOrigin,
    needed,
)

SETTINGS = tuple(VARIABLES)
"""The names of the settings that `access_to` reads."""


def author() -> str | None:
    """Returns the default author of commits: `NESSIE_AUTHOR`, otherwise the user's setting."""
    named = environment.variable(environment.AUTHOR)
    if named:
        return named
    from nessie_cli.workspace.user import default_author

    return default_author()


def opened(
    url: str, lookup: Lookup, place: Callable[[str], str], *, variables: bool = True
) -> Repository:
    """Opens the repository at a URL, with the settings that `lookup` returns and `place` names.

    Without `variables`, the environment's settings are not used, because they are those of another
    server. Raises the errors of `connect` and `access_to`.
    """
    access = access_to(url, lookup, place, variables=variables) if is_server(url) else None
    return connect(url, who=environment.who(), access=access)


def access_to(
    url: str,
    lookup: Lookup,
    place: Callable[[str], str],
    print_line: Callable[[str], None] | None = None,
    origin: SettingsOrigin = BY_USER,
    *,
    variables: bool = True,
) -> Access:
    """Returns the access to a server by settings; `origin` is who wrote them and the URL.

    `print_line` shows a line to a person who can sign in. `variables` is as in `opened`. Raises
    `InvalidInput` for missing or invalid settings, and `NotAllowed` if credentials must not be sent
    there.
    """
    settings = AccessSettings(lookup, checked_url(url), place, origin, variables=variables)
    settings.check_consent()
    access = Access(
        credentials=_credentials(settings, print_line),
        ca=settings.path("ca-file"),
        certificate=settings.path("certificate-file"),
        key=settings.path("key-file"),
        key_password=settings.secret("key-password") if settings.text("certificate-file") else None,
        proxy=settings.text("proxy"),
        connect_timeout=settings.time("connect-timeout", CONNECT_TIMEOUT),
        timeout=settings.time("timeout", TIMEOUT),
    )
    return access._replace(sources=tuple(settings.sources))


def _credentials(
    settings: AccessSettings, print_line: Callable[[str], None] | None
) -> Credentials | None:
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
    return _oauth2(settings, print_line) if kind == "oauth2" else None


def _oauth2(settings: AccessSettings, print_line: Callable[[str], None] | None) -> OAuth2:
    from nessie_cli.workspace.tokens import token_file

    client, issuer, endpoint = (
        settings.text("client-id"),
        settings.text("issuer-url"),
        settings.text("token-endpoint"),
    )
    if client is None:
        raise needed("oauth2", "client-id")
    if issuer is None and endpoint is None:
        raise needed("oauth2", "issuer-url")
    grant = OAuth2Grant(settings.text("grant-type") or OAuth2Grant.CLIENT_CREDENTIALS)
    secret = settings.secret("client-secret")
    if secret is None and grant is OAuth2Grant.CLIENT_CREDENTIALS:
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
        print_line=print_line,
    )
