"""What the verbs of `nessie stash` share."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from nessie_cli.cli.batch_view import batch_document
from nessie_cli.wire.encode import instant
from nessie_cli.workspace.stash import Stashed

Number = Annotated[int, typer.Argument(metavar="[N]", help="Which one, as the list numbers them; 0 is the newest.", show_default=False)]


def document(number: int, stashed: Stashed) -> dict[str, Any]:
    """The JSON of one batch that was put aside."""
    return {"number": number, "message": stashed.message, "time": instant(stashed.time), "batch": batch_document(stashed.batch, stashed.reference)}
