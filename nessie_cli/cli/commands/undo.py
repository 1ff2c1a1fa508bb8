"""`nessie undo`."""

from typing import Annotated

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.cli.references import follow_rename
from nessie_cli.cli.undoing import Step, has_expired, plan
from nessie_cli.cli.words import refuse_empty
from nessie_cli.errors import InvalidInput
from nessie_cli.model import Reference
from nessie_cli.render.spans import Span
from nessie_cli.wire.encode import encode_single_reference

EXAMPLES = ("nessie undo", "nessie undo feature", "nessie undo main --to 12", "nessie undo --dry-run")


def undo(
    ctx: typer.Context,
    reference: Annotated[str | None, typer.Argument(metavar="[REF]", help="A reference, also one that was deleted.")] = None,
    *,
    to: Annotated[int | None, typer.Option("--to", metavar="N", help="To where the move N of the reflog left it.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
) -> None:
    """Take the last move of a reference back, or bring a deleted one back.

    Commits and table files stay until the move has left the reflog (90 days, setting reflog-expiry). Undoing again redoes.
    """
    call = Invocation.of(ctx)
    refuse_empty("nessie undo [REF]", reference)
    step = plan(call.repository(), reference or call.reference_name(), to)
    if step.after is None and call.workspace and call.workspace.current_reference() == step.name:
        raise InvalidInput(f"this would delete '{step.name}', the current reference of this workspace; `nessie switch` to another one first")
    expired = has_expired(call.repository(), step, call.now)
    done = _preview(step) if dry_run else step.act()
    if step.renamed and not dry_run:
        follow_rename(call, step.renamed, step.name)
    if expired:
        call.note(
            "table files of this commit may be gone: it is older than the reflog's expiry, so `nessie gc` does not keep them; "
            f"`nessie audit {step.name}` checks"
        )
    if call.wants_json:
        call.answer(encode_single_reference(done) | {"wasApplied": not dry_run, "before": step.before, "after": step.after})
        return
    _say(call, step, dry_run=dry_run)


def _preview(step: Step) -> Reference:
    return Reference(step.type, step.name, step.after or step.before or "")


def _say(call: Invocation, step: Step, *, dry_run: bool) -> None:
    words: list[Span | str] = [f"{'would be ' if dry_run else ''}{step.verb}: "]
    if step.renamed:
        words += [Span(step.renamed, "name"), " to ", Span(step.name, "name")]
    else:
        before, after = (Span(call.out.hash(side), "hash") if side else Span("nothing", "label") for side in (step.before, step.after))
        words += [Span(step.name, "name"), ": ", before, " -> ", after]
    call.say(*words)
    if not dry_run:
        call.note(f"`nessie undo {step.name}` takes this back")
