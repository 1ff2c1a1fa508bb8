"""Decides, without I/O, where credentials may be sent.

A credential belongs to servers that the user named: on the command line, in the environment, in the
user's own configuration, or once by `nessie login URL`. A server is a scheme, a host and a port. To
other machines, credentials need TLS unless the user allows otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from urllib.parse import SplitResult, urlsplit

from nessie_cli.errors import InvalidInput

_PORTS = {"http": 80, "https": 443, "postgresql": 5432}
_OTHER_NAMES = {"postgres": "postgresql"}
_YES = frozenset({"*", "1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off"})
WEB = ("http://", "https://")
DATABASE = ("postgresql://", "postgres://")


def endpoint(url: str) -> str | None:
    """Returns the server of a URL as `scheme://host:port`.

    Returns None if the URL names no single server.

    >>> endpoint("HTTPS://Catalog.example.org/api/v2")
    'https://catalog.example.org:443'
    """
    parts = _split(url)
    if parts is None:
        return None
    scheme = _OTHER_NAMES.get(parts.scheme, parts.scheme)
    host = parts.hostname or ""
    if (
        scheme not in _PORTS
        or not host
        or "," in parts.netloc
        or (parts.query and scheme == "postgresql")
    ):
        # A query of PostgreSQL can name another host, and files.
        return None
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{parts.port or _PORTS[scheme]}"


def _split(url: str) -> SplitResult | None:
    if not url.isprintable() or " " in url or "\\" in url:
        return None
    try:
        parts = urlsplit(url)
        usable = parts.port is None or parts.port > 0
    except ValueError:
        return None
    return parts if usable else None


def is_loopback(url: str) -> bool:
    """Returns whether a URL names only this machine."""
    parts = _split(url)
    host = (parts.hostname if parts else None) or ""
    if host == "localhost":
        return True
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def checked_endpoints(texts: Iterable[str], place: str) -> frozenset[str]:
    """Returns the servers of a setting. Raises `InvalidInput` that names `place`."""
    servers = {text: endpoint(text) for text in texts}
    for text, server in servers.items():
        if server is None:
            raise InvalidInput(f"{place}: {text!r} names no server; write scheme://host[:port]")
    return frozenset(server for server in servers.values() if server)


class AllowedHttp:
    """The servers that may get credentials without TLS: all, or named ones.

    A name is `host`, `host:port` or a URL.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = frozenset(text.lower() for text in texts) - _NO

    def allows(self, url: str) -> bool:
        """Returns whether credentials may be sent to this `http://` URL."""
        server = endpoint(url)
        if server is None:
            return False
        return (
            bool(self._texts & {*_YES, server.removeprefix("http://"), _host(server)})
            or server in self._endpoints
        )

    @cached_property
    def _endpoints(self) -> frozenset[str | None]:
        return frozenset(endpoint(text) for text in self._texts if "://" in text)


def _host(server: str) -> str:
    return server.partition("://")[2].rpartition(":")[0]


class Consent:
    """The servers that the user named, and those that may get credentials without TLS.

    `servers` are the endpoints that the user named. `urls` are whole URLs, for databases whose URL
    contains more than a server.
    """

    def __init__(
        self, servers: Iterable[str] = (), http: AllowedHttp | None = None, urls: Iterable[str] = ()
    ) -> None:
        self.servers = frozenset(servers)
        self._http = http or AllowedHttp(())
        self._urls = frozenset(urls)

    def covers(self, url: str) -> bool:
        """Returns whether the user named the server of this URL."""
        return endpoint(url) in self.servers or url in self._urls

    def refusal(self, url: str, *, named: bool) -> str | None:
        """Returns why credentials must not be sent to a URL, or None if they may.

        The text has the command that allows it. `named`: the user wrote this URL. Otherwise a
        workspace did, and the user must have named its server.
        """
        server = endpoint(url)
        if server is None:
            return f"{url} names no server that credentials can be kept for"
        if not named and not self.covers(url):
            return (
                f"server {server}: only the workspace names it, so no credentials are sent there;"
                f" if you trust this server, run `nessie login {url}`"
            )
        if server.startswith("http://") and not is_loopback(url) and not self._http.allows(url):
            where = server.removeprefix("http://")
            return (
                f"server {server}: credentials are sent to other machines over https only; "
                f"`nessie config set allow-http {where} --add` (or NESSIE_ALLOW_HTTP) allows http"
                " there"
            )
        return None
