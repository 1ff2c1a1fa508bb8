"""Shared parts of `nessie token`: the file, and an entry of it without its token."""

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from nessie_cli.cli.app.result import Document
from nessie_cli.errors import InvalidInput
from nessie_cli.revisions import parse_time
from nessie_cli.wire.scalars import Instant, instant
from nessie_cli.workspace import environment as env

if TYPE_CHECKING:
    from nessie_cli.server import TokenEntry

_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_DURATION = re.compile(r"(\d{1,5})([hdw])")


class FileOptions(Struct, frozen=True, kw_only=True):
    """The option that all commands of `nessie token` share."""

    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="The token file of `nessie serve --tokens`. Default: NESSIE_SERVE_TOKENS.",
        ),
    ] = None

    @property
    def path(self) -> Path:
        """The token file. Raises `InvalidInput` if neither an option nor a variable names one."""
        named = self.file or env.variable(env.SERVE_TOKENS)
        if not named:
            raise InvalidInput("no token file", hint="name it with --file or NESSIE_SERVE_TOKENS")
        return Path(named)


class Token(Document, frozen=True):
    """An entry of a token file. `created` is null if unknown, `expires` if never."""

    token_id: str
    name: str
    roles: tuple[str, ...]
    created: Instant | None
    expires: Instant | None

    @classmethod
    def of(cls, entry: "TokenEntry") -> "Token":
        """Returns an entry of a token file without its hash."""
        times = (instant(entry.created), instant(entry.expires))
        return cls(entry.id, entry.name, tuple(entry.roles), *times)


def expiry(text: str | None, now: datetime) -> datetime | None:
    """Returns the time at which a token expires, from `12h`, `90d`, `8w` or an instant."""
    if text is None:
        return None
    if match := _DURATION.fullmatch(text.strip()):
        return (now + int(match[1]) * _UNITS[match[2]]).replace(microsecond=0)
    try:
        return parse_time(text, now)
    except InvalidInput:
        raise InvalidInput(
            f"--expires {text!r}: write 12h, 90d, 8w, or an instant such as 2027-01-31T00:00:00Z"
        ) from None


def split_roles(texts: list[str] | None) -> list[str]:
    """Returns the roles of a repeated option, whose values may be lists with commas."""
    return [role.strip() for text in texts or () for role in text.split(",") if role.strip()]
