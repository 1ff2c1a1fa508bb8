"""TLS of the server: certificate, private key, and the CA of client certificates.

A server runs longer than a certificate lasts, so each new connection uses the current files.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import NamedTuple, Self

from nessie_cli.errors import InvalidInput
from nessie_cli.model import Secret
from nessie_cli.server.runtime.watched_files import (
    SECRET,
    Report,
    Watched,
    read_guarded,
    report_on_stderr,
)

PASSWORD = "NESSIE_TLS_KEY_PASSWORD"  # noqa: S105 - the name of a variable
"""The environment variable with the password of an encrypted key; messages name it."""


class Tls(NamedTuple):
    """The files of the server's TLS.

    `certificate` begins with the server's own and may contain the chain, and the key if `key` is
    None. `client_ca` contains the CA certificates of clients; without it, clients need none.
    """

    certificate: Path
    key: Path | None = None
    client_ca: Path | None = None
    password: Secret | None = None

    def context(self) -> ssl.SSLContext:
        """Returns the TLS 1.2 and 1.3 context.

        Raises `InvalidInput`, or `NotAllowed` for an exposed key.
        """
        key = self.key or self.certificate
        encrypted = b"ENCRYPTED" in read_guarded(
            key, SECRET, "TLS key" if self.key else "TLS certificate with the key"
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        password = self.password.reveal() if self.password else ""
        try:
            # Without a password, OpenSSL would ask for one on the terminal.
            context.load_cert_chain(self.certificate, key, lambda: password)
        except ssl.SSLError as error:
            reason = _reason(error, encrypted=encrypted, given=bool(password))
            raise InvalidInput(
                f"TLS certificate {self.certificate} with key {key}: {reason}"
            ) from None
        except OSError as error:
            raise InvalidInput(
                f"TLS certificate {self.certificate} cannot be read: {error.strerror}"
            ) from None
        if self.client_ca is not None:
            self._demand_certificates(context, self.client_ca)
        return context

    @property
    def files(self) -> list[Path]:
        """All files."""
        return [path for path in (self.certificate, self.key, self.client_ca) if path is not None]

    @staticmethod
    def _demand_certificates(context: ssl.SSLContext, client_ca: Path) -> None:
        try:
            context.load_verify_locations(client_ca)
        except ssl.SSLError:
            raise InvalidInput(
                f"TLS client CA {client_ca} holds no certificates in PEM form"
            ) from None
        except OSError as error:
            raise InvalidInput(
                f"TLS client CA {client_ca} cannot be read: {error.strerror}"
            ) from None
        context.verify_mode = ssl.CERT_REQUIRED


class RenewedContext(ssl.SSLContext):
    """A context that follows its files. While they are invalid, the last valid state is in use.

    Existing connections continue; older sessions are not resumed, so clients authenticate again.
    """

    def __new__(cls, tls: Tls, report: Report = report_on_stderr) -> Self:  # noqa: ARG004 - those of __init__
        """Made as every context for servers."""
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, tls: Tls, report: Report = report_on_stderr) -> None:
        """Raises the errors of `Tls.context`."""
        self._current = Watched(tls.files, tls.context, report)
        self.verify_mode = self._current.value().verify_mode

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Begins TLS on a connection with the current certificate. Event loops call it."""
        return self._current.value().wrap_bio(
            incoming, outgoing, server_side, server_hostname, session
        )


def _reason(error: ssl.SSLError, *, encrypted: bool, given: bool) -> str:
    """Explains what is wrong with certificate and key."""
    if "MISMATCH" in (error.reason or ""):
        return "the key is not that of the certificate"
    if encrypted:
        if given:
            return f"the key is encrypted, and the password in {PASSWORD} does not open it"
        return f"the key is encrypted, and {PASSWORD} holds no password"
    return "they cannot be used; both have to be PEM files"
