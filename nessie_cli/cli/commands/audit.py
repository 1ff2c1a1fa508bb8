"""`nessie audit`."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Annotated

import typer

from nessie_cli.audit.findings import Counts, Finding
from nessie_cli.cli.auditing import advice, encode_finding
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.engines import Engine, EngineOption, chosen, spark_session
from nessie_cli.cli.words import refuse_empty
from nessie_cli.model import ContentKey, KeyRange

EXAMPLES = ("nessie audit", "nessie audit v1 --prefix db.sales", "nessie audit --prefix db.orders --json")
SOMETHING_FOUND = 1


def audit(
    ctx: typer.Context,
    revision: Annotated[
        str | None, typer.Argument(metavar="[REV]", help="The state to audit; HEAD, when it is left out.", show_default=False)
    ] = None,
    *,
    prefix: Annotated[str | None, typer.Option("--prefix", metavar="PREFIX", help="Only this key and what is below it.")] = None,
    engine: EngineOption = None,
) -> None:
    """Check the files of every table and view: metadata, snapshot, manifest list, manifests, and that all ids agree.

    Data files are not looked at. Exits with 1 and the list when something is wrong. Out of a terminal a line is: kind, key, file, what is wrong.
    """
    call = Invocation.of(ctx)
    refuse_empty("nessie audit [REV] [--prefix PREFIX]", revision, prefix)
    within = ContentKey.parse(prefix) if prefix else None
    effective = call.repository().resolve(call.revision(revision))
    counts = Counts()
    with _findings(call, chosen(engine), effective.hash, within, counts) as found:
        first = next(found, None)
        if call.wants_json:
            from nessie_cli.wire.encode import encode_reference

            every = map(encode_finding, _all(first, found))
            # Whether there are any, and how much was looked at, stands before them: they are few, compared with what was looked at.
            documents = every if call.options.jsonl else iter(list(every))
            looked_at = {"contents": counts.contents, "withFiles": counts.with_files, "files": counts.files}
            call.answer_listing("findings", documents, clean=first is None, effectiveReference=encode_reference(effective), **looked_at)
        elif first is not None:
            _print(call, _all(first, found))
    if not call.wants_json:
        _say(call, counts, clean=first is None)
    if first is not None:
        raise typer.Exit(SOMETHING_FOUND)


@contextmanager
def _findings(call: Invocation, engine: Engine, at: str, prefix: ContentKey | None, counts: Counts) -> Iterator[Iterator[Finding]]:
    if engine is Engine.SPARK:
        with spark_session(call, brief=True) as spark:
            from nessie_cli.spark import audited

            # Closed before the session is: whoever takes findings may stop in the middle.
            with closing(audited(spark, call.store_url(), at, prefix, counts)) as told:
                yield told
        return
    from nessie_cli.audit.local import findings
    from nessie_cli.cli.heard import progress_of

    keys = KeyRange(prefix=prefix) if prefix else KeyRange()
    entries = call.repository().entries(f"@{at}", keys, content=True)
    with progress_of(call, "reading the files of tables") as tell, closing(findings(entries, counts, tell)) as found:
        yield found


def _all(first: Finding | None, rest: Iterator[Finding]) -> Iterator[Finding]:
    if first is not None:
        yield first
    yield from rest


def _print(call: Invocation, found: Iterator[Finding]) -> None:
    from nessie_cli.render.spans import Column

    columns = (Column("FINDING", "conflict"), Column("KEY", "key", "fold"), Column("FILE", room="fold"), Column("WHAT", room="fold"))
    ways: dict[str, str] = {}

    def rows() -> Iterator[tuple[str, str, str, str]]:
        for finding in found:
            ways.setdefault(finding.kind.value, advice(finding))
            yield finding.kind.value, str(finding.key), finding.where, finding.message

    call.out.print_table(columns, rows(), paged=True)
    for kind, way in ways.items():
        call.note(f"{kind}: {way}")


def _say(call: Invocation, counts: Counts, *, clean: bool) -> None:
    looked_at = f"{counts.with_files:,} of {counts.contents:,} contents have files, {counts.files:,} files were looked at"
    if clean:
        call.say(f"clean: {looked_at}")
    else:
        call.note(looked_at)
