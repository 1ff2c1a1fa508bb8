"""Performs the plan of an import: the record first, then metadata files, then one commit.

So garbage collection knows every table before a commit names it, and a commit never names a file
that does not exist. An import that was interrupted is run again: it takes the files that are there.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from nessie_cli.errors import (
    InvalidInput,
    NessieError,
    NotAllowed,
    ReferenceConflict,
    SettingsUnsupported,
    StoreUnavailable,
)
from nessie_cli.iceberg.files import Files
from nessie_cli.importing.metadata_files import (
    cannot_write,
    write_copy,
)
from nessie_cli.importing.plan import (
    Action,
    ImportPlan,
    PlannedContent,
    PlanProblem,
    ProblemKind,
)
from nessie_cli.importing.planning import Planner
from nessie_cli.importing.reading import mapped
from nessie_cli.importing.records import ImportRecords
from nessie_cli.importing.selection import dotted, some
from nessie_cli.model import CommitMeta, CommitResult, ReferenceType
from nessie_cli.model.progress import Progress
from nessie_cli.repository.base import Repository

MOST_ATTEMPTS = 20
"""How often an import is planned while others change the same keys."""


class ImportTarget(Struct, frozen=True):
    """Where an import goes: a branch, the record of the source, and what messages call it."""

    branch: str
    record: str
    label: str


class Imported(Struct, frozen=True):
    """The result of an import.

    `result` is None if nothing was committed: because of problems, or because there was nothing to
    do, or for a dry run.
    """

    plan: ImportPlan
    result: CommitResult | None = None


class Importer:
    """Imports by plans of one planner. `meta` makes the metadata of the commit of a plan."""

    def __init__(
        self,
        repository: Repository,
        files: Files,
        planner: Planner,
        target: ImportTarget,
        meta: Callable[[ImportPlan], CommitMeta],
    ) -> None:
        self._repository = repository
        self._files = files
        self._planner = planner
        self._target = target
        self._meta = meta
        self._records = ImportRecords(repository)

    def plan(self, progress: Progress | None = None) -> ImportPlan:
        """Returns the plan for the present head of the branch."""
        head = self._repository.reference(self._target.branch)
        if head.type is not ReferenceType.BRANCH:
            raise InvalidInput(f"{head.name} is a tag; an import needs a branch")
        return self._planner.plan(head, self._records.get(self._target.record), progress)

    def perform(
        self,
        new_request_id: Callable[[], str],
        *,
        skip_invalid: bool,
        progress: Progress | None = None,
        writing: Progress | None = None,
    ) -> Imported:
        """Plans and imports. If the branch moves meanwhile, it plans again.

        With problems, nothing is imported, unless `skip_invalid` is set. Raises the errors of a
        commit. The copies of metadata files that are written by then stay, and the next import
        takes them: another branch or another repository may name the same copies already.
        """
        for attempt in count(1):
            plan = self.plan(progress)
            if plan.problems and not skip_invalid:
                return Imported(plan)
            try:
                imported = self._performed(
                    plan, new_request_id(), writing, skip_invalid=skip_invalid
                )
            except ReferenceConflict:
                if attempt == MOST_ATTEMPTS or self._is_at(plan.head.hash):
                    raise
            else:
                self._check_single(imported)
                return imported
        raise AssertionError

    def _is_at(self, hash_: str) -> bool:
        return self._repository.reference(self._target.branch).hash == hash_

    def _check_single(self, imported: Imported) -> None:
        """Raises `ReferenceConflict` if another import committed the same tables just before.

        A commit conflicts with changes of its own keys only, and the other import may have another
        prefix.
        """
        if imported.result is None:
            return
        commit = imported.result.reference.hash
        try:
            before = self._repository.commit_at(f"@{commit}", operations=False).parent
        except NotAllowed:
            # The caller may not list commits. The import is done, so it must not look refused.
            return
        if before == imported.plan.head.hash:
            return
        record = self._records.get(self._target.record)
        earlier = self._planner.plan(replace(imported.plan.head, hash=before), record)
        imports = {each.source.name for each in earlier.contents if each.action is Action.IMPORT}
        twice = [
            str(each.key)
            for each in imported.plan.committed
            if each.action is Action.IMPORT and each.source.name not in imports
        ]
        if twice:
            raise ReferenceConflict(
                f"another import into {self._target.branch} had the same contents at the same time,"
                f" so these have a second key now: {some(twice)}",
                hint=f"`nessie revert {commit[:12]} --ref {shlex.quote(self._target.branch)}` takes"
                " this import back",
            )

    def _performed(
        self, plan: ImportPlan, request_id: str, writing: Progress | None, *, skip_invalid: bool
    ) -> Imported:
        if plan.operations:
            # Refusals of the branch are found before anything is written.
            self._commit(plan, dry_run=True)
        self._put_rows(plan)
        problems = self._write_copies(plan.committed, writing)
        if problems:
            plan = plan.without([name for each in problems for name in each.names], problems)
            if not skip_invalid:
                return Imported(plan)
        if not plan.operations:
            return Imported(plan)
        if not self._is_at(plan.head.hash):
            # Another import may have brought the same contents under other keys.
            raise ReferenceConflict(f"{self._target.branch} moves while others write")
        return Imported(plan, self._commit(plan, request_id))

    def _commit(
        self, plan: ImportPlan, request_id: str | None = None, *, dry_run: bool = False
    ) -> CommitResult:
        return self._repository.commit(
            self._target.branch,
            plan.operations,
            self._meta(plan),
            expected_hash=plan.head.hash,
            request_id=request_id,
            dry_run=dry_run,
        )

    def _put_rows(self, plan: ImportPlan) -> None:
        """Writes the rows of the record. A server without settings takes adopted tables only."""
        rows = plan.rows
        if not rows:
            return
        try:
            self._records.put(self._target.record, self._target.label, rows)
        except SettingsUnsupported as error:
            if not all(row.adopted for row in rows):
                raise SettingsUnsupported(
                    f"{error.message}. So `nessie gc` could not know that another catalog may need"
                    " the files of these tables",
                    hint="--adopt '*' says that no other catalog writes them",
                ) from None

    def _write_copies(
        self, contents: Sequence[PlannedContent], progress: Progress | None
    ) -> list[PlanProblem]:
        """Writes the copies of metadata files that do not exist yet. Returns problems."""

        def write(each: PlannedContent) -> NessieError | None:
            try:
                write_copy(self._files, each.source)
            except (InvalidInput, StoreUnavailable) as error:
                return cannot_write(error)
            return None

        copies = [each for each in contents if each.is_copied]
        return [
            PlanProblem(
                ProblemKind.UNAVAILABLE,
                f"{dotted(each.source.name)}: {error.message}",
                (each.source.name,),
            )
            for each, error in mapped(write, copies, progress)
            if error is not None
        ]
