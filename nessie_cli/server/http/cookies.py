"""Cookies: how a browser keeps the id of its session (RFC 6265)."""

from __future__ import annotations

from typing import NamedTuple

from nessie_cli.server.http.messages import Headers


class Cookie(NamedTuple):
    """A cookie that only this server gets, and no script reads.

    With `is_secure`, browsers send it over TLS only, and its name begins with `__Host-`, so that no
    other host can set it.
    """

    name: str
    is_secure: bool

    @property
    def full_name(self) -> str:
        """The name of the cookie in headers."""
        return f"__Host-{self.name}" if self.is_secure else self.name

    def read(self, headers: Headers) -> str:
        """Returns the value that a browser sends, or an empty text."""
        for header, value in headers:
            if header == b"cookie":
                for pair in value.decode("latin-1").split(";"):
                    name, _, text = pair.strip().partition("=")
                    if name == self.full_name:
                        return text
        return ""

    def set(self, value: str, seconds: int | None = None) -> tuple[bytes, bytes]:
        """Returns the header that sets the cookie, for some seconds or until the browser ends.

        A link from elsewhere sends it (`Lax`), a form from elsewhere does not.
        """
        text = f"{self.full_name}={value}; Path=/; HttpOnly; SameSite=Lax"
        if self.is_secure:
            text += "; Secure"
        if seconds is not None:
            text += f"; Max-Age={seconds}"
        return b"set-cookie", text.encode("ascii")

    def clear(self) -> tuple[bytes, bytes]:
        """Returns the header that removes the cookie."""
        return self.set("", 0)
