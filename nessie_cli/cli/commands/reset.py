"""`nessie reset`."""

from typing import Annotated

import typer
from msgspec.structs import replace

from nessie_cli.cli.context import Invocation
from nessie_cli.model import ContentKey

EXAMPLES = ("nessie reset db.orders", "nessie reset")


def reset(
    ctx: typer.Context,
    keys: Annotated[list[str] | None, typer.Argument(metavar="[KEY...]", help="Which keys; all, when none is named.", show_default=False)] = None,
) -> None:
    """Take operations out of the staged batch; nothing in the store changes."""
    from nessie_cli.cli.batch_view import batch_document
    from nessie_cli.cli.submission import settle
    from nessie_cli.workspace.staging import without

    call = Invocation.of(ctx)
    wanted = [ContentKey.parse(key) for key in keys or ()]
    # Whatever can fail comes first: a failed command takes nothing out.
    reference = call.reference_name() if call.wants_json else ""
    with call.batch_file().changing() as file:
        batch, done = settle(call, file)
        staged = batch.staged if batch else ()
        _check(wanted, batch)
        left = without(staged, wanted) if wanted else ()
        changed = replace(batch, staged=left, request_id=None) if batch else None
        file.write(changed)
    if done is not None:
        call.note(f"the batch was committed already, as {done.reference.hash} on {done.reference.name}")
    if call.wants_json:
        call.answer(batch_document(changed if left else None, reference))
    else:
        taken = len(staged) - len(left)
        call.say(f"{taken} operation{'' if taken == 1 else 's'} taken out, {len(left)} still staged")


def _check(wanted: list[ContentKey], batch: object) -> None:
    from nessie_cli.cli.errors.suggestions import did_you_mean
    from nessie_cli.errors import ContentNotFound
    from nessie_cli.workspace.batch import Batch

    known = batch.keys if isinstance(batch, Batch) else []
    for key in wanted:
        if key not in known:
            raise ContentNotFound(f"nothing is staged for key '{key}'{did_you_mean(str(key), map(str, known))}", key)
