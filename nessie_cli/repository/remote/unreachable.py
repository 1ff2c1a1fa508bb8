"""The reasons for a missing answer, in one line, and whether anything was sent."""

from __future__ import annotations

import requests
from requests import exceptions

from nessie_cli.errors import StoreUnavailable
from nessie_cli.repository.remote.http import AnswerLimit

_NOT_SPOKEN = (
    "WRONG_VERSION_NUMBER",
    "RECORD_LAYER_FAILURE",
    "UNKNOWN_PROTOCOL",
    "HTTP_REQUEST",
    "UNEXPECTED_MESSAGE",
    "PACKET_LENGTH_TOO_LONG",
)
"""Errors of OpenSSL if the peer does not speak TLS."""
_REFUSED = (
    "CERTIFICATE_VERIFY_FAILED",
    "CERTIFICATE_REQUIRED",
    "HANDSHAKE_FAILURE",
    "ALERT_UNKNOWN_CA",
    "ALERT_BAD_CERTIFICATE",
)
_TLS = (
    (
        ("Hostname mismatch", "IP address mismatch"),
        "its certificate is for another name; is the address right?",
    ),
    (("certificate has expired",), "its certificate has expired"),
    (
        ("CERTIFICATE_VERIFY_FAILED",),
        "its certificate is not accepted; give the CA's file if it is your own (NESSIE_CA_FILE)",
    ),
    (_NOT_SPOKEN, "it does not speak https there; write http://, or another port"),
    (
        ("CERTIFICATE_REQUIRED", "HANDSHAKE_FAILURE"),
        "it wants a client certificate (NESSIE_CERTIFICATE_FILE, NESSIE_KEY_FILE)",
    ),
    (
        ("ALERT",),
        "it did not accept the client certificate (NESSIE_CERTIFICATE_FILE, NESSIE_KEY_FILE)",
    ),
)
_NO_TLS = (
    "no secure connection can be made; does it speak https, does it want a client certificate?"
)
_NEVER_CONNECTED = ("NewConnectionError", "NameResolutionError", "ConnectTimeoutError")
_GARBLED = ("BadStatusLine", "illegal status line", "RemoteDisconnected", "Connection reset")

_PROXY_LOGIN = (
    "its proxy requires authentication (407);"
    " HTTPS_PROXY or NESSIE_PROXY may contain a name and password"
)
_PROXY = "the proxy for it does not work; see HTTP_PROXY, HTTPS_PROXY, NO_PROXY and NESSIE_PROXY"
_NO_CONNECTION = (
    "no connection in time; is the address right, is a firewall in between?"
    " (NESSIE_CONNECT_TIMEOUT)"
)
_CERTIFICATES = "a file of certificates cannot be read; see REQUESTS_CA_BUNDLE and CURL_CA_BUNDLE"


def unreachable(url: str, error: OSError, *, timeout: float) -> StoreUnavailable:
    """Returns the error for a request without an answer.

    It has the text of `error` only if that is this program's own. Others may contain a secret.
    """
    return StoreUnavailable(f"server {url}: {_why(url, error, timeout)}")


def _why(url: str, error: OSError, timeout: float) -> str:
    text = str(error)
    if isinstance(error, AnswerLimit):
        return text
    if isinstance(error, exceptions.SSLError):
        return next((line for texts, line in _TLS if any(word in text for word in texts)), _NO_TLS)
    # After repetitions by urllib3 a timeout is only the reason of a ConnectionError.
    slow = isinstance(error, exceptions.Timeout) and not isinstance(
        error, exceptions.ConnectTimeout
    )
    if slow or _reason(error) == "ReadTimeoutError":
        return f"no answer within {timeout:g} seconds (NESSIE_TIMEOUT)"
    closed = url.startswith("http://") and any(word in text for word in _GARBLED)
    proxy, timeout_ = (
        isinstance(error, exceptions.ProxyError),
        isinstance(error, exceptions.Timeout),
    )
    no_file = not isinstance(error, requests.RequestException)
    reasons = (
        ("407 Proxy" in text, _PROXY_LOGIN),
        (proxy, _PROXY),
        (timeout_, _NO_CONNECTION),
        (_reason(error) == "NameResolutionError", "its name is not known; is the address right?"),
        ("refused" in text, "nothing listens there; is it running, is the port right?"),
        (no_file, _CERTIFICATES),
        (closed, "the connection was closed without an answer; does it speak https?"),
    )
    return next(
        (line for fits, line in reasons if fits),
        "not reachable; is it running, and is the address right?",
    )


def never_sent(error: requests.RequestException) -> bool:
    """Returns whether no connection was made, so that the server saw nothing."""
    if isinstance(
        error,
        exceptions.ConnectTimeout
        | exceptions.ProxyError
        | exceptions.InvalidURL
        | exceptions.InvalidHeader,
    ):
        return True
    return _is_refused_tls(error) or _reason(error) in _NEVER_CONNECTED


def for_good(error: OSError) -> bool:
    """Returns whether another try would fail in the same way."""
    wrong = isinstance(error, exceptions.InvalidURL | exceptions.InvalidHeader) or not isinstance(
        error, requests.RequestException
    )
    return wrong or _is_refused_tls(error)


def _is_refused_tls(error: OSError) -> bool:
    """Returns whether the server or this client refused the other.

    TLS 1.3 refuses a client certificate only after the handshake, but before it reads a request.
    A connection that is cut later is an `SSLError` too, but not a refusal.
    """
    return isinstance(error, exceptions.SSLError) and any(
        word in str(error) for word in (*_NOT_SPOKEN, *_REFUSED)
    )


def _reason(error: OSError) -> str:
    """Returns the name of the error of urllib3 inside one of requests."""
    inner = error.args[0] if error.args else None
    return type(getattr(inner, "reason", None)).__name__
