"""`nessie audit`."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from typing import Annotated

import typer
from msgspec import Struct

from nessie_cli.audit import findings
from nessie_cli.audit.findings import AuditCounts, FindingKind
from nessie_cli.cli.app.arguments import refuse_empty
from nessie_cli.cli.app.engines import Engine, EngineOption, chosen, spark_session
from nessie_cli.cli.app.global_options import GlobalOptions
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Listing, Records, Result
from nessie_cli.cli.audit.advice import advice
from nessie_cli.errors import ContentNotFound
from nessie_cli.model import ContentKey, KeyRange
from nessie_cli.render.spans import Column
from nessie_cli.render.text import counted
from nessie_cli.wire.contents import Key
from nessie_cli.wire.references import AnyReference, reference_struct
from nessie_cli.wire.scalars import Count
from nessie_cli.workspace.environment import of_s3

EXAMPLES = (
    "nessie audit",
    "nessie audit v1 --prefix db.sales",
    "nessie audit --prefix db.orders --json",
)
_COLUMNS = (
    Column("FINDING", "conflict"),
    Column("KEY", "key", "fold"),
    Column("FILE", room="fold"),
    Column("PROBLEM", room="fold"),
)


class Options(Struct, frozen=True, kw_only=True):
    """Check the files of every table and view at a revision.

    For Iceberg, reads the metadata file, and the manifest list of the snapshot that the catalog
    names. Checks that the manifests in this list exist and have the recorded size. The ids in the
    catalog (snapshot, schema, partition spec, sort order, view version) must be the current ones in
    the metadata file. Checks that the metadata and checkpoint files of Delta tables (not the last
    checkpoint) and the files of UDFs exist. Reports tables and views that share a UUID. Data files
    are not checked. The exit status is 1 if there are findings.
    """

    revision: Annotated[
        str | None,
        typer.Argument(metavar="[REV]", help="The revision to audit. Default: HEAD."),
    ] = None
    prefix: Annotated[
        str | None,
        typer.Option(
            "--prefix",
            metavar="PREFIX",
            help="Audit only this key and the keys below it. Fails if there are none.",
        ),
    ] = None
    engine: EngineOption = None


class Finding(Struct, rename="camel"):
    """A problem with the files of a content: which file, why, and how to repair it."""

    kind: FindingKind
    key: Key
    content_id: str
    where: str
    message: str
    advice: str

    @classmethod
    def of(cls, finding: findings.AuditFinding, options: GlobalOptions) -> "Finding":
        """Returns a finding with its advice."""
        where = (finding.where, finding.message, advice(finding, options))
        return cls(finding.kind, Key.of(finding.key), finding.content_id, *where)


class Audited(Listing, frozen=True, kw_only=True):
    """The problems of the files of all contents at a revision; `clean` if there are none.

    `files` were checked, of `withFiles` of the `contents`.
    """

    listing = "findings"
    clean: bool
    effective_reference: AnyReference
    contents: Count
    with_files: Count
    files: Count
    findings: Records[Finding]


class AuditedResult(Result, frozen=True):
    """The problems, and the counts, which are complete when all problems have been read."""

    document: Audited
    findings: Iterable[findings.AuditFinding]
    counts: AuditCounts

    @property
    def exit_code(self) -> int:
        """1 if anything is wrong."""
        return 0 if self.document.clean else 1


def run(options: Options, app: Invocation) -> AuditedResult:
    """Audits contents until the first finding. The others are found while the result is printed."""
    refuse_empty("nessie audit [REV] [--prefix PREFIX]", options.revision, options.prefix)
    prefix = ContentKey.parse(options.prefix) if options.prefix else None
    effective = app.repository().resolve(app.revision(options.revision))
    counts = AuditCounts()
    audit = _audit_with_spark if chosen(options.engine) is Engine.SPARK else _audit_here
    rest = audit(app, effective.hash, prefix, counts)
    first = list(islice(rest, 1))
    if prefix and not first and not counts.contents:
        raise ContentNotFound(f"no key is {prefix} or below it", prefix)
    every: Iterable[findings.AuditFinding] = chain(first, rest)
    if app.options.json:
        # The counts precede the findings in the document, so the audit must be complete.
        every = list(every)
    document = Audited(
        clean=not first,
        effective_reference=reference_struct(effective),
        contents=counts.contents,
        with_files=counts.with_files,
        files=counts.files,
        findings=(Finding.of(finding, app.options) for finding in every),
    )
    return AuditedResult(document, every, counts)


def show(result: AuditedResult, output: Output) -> None:
    """Prints a table with a row for each finding, and how to repair each kind."""
    ways: dict[str, str] = {}

    def rows() -> Iterator[tuple[str, str, str, str]]:
        for finding in result.findings:
            ways.setdefault(finding.kind.value, advice(finding, output.options))
            yield finding.kind.value, str(finding.key), finding.where, finding.message

    if result.document.clean:
        output.say(f"clean: {_summary(result.counts)}")
        return
    output.out.print_table(_COLUMNS, rows(), paged=True)
    for kind, way in ways.items():
        output.note(f"{kind}: {way}")
    output.note(_summary(result.counts))


def _summary(counts: AuditCounts) -> str:
    having = "has" if counts.with_files == 1 else "have"
    checked = "was" if counts.files == 1 else "were"
    of = f"{counts.with_files:,} of {counted(counts.contents, 'content')} {having} files"
    return f"{of}, {counted(counts.files, 'file')} {checked} checked"


def _audit_here(
    app: Invocation,
    at: str,
    prefix: ContentKey | None,
    counts: AuditCounts,
) -> Iterator[findings.AuditFinding]:
    from nessie_cli.audit.local import findings as local_findings
    from nessie_cli.iceberg.files import Files

    keys = KeyRange(prefix=prefix) if prefix else KeyRange()
    entries = app.repository().entries(f"@{at}", keys, content=True)
    with app.at_work("reading the files of tables") as progress:
        yield from local_findings(entries, counts, progress, Files(of_s3()))


def _audit_with_spark(
    app: Invocation,
    at: str,
    prefix: ContentKey | None,
    counts: AuditCounts,
) -> Iterator[findings.AuditFinding]:
    with spark_session(app, brief=True) as spark:
        from nessie_cli.spark import audited

        # Closed before the Spark session, because the caller may stop early.
        with closing(audited(spark, app.store.url(), at, prefix, counts)) as audit_findings:
            yield from audit_findings
