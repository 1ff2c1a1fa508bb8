"""Answers as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import json

from nessie_cli.server.http.messages import JSON, Reply

_CONTENT_TYPE = (b"content-type", JSON)
encoded = json.Encoder().encode
NO_CONTENT = Reply(204, [])


def answer(body: Mapping[str, Any], *headers: tuple[bytes, bytes]) -> Reply:
    """Returns an answer of status 200."""
    return answer_with(encoded(body), *headers)


def answer_with(body: bytes, *headers: tuple[bytes, bytes]) -> Reply:
    """Returns an answer of status 200 whose body is encoded already."""
    return Reply(200, [_CONTENT_TYPE, *headers], body)
