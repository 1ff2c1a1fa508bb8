"""What the commands of `nessie token` share: which file, how long a token lives, and its entry as a document. Tokens themselves are nowhere in it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nessie_cli.errors import InvalidInput
from nessie_cli.workspace import environment as env

if TYPE_CHECKING:
    from nessie_cli.server import TokenEntry

File = Annotated[
    Path | None,
    typer.Option(
        "--file", metavar="FILE", help="The token file, that of `nessie serve --tokens`; else NESSIE_SERVE_TOKENS names it.", show_default=False
    ),
]
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_SPAN = re.compile(r"(\d{1,5})([hdw])")


def token_file(given: Path | None) -> Path:
    """The token file that is meant; raises `InvalidInput` where nothing names one."""
    named = given or env.variable(env.SERVE_TOKENS)
    if not named:
        raise InvalidInput("which token file? name it with --file or NESSIE_SERVE_TOKENS")
    return Path(named)


def expiry(text: str | None, now: datetime) -> datetime | None:
    """When a token ends: `12h`, `90d`, `8w`, or an instant."""
    if text is None:
        return None
    if found := _SPAN.fullmatch(text.strip()):
        return (now + int(found[1]) * _UNITS[found[2]]).replace(microsecond=0)
    from nessie_cli.commitspec import parse_time

    try:
        return parse_time(text, now)
    except InvalidInput:
        raise InvalidInput(f"--expires {text!r}: write 12h, 90d, 8w, or an instant such as 2027-01-31T00:00:00Z") from None


def split_roles(texts: list[str] | None) -> list[str]:
    """Roles as they are given: repeated, or with commas between them."""
    return [role.strip() for text in texts or () for role in text.split(",") if role.strip()]


def document(entry: TokenEntry) -> dict[str, Any]:
    """An entry of a token file for `--json`; without the hash, which nobody needs."""
    from nessie_cli.wire.encode import instant

    return {
        "tokenId": entry.id,
        "name": entry.name,
        "roles": list(entry.roles),
        "created": instant(entry.created),
        "expires": instant(entry.expires),
    }
