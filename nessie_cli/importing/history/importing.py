"""Imports a history: reads the source, writes the commits, compares, and creates references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

from msgspec import Struct, structs

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.locations import probable_location
from nessie_cli.importing.history.source import HistorySource
from nessie_cli.importing.history.spool import CommitSpool
from nessie_cli.importing.records import ImportRecords
from nessie_cli.model import (
    NO_ANCESTOR,
    Entry,
    IcebergTable,
    IcebergView,
    ImportedTable,
    LogEntry,
    Operation,
    Problem,
    Put,
    Reference,
)
from nessie_cli.model.progress import Progress
from nessie_cli.repository.history_writer import Adjustments, HistoryWriter
from nessie_cli.repository.store_repository import StoreRepository

AtWork = Callable[[str], AbstractContextManager[Progress]]
"""Begins an activity and shows its progress; `Invocation.at_work` is one."""


_CUT = "[updated to remove parents on "
"""Begins the text that the original appends to the message of a commit without its parents."""


class ImportedHistory(Struct, frozen=True, kw_only=True):
    """What an import of a history wrote, or would write.

    `references` have their hashes in the target, or those of the source in a dry run. `contents`
    counts distinct contents by type, and `left_out` what was not imported. `unreferenced` counts
    commits of the source that no reference reaches. `cut` are hashes of first commits whose
    earlier history the source has deleted. `duplicates` are content ids under several keys; those
    of branches have a repair (`Problem.replaceable`). `default_branch` is that of the source. A dry
    run finds no duplicates, and makes no adjustments.
    """

    source: str
    default_branch: str
    commits: int
    references: Sequence[Reference]
    contents: Mapping[str, int]
    left_out: Mapping[str, int]
    unreferenced: int
    cut: Sequence[str]
    adjustments: Adjustments
    duplicates: Sequence[Problem] = ()
    dry_run: bool = False


def import_history(
    target: StoreRepository, source: HistorySource, at_work: AtWork, *, dry_run: bool = False
) -> ImportedHistory:
    """Imports all references of a source with all commits that they reach.

    Commits keep message, people, times, properties, parents and operations. Their hashes are new,
    and the property `nessie.imported-hash` has the old one. Contents keep their ids. All references
    are created in one write at the end: an import that fails or is interrupted leaves the target
    as it was, apart from the record of its tables, and unreachable objects, which `store maintain`
    deletes.

    Raises `AlreadyExists` or `InvalidInput` for all names that the target cannot take, before any
    commit is read. Raises the errors of the source, and `InvalidInput` if a state in the target is
    not that of the source, or if an export lacks the contents of deleted commits. Needs a temporary
    file for all commits, and about 500 bytes of memory for each.
    """
    listed = source.references()
    references = listed.references
    writer = target.history_writer()
    writer.check_names(references)
    with CommitSpool() as spool:
        with at_work("reading commits") as progress:
            for entry in source.commits(references, progress):
                if entry.hash in spool:
                    raise InvalidInput(
                        f"{source.label} has commit {entry.hash} twice",
                        hint="export again: it is damaged",
                    )
                spool.add(entry)
        heads = list(dict.fromkeys(reference.hash for reference in references))
        _check_heads(references, spool)
        order = list(spool.in_order(heads))
        cut = _complete_beginnings(source, spool, order)
        result = ImportedHistory(
            source=source.label,
            default_branch=listed.default_branch,
            commits=len(order),
            references=references,
            contents={},
            left_out=source.left_out(),
            unreferenced=len(spool) - len(order),
            cut=cut,
            adjustments=writer.adjustments,
            dry_run=dry_run,
        )
        if dry_run:
            return structs.replace(result, contents=_count_contents(spool, order))
        with at_work("writing commits") as progress:
            tables: dict[str, ImportedTable] = {}
            for number, hash_ in enumerate(order):
                progress(number, len(order))
                entry = spool.read(hash_)
                writer.write(entry)
                tables |= _tables(entry)
            writer.flush()
    with at_work("comparing states") as progress:
        for number, head in enumerate(heads):
            progress(number, len(heads))
            _compare(source, writer, head)
    with at_work("looking for content ids under several keys"):
        duplicates = list(writer.duplicates(references))
    if tables:
        # Before the references, so garbage collection never sees the tables without the record.
        ImportRecords(target).put(source.label, source.label, list(tables.values()))
    writer.publish(references, listed.messages)
    return structs.replace(
        result,
        references=[
            structs.replace(reference, hash=writer.hash_of(reference.hash), metadata=None)
            for reference in references
        ],
        contents=writer.contents,
        duplicates=duplicates,
    )


def _check_heads(references: Iterable[Reference], spool: CommitSpool) -> None:
    for reference in references:
        if reference.hash != NO_ANCESTOR and reference.hash not in spool:
            raise InvalidInput(
                f"reference '{reference.name}' of the source is at commit {reference.hash},"
                " which the source does not have"
            )


# -- history that the source has deleted -----------------------------------------------------------


def _complete_beginnings(
    source: HistorySource, spool: CommitSpool, order: Sequence[str]
) -> list[str]:
    """Adds contents of deleted commits to first commits. Returns the hashes of these commits.

    The original server can cut its history off: the first commit then has no parents, but its
    state has contents of the deleted commits. Raises `InvalidInput` if the source has no states.
    """
    used = set(order)
    cut = []
    for hash_ in spool.beginnings():
        if hash_ not in used:
            continue
        entry = spool.read(hash_)
        is_cut = entry.parent != NO_ANCESTOR or _CUT in entry.meta.message
        state = source.state(hash_)
        if state is None:
            if is_cut:
                raise InvalidInput(
                    f"{source.label}: the history before commit {hash_} was deleted, and the export"
                    " does not have the contents of these commits",
                    hint="import from the server itself, which has them",
                )
            continue
        completed = _completed(state, entry)
        if completed is not entry:
            spool.add(completed)
        if is_cut or completed is not entry:
            cut.append(hash_)
    return cut


def _completed(state: Iterable[Entry], entry: LogEntry) -> LogEntry:
    """Returns a first commit with an operation for each content of its state."""
    operations = entry.operations or ()
    changed = {operation.key for operation in operations}
    missing: list[Operation] = [
        Put(listed.key, listed.content.with_id(listed.content_id))
        for listed in state
        if listed.key not in changed and listed.content is not None
    ]
    return LogEntry(entry.meta, 0, (*operations, *missing)) if missing else entry


# -- results ---------------------------------------------------------------------------------------


def _tables(entry: LogEntry) -> dict[str, ImportedTable]:
    """Returns the tables and views that a commit wrote, by the folders that the source may use."""
    tables = {}
    for operation in entry.operations or ():
        content = operation.content if isinstance(operation, Put) else None
        if isinstance(content, IcebergTable | IcebergView):
            file, key = content.metadata_location, operation.key
            place = probable_location(file)
            tables[place] = ImportedTable(key.elements, key, place, file, file)
    return tables


def _count_contents(spool: CommitSpool, order: Iterable[str]) -> dict[str, int]:
    contents: dict[str, set[str]] = {}
    for hash_ in order:
        for operation in spool.read(hash_).operations or ():
            if isinstance(operation, Put):
                content = operation.content
                contents.setdefault(content.type_name, set()).add(content.id or "")
    return dict(sorted(Counter({type_: len(ids) for type_, ids in contents.items()}).items()))


def _compare(source: HistorySource, writer: HistoryWriter, head: str) -> None:
    """Raises `InvalidInput` unless the state of a head is that of the source.

    Does nothing if the source has no states.
    """
    theirs = source.state(head) if head != NO_ANCESTOR else None
    if theirs is None:
        return
    expected = {entry.key: _fingerprint(writer, entry) for entry in theirs}
    wrong = [
        entry.key
        for entry in writer.entries(head)
        if expected.pop(entry.key, None) != hash(entry.cache_key)
    ]
    wrong += expected
    if wrong:
        keys = ", ".join(map(str, wrong[:5]))
        raise InvalidInput(
            f"the state at commit {head} of the source does not follow from its history:"
            f" {len(wrong)} keys differ, such as {keys}"
        )


def _fingerprint(writer: HistoryWriter, entry: Entry) -> int:
    return hash(f"{writer.content_id_of(entry.content_id)}:{entry.value_hash}")
