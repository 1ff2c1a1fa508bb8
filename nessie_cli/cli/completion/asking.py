"""A request to a server with the standard library alone: the one that every other command is served by takes longer to load than a keystroke may."""

from __future__ import annotations

import json
import ssl
from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener

from nessie_cli.repository.access import Access, checked_url, header_at_hand

if TYPE_CHECKING:
    from typing import Any


class _Stays(HTTPRedirectHandler):
    """Follows no redirect: credentials are for the server that was named."""

    def redirect_request(self, *_: Any) -> None:
        """Nowhere."""
        return


def ask(url: str, path: str, access: Access, patience: float) -> Any:
    """The JSON that a server answers to a GET below its API; None where it does not, or answers something else."""
    request = _request_of(url, path, access)
    if request is None:
        return None
    try:
        with _opener(access).open(request, timeout=patience) as answer:
            return json.load(answer)
    except HTTPError as error:
        error.close()
        return None
    except (OSError, ValueError, HTTPException):
        return None


def _request_of(url: str, path: str, access: Access) -> Request | None:
    """None where credentials are needed that would have to be asked for first."""
    header = header_at_hand(access)
    if header is None and access.credentials is not None:
        return None
    headers = {"Accept": "application/json"} | ({"Authorization": header} if header else {})
    return Request(f"{checked_url(url)}/{path}", headers=headers)  # noqa: S310 (checked_url lets http and https pass)


def _opener(access: Access) -> OpenerDirector:
    """What opens a request with these certificates and this proxy; without one with those of the environment."""
    context = ssl.create_default_context(cafile=str(access.ca) if access.ca else _authorities())
    if access.certificate:
        password = access.key_password.reveal() if access.key_password else None
        context.load_cert_chain(access.certificate, access.key, password)
    proxies = {"http": access.proxy, "https": access.proxy} if access.proxy else None
    return build_opener(ProxyHandler(proxies), HTTPHandler(), HTTPSHandler(context=context), _Stays())


def _authorities() -> str | None:
    """The authorities that other commands trust."""
    try:
        from certifi import where
    except ImportError:
        return None
    return where()
