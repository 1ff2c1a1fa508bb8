"""The reference and warehouse of a request, from its path: `/iceberg/{ref}/v1/{prefix}/...`.

The prefix is `ref` or `ref|warehouse`. Clients without a prefix can name both as their warehouse:
they find the prefix in the configuration. The server announces it percent-encoded once. Some
clients encode it again and some decode it, so it is read in all these forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote, unquote

from nessie_cli.errors import InvalidInput

BELOW = "/iceberg"
_HOST = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::\d+)?")
_THIS_MACHINE = re.compile(r"(?:localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?")
_FRONT = re.compile(r"(?:/[\w.~-]+)*", re.ASCII)
_WHOLE_HASH = re.compile(r"[0-9a-fA-F]{64}")


class Prefix(NamedTuple):
    """The reference (a name, `name@hash` or `@hash`) and the warehouse; None is the default."""

    reference: str | None = None
    warehouse: str | None = None


def announced(reference: str, warehouse: str | None) -> str:
    """Returns the prefix that clients put into paths, percent-encoded once."""
    return quote(f"{reference}|{warehouse}" if warehouse else reference, safe="")


def read(from_path: str | None, given: str | None) -> Prefix:
    """Returns what a request names in front of `v1` and as its prefix, both decoded once.

    Raises `InvalidInput` if both name different references.
    """
    return _joined(_parsed(given), _parsed(from_path))


def with_parameter(prefix: Prefix, warehouse: str | None) -> Prefix:
    """Returns a prefix with the parameter `warehouse` of a request for the configuration.

    The parameter is `WAREHOUSE`, `REF|WAREHOUSE` or `REF|`. Raises `InvalidInput` if the path names
    another reference.
    """
    named = _parsed(warehouse) if warehouse and "|" in warehouse else Prefix(None, warehouse)
    return _joined(prefix, named)


def _joined(one: Prefix, other: Prefix) -> Prefix:
    """Returns two parts of a request as one. What `one` names takes precedence."""
    if None not in (one.reference, other.reference) and one.reference != other.reference:
        raise InvalidInput(
            f"the request names two references, {one.reference!r} and {other.reference!r}"
        )
    return Prefix(one.reference or other.reference, one.warehouse or other.warehouse)


def _parsed(text: str | None) -> Prefix:
    if text is None:
        return Prefix()
    if "%" in text:
        # A client has encoded it again. No reference has a percent sign in its name.
        text = unquote(text, errors="replace")
    reference, _, warehouse = text.partition("|")
    if _WHOLE_HASH.fullmatch(reference):
        reference = f"@{reference}"
    return Prefix(reference or None, warehouse or None)


def client_uri(scheme: str, header: Callable[[bytes], str | None]) -> str:
    """Returns the URI of the catalog that the client uses; empty if it is uncertain.

    A proxy may have another URI; clients then use the one that they know. Headers of a proxy are
    trusted, because the answer goes only to its client.
    """
    host = header(b"x-forwarded-host") or header(b"host") or ""
    known = header(b"x-forwarded-proto")
    if known is None and (scheme == "https" or _THIS_MACHINE.fullmatch(host)):
        known = scheme
    front = (header(b"x-forwarded-prefix") or "").rstrip("/")
    if known not in ("http", "https") or not _HOST.fullmatch(host) or not _FRONT.fullmatch(front):
        return ""
    return f"{known}://{host}{front}{BELOW}"
