"""Cookies: how a browser keeps the id of its session (RFC 6265)."""

from __future__ import annotations

from typing import NamedTuple

from nessie_cli.server.http.messages import Headers, header


class Cookie(NamedTuple):
    """A cookie that only this server gets, and no script reads.

    With `is_secure`, browsers send it over TLS only, and its name begins with `__Host-`, so that no
    other host can set it. Browsers send a cookie to all ports of a host, so with `has_port`, its
    name ends with the port in the address of the request.
    """

    name: str
    is_secure: bool
    has_port: bool = False

    def full_name(self, headers: Headers) -> str:
        """Returns the name of the cookie for a request with these headers."""
        name = f"__Host-{self.name}" if self.is_secure else self.name
        port = _port(header(headers, b"host")) if self.has_port else ""
        return f"{name}-{port}" if port else name

    def read(self, headers: Headers) -> str:
        """Returns the value that a browser sends, or an empty text."""
        full_name = self.full_name(headers)
        for name, value in headers:
            if name == b"cookie":
                for pair in value.decode("latin-1").split(";"):
                    key, _, text = pair.strip().partition("=")
                    if key == full_name:
                        return text
        return ""

    def set(self, headers: Headers, value: str, seconds: int | None = None) -> tuple[bytes, bytes]:
        """Returns the header that sets the cookie, for some seconds or until the browser ends.

        `headers` are those of the request. A link from elsewhere sends the cookie (`Lax`), a form
        from elsewhere does not.
        """
        text = f"{self.full_name(headers)}={value}; Path=/; HttpOnly; SameSite=Lax"
        if self.is_secure:
            text += "; Secure"
        if seconds is not None:
            text += f"; Max-Age={seconds}"
        return b"set-cookie", text.encode("ascii")

    def clear(self, headers: Headers) -> tuple[bytes, bytes]:
        """Returns the header that removes the cookie."""
        return self.set(headers, "", 0)


def _port(host: bytes) -> str:
    """Returns the port of a header `Host`, or an empty text."""
    _, colon, port = host.rpartition(b":")
    return port.decode("ascii") if colon and port.isdigit() else ""
