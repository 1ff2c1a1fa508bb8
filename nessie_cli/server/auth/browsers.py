"""Protection from web pages: foreign host names, and changes from other sites.

A page can let its own name resolve to the server's address (DNS rebinding) and read the answers;
the header `Host` reveals it. A page can also send requests to any server without reading the
answers; `Sec-Fetch-Site` and `Origin` reveal it. Other clients send neither of the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from nessie_cli.errors import InvalidInput
from nessie_cli.server.http.failures import HttpFault
from nessie_cli.server.http.messages import Headers

HEALTH = b"/q/health"
"""The paths that are answered under every name, because probes use addresses."""
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITE = frozenset({b"same-origin", b"none"})
_NAME = re.compile(r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_CODE = "FORBIDDEN"
_LONGEST = 300
"""The most characters of a host name with port, brackets and a final dot (DNS allows 253)."""
_REMEMBERED = 256


class Hosts:
    """The host names of a server: this machine's, `names`, and optionally addresses or all.

    A page cannot have an address as its name, so addresses are safe from rebinding.
    """

    def __init__(
        self, names: Iterable[str] = (), *, addresses: bool = False, every: bool = False
    ) -> None:
        checked = [_checked(name) for name in names]
        self._names = frozenset(name for name in checked if not name.startswith("*"))
        self._endings = tuple(name[1:] for name in checked if name.startswith("*"))
        self._addresses, self._every = addresses, every
        self._answers_to = lru_cache(_REMEMBERED)(lambda host: self.allows(_name_of(host)))

    def check(self, method: str, path: bytes, headers: Headers) -> None:
        """Raises `HttpFault` for a foreign host name, and for a change from another site."""
        if path.startswith(HEALTH):
            return
        hosts = [value for name, value in headers if name == b"host"]
        if not self._every and not (
            len(hosts) == 1 and len(hosts[0]) <= _LONGEST and self._answers_to(hosts[0])
        ):
            shown = ", ".join(host.decode("latin-1")[:_LONGEST] for host in hosts)
            raise HttpFault(
                403,
                (
                    f"Host '{shown}' is not a name of this server; --allowed-host or"
                    " NESSIE_ALLOWED_HOSTS adds one"
                ),
                _CODE,
            )
        if method not in _SAFE:
            _check_site(hosts, headers)

    def allows(self, name: str) -> bool:
        """Returns whether the server answers under a name (lower case, without a port)."""
        if name == "localhost" or name in self._names or name.endswith(self._endings):
            return True
        try:
            address = ip_address(name)
        except ValueError:
            return False
        return self._addresses or address.is_loopback


def _check_site(hosts: Sequence[bytes], headers: Headers) -> None:
    sites = [value for name, value in headers if name == b"sec-fetch-site"]
    origins = [value for name, value in headers if name == b"origin"]
    if b"null" in origins or not _OWN_SITE.issuperset(sites):
        raise HttpFault(403, "A page of another site must not make changes", _CODE)
    # `Sec-Fetch-Site` counts if it is present: a proxy may have changed the name.
    if not sites and any(
        _netloc(origin) != host.decode("latin-1").lower()
        for origin in origins
        for host in hosts or (b"",)
    ):
        raise HttpFault(
            403,
            (
                "A page of another origin must not make changes. A proxy in front of the server"
                " must forward the header Host"
            ),
            _CODE,
        )


def _netloc(origin: bytes) -> str:
    try:
        return urlsplit(origin.decode("latin-1").lower()).netloc
    except ValueError:
        return ""


def _name_of(host: bytes) -> str:
    """Returns the name in a header `Host`, without the port."""
    text = host.decode("latin-1").strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].removesuffix(".")


def _checked(name: str) -> str:
    """Returns an allowed name in the form in which it is compared."""
    plain = name.strip().lower().removesuffix(".")
    try:
        return str(ip_address(plain.removeprefix("[").removesuffix("]")))
    except ValueError:
        pass
    if not _NAME.fullmatch(plain):
        raise InvalidInput(
            f"--allowed-host {name!r} must be a host name or address without scheme and port;"
            " *.example.com stands for all names below it"
        )
    return plain
