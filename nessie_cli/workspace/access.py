"""The access to a server, by the environment and the settings.

Secrets come only from the environment, a file of the user, or the keyring. A setting is
`access.NAME` in a workspace and `profile.PROFILE.NAME` in the user's configuration; the environment
overrides both.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.model import Secret
from nessie_cli.workspace import environment
from nessie_cli.workspace.credentials import endpoint, is_loopback
from nessie_cli.workspace.secrets import without_secrets
from nessie_cli.workspace.trust_records import consent

Lookup = Callable[[str], str | None]
"""Returns the value of a setting, or None."""

VARIABLES = {
    "auth-type": "NESSIE_AUTH_TYPE",
    "username": "NESSIE_AUTH_USERNAME",
    "password-file": "NESSIE_AUTH_PASSWORD_FILE",
    "token-file": "NESSIE_AUTH_TOKEN_FILE",
    "issuer-url": "NESSIE_OAUTH2_ISSUER_URL",
    "token-endpoint": "NESSIE_OAUTH2_TOKEN_ENDPOINT",
    "device-auth-endpoint": "NESSIE_OAUTH2_DEVICE_AUTH_ENDPOINT",
    "grant-type": "NESSIE_OAUTH2_GRANT_TYPE",
    "client-id": "NESSIE_OAUTH2_CLIENT_ID",
    "client-secret-file": "NESSIE_OAUTH2_CLIENT_SECRET_FILE",
    "client-scopes": "NESSIE_OAUTH2_CLIENT_SCOPES",
    "ca-file": "NESSIE_CA_FILE",
    "certificate-file": "NESSIE_CERTIFICATE_FILE",
    "key-file": "NESSIE_KEY_FILE",
    "key-password-file": "NESSIE_KEY_PASSWORD_FILE",
    "proxy": "NESSIE_PROXY",
    "connect-timeout": "NESSIE_CONNECT_TIMEOUT",
    "timeout": "NESSIE_TIMEOUT",
}
"""Each setting and its environment variable, named as in pynessie and Nessie."""

HELP = {
    "auth-type": (
        "The authentication: none, basic, bearer or oauth2. Default: implied by the other settings."
    ),
    "username": "The user of auth-type basic.",
    "password-file": "A file with the password of auth-type basic, that only you can read.",
    "token-file": "A file with the token of auth-type bearer, that only you can read.",
    "issuer-url": (
        "The OpenID Connect issuer of auth-type oauth2. Its discovery document lists the endpoints."
    ),
    "token-endpoint": (
        "The endpoint that issues tokens for auth-type oauth2. Default: that of the issuer-url."
    ),
    "device-auth-endpoint": (
        "The endpoint where the sign-in of grant-type device_code begins. Default: that of the"
        " issuer-url."
    ),
    "grant-type": (
        "The grant of auth-type oauth2: client_credentials or device_code. Default:"
        " client_credentials."
    ),
    "client-id": "The client id of auth-type oauth2.",
    "client-secret-file": "A file with the secret of the client, that only you can read.",
    "client-scopes": "The OAuth2 scopes to request, separated by spaces.",
    "ca-file": "A file of CA certificates to trust instead of those of public authorities.",
    "certificate-file": "The client's own certificate, in PEM form.",
    "key-file": "The private key of the certificate, if it is in another file.",
    "key-password-file": "A file with the password of the private key, that only you can read.",
    "proxy": "The proxy: http://host:port, or `none`. Default: HTTP_PROXY and HTTPS_PROXY.",
    "connect-timeout": "Seconds to wait for a connection. Default: 5.",
    "timeout": "Seconds to wait for the beginning of a response. Default: 60.",
}

AUTH_TYPES = ("none", "basic", "bearer", "oauth2")
GRANT_TYPES = ("client_credentials", "device_code")
_URLS = ("issuer-url", "token-endpoint", "device-auth-endpoint")
_TIMES = ("connect-timeout", "timeout")
_CHOICES = {"auth-type": AUTH_TYPES, "grant-type": GRANT_TYPES}
LONGEST_TIME = 86_400.0
LOGIN = "nessie login"
"""The source of a token that this command stored."""
_MOST_SECRET = 64 * 1024
_OTHERS = 0o077


def check(name: str, value: str, place: str) -> str:
    """Returns the checked value of a setting. Raises `InvalidInput` that names `place`."""
    if name in _CHOICES:
        chosen = value.lower()
        if chosen not in _CHOICES[name]:
            raise InvalidInput(f"{place}: {value!r} is not one of {', '.join(_CHOICES[name])}")
        return chosen
    if name in _URLS and not value.startswith(("https://", "http://")):
        raise InvalidInput(f"{place}: write a URL, https://host/...")
    if name in _URLS and value != without_secrets(value):
        raise InvalidInput(f"{place}: a URL must not contain a password")
    if name == "proxy" and value != "none" and not value.startswith(("http://", "https://")):
        raise InvalidInput(f"{place}: write http://host:port, or none for no proxy")
    if name in _TIMES:
        _time(value, place)
    return value


def _time(value: str, place: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= LONGEST_TIME:
        raise InvalidInput(f"{place}: {value!r} is not a positive number of seconds")
    return seconds


class SettingsOrigin(NamedTuple):
    """Who wrote the settings: the user or a workspace."""

    server: bool
    settings: bool


BY_USER = SettingsOrigin(server=True, settings=True)


class AccessSettings:
    """The settings of the access to one server. Each is checked when it is read."""

    def __init__(
        self,
        lookup: Lookup,
        server: str,
        place: Callable[[str], str],
        origin: SettingsOrigin = BY_USER,
        *,
        variables: bool = True,
    ) -> None:
        """Takes a `lookup` of settings, their `place`, and the `server` URL for the keyring.

        Without `variables`, the environment is not read: its settings are those of another server.
        """
        self._variables = variables
        self._lookup = lookup
        self._server = server
        self._place = place
        self._origin = origin
        self.sources: dict[str, None] = {}
        """The variables, settings and secret stores that had a value, in the order of their use."""

    def text(self, name: str) -> str | None:
        """Returns a setting, or None."""
        variable = VARIABLES[name]
        if (value := self._variable(variable)) is not None:
            self.sources[variable] = None
            return check(name, value, variable)
        value = self._lookup(name)
        if value is None:
            return None
        self.sources[self._place(name)] = None
        return check(name, value, self._place(name))

    def check_consent(self) -> None:
        """Raises `NotAllowed` if credentials must not be sent to the server.

        That is a server that the user did not name, or one on another machine without TLS. Called
        before any secret is read.
        """
        kind = self.auth_type()
        if kind == "none" and self.text("certificate-file") is None:
            return
        urls = {self._server: self._origin.server}
        for name in _URLS if kind == "oauth2" else ():
            if url := self.text(name):
                urls[url] = self._is_users(name)
        proxy = self.text("proxy")
        for url, named in urls.items():
            if (not named or not (url.startswith("https://") or is_loopback(url))) and (
                why := consent().refusal(url, named=named)
            ):
                raise NotAllowed(why)
        if (
            proxy
            and proxy != "none"
            and not self._is_users("proxy")
            and not consent().covers(proxy)
        ):
            raise NotAllowed(
                f"proxy {without_secrets(proxy)}: only the workspace names it, so no credentials"
                " are sent through it; "
                "NESSIE_PROXY or trusted-endpoints may name it"
            )

    def _is_users(self, name: str) -> bool:
        """Returns whether the user wrote this setting, not a workspace."""
        return self._origin.settings or self._variable(VARIABLES[name]) is not None

    def _variable(self, variable: str) -> str | None:
        return environment.variable(variable) if self._variables else None

    def path(self, name: str) -> Path | None:
        """Returns a setting that is a file; `~` is the user's home."""
        text = self.text(name)
        return Path(text).expanduser() if text else None

    def time(self, name: str, default: float) -> float:
        """Returns a setting that is a number of seconds."""
        text = self.text(name)
        return default if text is None else float(text)

    def secret(self, name: str) -> Secret | None:
        """Returns `token`, `password`, `client-secret` or `key-password`, or None."""
        file = f"{name}-file"
        variable = VARIABLES[file].removesuffix("_FILE")
        value = self._variable(variable)
        if value is not None:
            self.sources[variable] = None
            return Secret(value)
        path = self.path(file)
        if path:
            return _from_file(path)
        if name == "token" and (token := self._of_login()):
            self.sources[LOGIN] = None
            return token
        secret = _from_keyring(name, self._server)
        if secret:
            self.sources["the keyring"] = None
        return secret

    def _of_login(self) -> Secret | None:
        """Returns the token that `nessie login` stored for this server."""
        from nessie_cli.workspace.tokens import login_file

        token = login_file(endpoint(self._server) or "").read()
        return Secret(token) if token else None

    def auth_type(self) -> str:
        """Returns the type of authentication: the setting, or the one that other settings imply."""
        said = self.text("auth-type")
        if said is not None:
            return said
        if self._variable("NESSIE_AUTH_TOKEN") or self.text("token-file"):
            return "bearer"
        if self.text("client-id") or self.text("issuer-url") or self.text("token-endpoint"):
            return "oauth2"
        if self.text("username"):
            return "basic"
        return "bearer" if self._of_login() else "none"


def needed(kind: str, name: str) -> InvalidInput:
    """Returns the error for a setting that a type of authentication requires."""
    file = f"{name}-file"
    if file not in VARIABLES:
        return InvalidInput(f"auth-type {kind} needs {name} ({VARIABLES[name]})")
    variable = VARIABLES[file].removesuffix("_FILE")
    return InvalidInput(
        f"auth-type {kind} needs a {name}: {variable}, a file that {variable}_FILE or {file}"
        " names, `nessie login`, or the keyring (nessie-access(7))"
    )


def _from_file(path: Path) -> Secret:
    try:
        with path.open(encoding="utf-8") as file:
            import os

            if os.fstat(file.fileno()).st_mode & _OTHERS:
                raise InvalidInput(
                    f"{path}: others may read this secret; `chmod 600 {path}` keeps them out"
                )
            text = file.read(_MOST_SECRET).strip("\r\n")
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not text") from None
    except OSError as error:
        raise InvalidInput(f"{path}: the secret cannot be read: {error.strerror}") from None
    if not text.strip() or "\n" in text:
        raise InvalidInput(f"{path} must hold the secret in one line, and nothing else")
    return Secret(text)


def _from_keyring(name: str, server: str) -> Secret | None:
    """Returns the secret of the service `nessie:NAME` for the server in the keyring, or None."""
    try:
        import keyring
    except ImportError:
        return None
    try:
        password = keyring.get_password(f"nessie:{name}", server)
    except Exception:  # noqa: BLE001 (keyrings are plug-ins, and raise what they like)
        # Without a usable keyring there is no secret in it; the error for the missing secret names
        # the other places.
        return None
    return Secret(password) if password else None
