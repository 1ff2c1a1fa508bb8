"""`nessie content history`."""

from itertools import islice
from typing import Annotated

import typer

from nessie_cli.cli import staging
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.keyhistory import history_of
from nessie_cli.cli.words import at_most, refuse_empty
from nessie_cli.errors import ContentNotFound
from nessie_cli.model import ContentKey

EXAMPLES = ("nessie content history db.orders", "nessie content history db.orders main~3 -n 5 --json")


def content_history(
    ctx: typer.Context,
    key: staging.Key,
    revision: Annotated[str | None, typer.Argument(metavar="[REV]", help="Where to start; HEAD, when it is left out.", show_default=False)] = None,
    *,
    limit: Annotated[int | None, typer.Option("-n", "--max-count", metavar="N", min=0, help="At most N commits.")] = None,
) -> None:
    """Show the commits that changed one content, newest first, with the fields that changed.

    A content that was renamed is followed to the key it had. Out of a terminal a line is: hash, time, author, change, key, fields, subject.
    """
    call = Invocation.of(ctx)
    refuse_empty("nessie content history KEY [REV]", key, revision)
    wanted = ContentKey.parse(key)
    start = call.repository().resolve(call.revision(revision))
    found = at_most(limit, history_of(call.repository(), start.hash, wanted))
    moments = list(islice(found, 1))
    if not moments and limit != 0:
        raise ContentNotFound(f"key '{wanted}' never had a content in '{start.name or start.hash}'", wanted)
    whole = (moment for part in (moments, found) for moment in part)
    if call.wants_json:
        from nessie_cli.render.moments import encode_moment

        call.answer_listing("history", (encode_moment(moment.entry, moment.change) for moment in whole), hasMore=False, token=None)
    else:
        from nessie_cli.render.moments import print_moments

        print_moments(((moment.entry, moment.change) for moment in whole), call.out)
