"""HTTP with the certificates, proxies and timeouts of an `Access`.

Unusable settings are refused before anything is sent.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from requests.utils import should_bypass_proxies

from nessie_cli.errors import InvalidInput
from nessie_cli.model import Secret
from nessie_cli.repository.access import NO_PROXY, Access, shown


class Http:
    """A pool of connections, shared by threads. Call `close`."""

    def __init__(self, access: Access) -> None:
        _check_certificates(access)
        self._timeout = (access.connect_timeout, access.timeout)
        self._proxy = _checked_proxy(access.proxy)
        self.session = requests.Session()
        # Otherwise requests looks for a password in the user's netrc.
        self.session.auth = _NoPassword()
        self._verify = str(access.ca) if access.ca else None
        if access.certificate:
            self.session.cert = (
                (str(access.certificate), str(access.key))
                if access.key
                else str(access.certificate)
            )
        if access.key_password:
            self.session.mount("https://", _WithKeyPassword(access.key_password))

    def request(
        self, method: str, url: str, *, auth: AuthBase | None = None, **more: Any
    ) -> requests.Response:
        """One request; redirects are not followed, since what is sent may be a secret.

        Raises what requests raises.
        """
        more["proxies"] = self._proxies(url)
        # Passed with each request, because REQUESTS_CA_BUNDLE overrides the session's.
        return self.session.request(
            method,
            url,
            auth=auth,
            timeout=self._timeout,
            verify=self._verify,
            allow_redirects=False,
            **more,
        )

    def _proxies(self, url: str) -> dict[str, str]:
        """The proxies that override the environment's: none, or the configured one.

        NO_PROXY applies to both.
        """
        if self._proxy is None:
            return {}
        if self._proxy == NO_PROXY or should_bypass_proxies(url, None):
            return {"no_proxy": "*"}
        return {"http": self._proxy, "https": self._proxy}

    def close(self) -> None:
        """Close the connections."""
        self.session.close()


class _NoPassword(AuthBase):
    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        return request


class _WithKeyPassword(HTTPAdapter):
    """Opens an encrypted client key."""

    __attrs__ = HTTPAdapter.__attrs__

    def __init__(self, password: Secret) -> None:
        self._password = password
        super().__init__()

    def init_poolmanager(self, *args: Any, **more: Any) -> None:
        """As the base, with the password."""
        super().init_poolmanager(*args, key_password=self._password.reveal(), **more)

    def proxy_manager_for(self, proxy: str, **more: Any) -> Any:
        """As the base, with the password."""
        return super().proxy_manager_for(proxy, key_password=self._password.reveal(), **more)


def _checked_proxy(proxy: str | None) -> str | None:
    if proxy is None or proxy == NO_PROXY:
        return proxy
    if not proxy.startswith(("http://", "https://")):
        raise InvalidInput(
            f"proxy {shown(proxy)}: write http://host:port, or {NO_PROXY} for no proxy"
        )
    return proxy


def _check_certificates(access: Access) -> None:
    """Raise `InvalidInput` that names an unusable file.

    Requests would fail late, or ask for a password.
    """
    if not (access.ca or access.certificate or access.key):
        return
    trial = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if access.ca:
        try:
            trial.load_verify_locations(_existing(access.ca, "CA certificates"))
        except (ssl.SSLError, OSError) as error:
            raise InvalidInput(
                f"{access.ca} holds no CA certificates that can be read ({_reason(error)})"
            ) from None
    if access.key and not access.certificate:
        raise InvalidInput(
            f"{access.key}: a client's key needs its certificate too (NESSIE_CERTIFICATE_FILE)"
        )
    if not access.certificate:
        return
    certificate = _existing(access.certificate, "client certificate")
    key = _existing(access.key, "client key") if access.key else certificate

    def password() -> str:
        if access.key_password is None:
            raise InvalidInput(
                f"{key}: the key is encrypted; NESSIE_KEY_PASSWORD or NESSIE_KEY_PASSWORD_FILE"
                " gives its password"
            )
        return access.key_password.reveal()

    try:
        trial.load_cert_chain(certificate, key, password)
    except (ssl.SSLError, OSError) as error:
        where = certificate if key == certificate else f"{certificate}, {key}"
        raise InvalidInput(
            f"{where} is not a usable certificate and key ({_reason(error)})"
        ) from None


def _reason(error: OSError) -> str:
    """The reason that OpenSSL gives, in words.

    Which attribute of the error has it depends on the version.
    """
    text = f"{getattr(error, 'reason', '')} {error.strerror}".lower().replace("_", " ")
    return next((words for name, words in _REASONS.items() if name in text), "it cannot be read")


_REASONS = {
    "mismatch": "they belong to different pairs",
    "bad decrypt": "the wrong password",
    "pem lib": "no PEM file, or the wrong password",
    "no start line": "no PEM file",
    "no certificate": "no PEM file",
}


def _existing(path: Path, what: str) -> str:
    if not path.is_file():
        raise InvalidInput(f"{path}: no such file ({what})")
    return str(path)
