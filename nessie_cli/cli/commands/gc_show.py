"""`nessie gc show`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nessie_cli.cli.collecting import RunName, RunsFolder, base_documents, digest_of, document, finding_documents, next_step, runs, size, summary
from nessie_cli.cli.context import Invocation
from nessie_cli.errors import InvalidInput

if TYPE_CHECKING:
    from nessie_cli.gc.run import Run

EXAMPLES = ("nessie gc show", "nessie gc show 20260131T120000Z --candidates", "nessie gc show --kept --jsonl")


def gc_show(
    ctx: typer.Context,
    name: RunName = None,
    *,
    candidates: Annotated[bool, typer.Option("--candidates", help="List the files to be deleted.")] = False,
    kept: Annotated[bool, typer.Option("--kept", help="List the candidates that were not deleted when the run was applied, and why.")] = False,
    runs_folder: RunsFolder = None,
) -> None:
    """Show a run: its settings, what was found, how much is to be deleted below which location, and what could not be read."""
    call = Invocation.of(ctx)
    run = runs(call, runs_folder).open(name)
    if candidates and kept:
        raise InvalidInput("--candidates and --kept exclude each other: one listing at a time")
    if candidates:
        _listing(call, "candidates", _candidates(run), ("BYTES", "MODIFIED", "LOCATION"))
    elif kept:
        _listing(call, "kept", _kept(run), ("OUTCOME", "LOCATION", "WHY"))
    elif call.wants_json:
        call.answer({**document(run), "bases": base_documents(run), "findings": list(finding_documents(run))})
    else:
        _show(call, run)


def _candidates(run: "Run") -> Iterator[dict[str, Any]]:
    from nessie_cli.wire.encode import instant

    for row in run.dataset("candidates").records(["location", "size", "modified", "base"]):
        yield {"location": row["location"], "bytes": row["size"], "modified": instant(row["modified"]), "base": row["base"]}


def _kept(run: "Run") -> Iterator[dict[str, Any]]:
    for row in run.dataset("kept").records():
        yield {"location": row["location"], "outcome": row["outcome"], "message": row["message"]}


def _listing(call: Invocation, name: str, documents: Iterator[dict[str, Any]], headings: tuple[str, ...]) -> None:
    if call.wants_json:
        call.answer_listing(name, documents)
        return
    from nessie_cli.render.spans import Column

    names = {"BYTES": "bytes", "MODIFIED": "modified", "LOCATION": "location", "OUTCOME": "outcome", "WHY": "message"}
    columns = [Column(heading, "key" if heading == "LOCATION" else "", right=heading == "BYTES") for heading in headings]
    call.out.print_table(columns, ([str(found[names[heading]]) for heading in headings] for found in documents), paged=True)


def _show(call: Invocation, run: "Run") -> None:
    from nessie_cli.render.spans import Column

    info, settings = run.info, run.info.settings
    call.say(summary(run))
    lines = [
        ("store", settings.store),
        ("cut-off", ", ".join([*(f"{pattern}={policy}" for pattern, policy in settings.cutoffs), f"all others={settings.default_cutoff}"])),
        ("durations from", call.out.time(settings.reference_time)),
        ("references", f"{len(info.references):,}"),
    ]
    if info.references:
        lines.append(("reflog", f"{info.counts['positions']:,} positions" if "positions" in info.counts else "none: the server keeps none"))
    if settings.warehouse:
        lines += [
            ("warehouse", ", ".join(settings.warehouse)),
            ("grace", f"{settings.grace / 86400:g} days; {info.counts.get('young', 0):,} files are younger"),
        ]
    if digest := digest_of(run):
        lines.append(("digest", digest))
    if approval := run.approval():
        lines.append(
            ("approved by", f"{approval.by}, {call.out.time(approval.time)}" + ("" if approval.digest == digest else ", for other candidates"))
        )
    if info.error:
        lines.append(("error", info.error))
    for label, text in lines:
        call.say(f" {label:16}{text}")
    if bases := base_documents(run):
        columns = (Column("FILES", right=True), Column("BYTES", right=True), Column("BELOW", "key"))
        call.out.print_table(columns, ((f"{base['files']:,}", size(base["bytes"]), base["base"]) for base in bases))
    for found in finding_documents(run):
        call.say(f"{found['kind'].lower()}: {found['key'] or found['base'] or found['location']}: {found['message']}")
    if step := next_step(run):
        call.note(f"next: {step}")
