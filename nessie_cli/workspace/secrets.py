"""Keeps secrets out of settings files, which are copied, shared and backed up."""

from __future__ import annotations

import re

from nessie_cli.errors import InvalidInput

_NAMES = (
    r"(?i)(^|[^a-z])(auth|authorization|token|password|passwd|pwd|secret|credentials?|"
    r"api[-_]?key|access[-_]?key|account[-_]?key|connection[-_]?string)([^a-z]|$)"
)
_USER_INFO = r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s@]*:[^/?#\s@]+@"
_PARAMETER = (
    r"(?i)[?&;]([a-z_.-]*(?:token|password|passwd|pwd|secret|api[-_]?key|access[-_]?key))=[^&;\s]"
)
ELSEWHERE = (
    "secrets are never written; the environment gives them (PGPASSWORD or ~/.pgpass,"
    " NESSIE_AUTH_TOKEN), or a file (token-file)"
)


def without_secrets(url: str) -> str:
    """Returns a URL without a password or token, and any other text unchanged.

    >>> without_secrets("postgresql://ada:lovelace@host/catalog?sslpassword=x&sslmode=require")
    'postgresql://ada@host/catalog?sslmode=require'
    """
    bare = re.sub(_USER_INFO, lambda user_info: user_info[0].rpartition(":")[0] + "@", url)
    return re.sub(_PARAMETER + r"[^&;]*[&;]?", lambda parameter: parameter[0][0], bare).rstrip(
        "?&;"
    )


def is_secret(name: str) -> bool:
    """Returns whether the name of a setting is that of a secret."""
    return re.search(_NAMES, name) is not None


def refuse_secret(name: str, value: str | None, *, is_name: bool = True) -> None:
    """Raises `InvalidInput` if the name or URL of a setting shows a secret.

    The message does not repeat the value. Without `is_name`, any name is accepted.
    """
    if is_name and is_secret(name):
        raise InvalidInput(f"{name}: {ELSEWHERE}")
    if value is None:
        return
    if re.search(_USER_INFO, value):
        raise InvalidInput(f"{name}: the URL holds a password; {ELSEWHERE}")
    if parameter := re.search(_PARAMETER, value):
        raise InvalidInput(f"{name}: the URL holds {parameter[1]}; {ELSEWHERE}")
