"""The style sheet and the scripts of the pages.

Their names contain a digest of their bytes, so browsers keep them for ever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from nessie_cli.errors import NotFound
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pages.urls import ROOT
from nessie_cli.server.pipeline.call import Call

_TYPES = {
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}
_DIGITS = 16


class Asset(NamedTuple):
    """A file that pages refer to."""

    path: str
    type: bytes
    body: bytes


@cache
def assets() -> Mapping[str, Asset]:
    """Returns the files by their names, such as `style.css`."""
    read = {}
    for file in files("nessie_cli.server.pages").joinpath("assets").iterdir():
        name, _, ending = file.name.rpartition(".")
        if ending in _TYPES:
            body = file.read_bytes()
            digest = hashlib.sha256(body).hexdigest()[:_DIGITS]
            path = f"{ROOT}/assets/{name}.{digest}.{ending}"
            read[file.name] = Asset(path, _TYPES[ending], body)
    return read


def asset(call: Call) -> Reply:
    """`GET /ui/assets/{name}`."""
    path = f"{ROOT}/assets/{call.segments['name']}"
    file = next((each for each in assets().values() if each.path == path), None)
    if file is None:
        raise NotFound("The server has no such file", path)
    headers = [
        (b"content-type", file.type),
        (b"cache-control", b"public, max-age=31536000, immutable"),
        (b"x-content-type-options", b"nosniff"),
    ]
    return Reply(200, headers, file.body)
