"""`nessie import --history`: a whole repository into a new store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from nessie_cli import reaching
from nessie_cli.cli.app.global_options import carried
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document, Result
from nessie_cli.cli.errors.resolutions import command_line
from nessie_cli.importing.history.importing import ImportedHistory, import_history
from nessie_cli.model import ReferenceType, type_label
from nessie_cli.render.text import counted
from nessie_cli.repository.store_repository import require_store
from nessie_cli.repository.urls import is_server
from nessie_cli.wire.scalars import Count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_ACCESS = "access."
_SHOWN = 10
"""The number of lines about single keys that are printed for people."""


class HistoryReference(Document, frozen=True):
    """A branch or tag that was imported, and its hash."""

    type: str
    name: str
    hash: str


class HistoryDocument(Document, frozen=True):
    """What was imported.

    `contents` are numbers of contents by type, and `leftOut` those of what was not imported.
    `duplicates` are content ids under several keys, with the command that repairs a branch.
    """

    source: str
    was_applied: bool
    default_branch: str
    commits: Count
    references: list[HistoryReference]
    contents: dict[str, int]
    left_out: dict[str, int]
    unreferenced: Count
    cut: list[str]
    adjustments: dict[str, int]
    duplicates: list[str]


class HistoryResult(Result, frozen=True):
    """An imported history, and the problems of its content ids as text."""

    history: ImportedHistory
    duplicates: tuple[str, ...]

    @property
    def document(self) -> HistoryDocument:
        """The JSON document."""
        done = self.history
        return HistoryDocument(
            done.source,
            not done.dry_run,
            done.default_branch,
            done.commits,
            [HistoryReference(each.type, each.name or "", each.hash) for each in done.references],
            dict(done.contents),
            dict(done.left_out),
            done.unreferenced,
            list(done.cut),
            structs.asdict(done.adjustments),
            list(self.duplicates),
        )

    @property
    def notes(self) -> Sequence[str]:
        """What was not imported, or differs from the source."""
        return list(_notes(self))


def run_history(
    app: Invocation, text: str, properties: Mapping[str, str], *, dry_run: bool
) -> HistoryResult:
    """Imports a history into the store itself: from a server, or an export."""
    repository = app.repository()
    store = require_store(
        repository,
        f"server {repository.url}: a history is imported into the store itself, where it is, by"
        " `nessie import SOURCE --history --store URL`",
    )
    if is_server(text):
        from nessie_cli.importing.history.server import ServerHistory

        source = reaching.opened(
            text, lambda name: properties.get(f"{_ACCESS}{name}"), lambda name: f"{_ACCESS}{name}"
        )
        with source:
            history = import_history(
                store, ServerHistory(source, source.url), app.at_work, dry_run=dry_run
            )
    else:
        from nessie_cli.importing.history.export_file import ExportFile

        export = ExportFile(Path(text))
        try:
            history = import_history(store, export, app.at_work, dry_run=dry_run)
        finally:
            export.close()
    return HistoryResult(history, tuple(_duplicates(history, app)))


def show_history(result: HistoryResult, output: Output) -> None:
    """Prints the counts."""
    done = result.history
    tags = sum(each.type is ReferenceType.TAG for each in done.references)
    parts = [
        counted(done.commits, "commit"),
        counted(len(done.references) - tags, "branch", "branches"),
        counted(tags, "tag"),
        *(f"{number:,} {type_label(name)}" for name, number in sorted(done.contents.items())),
    ]
    verb = "would import" if done.dry_run else "imported"
    output.say(f"{verb} {', '.join(parts)} from {done.source}")


def _duplicates(history: ImportedHistory, app: Invocation) -> Iterator[str]:
    for problem in history.duplicates:
        if problem.replaceable is None:
            yield problem.message
            continue
        branch, key = problem.replaceable
        replacement = ["content", "replace", "-m", "new content id", "--ref", branch]
        command = command_line(*carried(app.options), *replacement, "--", str(key))
        yield f"{problem.message}. Hint: `{command}` gives {key} a new content id"


def _notes(result: HistoryResult) -> Iterator[str]:
    done = result.history
    for what, number in sorted(done.left_out.items()):
        yield f"not imported: {number:,} {what}"
    if done.unreferenced:
        commits = counted(done.unreferenced, "commit")
        yield f"{commits} that no branch or tag reaches: not imported"
    if done.cut:
        yield (
            f"the source has deleted the history before {counted(len(done.cut), 'commit')}, which"
            " now begin with all contents of their state"
        )
    changed = done.adjustments
    for number, text in (
        (changed.raised_times, "a time after that of its parent"),
        (changed.without_effect, "no deletion of keys that did not exist"),
        (changed.lost_parents, "no merge parent that the source does not have"),
    ):
        if number:
            yield f"{counted(number, 'commit')} here: {text}"
    if changed.new_ids:
        yield f"{counted(changed.new_ids, 'content id')} that were no UUIDs are new"
    if not done.dry_run and done.contents.get("ICEBERG_TABLE"):
        yield (
            "`nessie gc` deletes no files of these tables until `nessie import --adopt '*'` says"
            " that the source is shut down. Engines may delete files of tables without"
            " gc.enabled=false"
        )
    yield from result.duplicates[:_SHOWN]
    if (more := len(result.duplicates) - _SHOWN) > 0:
        yield f"{counted(more, 'more content id')} under several keys, which --json lists"
