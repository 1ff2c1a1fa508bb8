"""Marking and planning a run, in this process or on Spark."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

from nessie_cli.cli.app.engines import Engine, chosen, spark_session
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.progress import Report
from nessie_cli.errors import InvalidInput
from nessie_cli.gc.apply import Revived
from nessie_cli.gc.run import ForeignLocation, MarkDatasets, Run, RunSettings
from nessie_cli.gc.staged import staged_states
from nessie_cli.iceberg.filesystems import properties_of
from nessie_cli.repository.base import Repository
from nessie_cli.workspace.environment import of_s3

if TYPE_CHECKING:
    from nessie_cli.gc.mark import Marked
    from nessie_cli.gc.marker import RepositoryMarker


def need_packages(engine: Engine) -> None:
    """Raises `ModuleNotFoundError` if a package that every run of the engine needs is missing."""
    for name in (
        "pyarrow",
        "fastavro",
        "pyiceberg",
        *(["pyspark"] if engine is Engine.SPARK else []),
    ):
        import_module(name)


class Worker:
    """Marks and plans a run with its engine. Implements `Marker`.

    Raises `InvalidInput` if the run belongs to another store than that of the invocation.
    """

    def __init__(self, app: Invocation, run: Run, engine: Engine | None, progress: Report) -> None:
        self._app = app
        self._run = run
        self._progress = progress
        self._settings = run.info.settings
        self._spark = chosen(engine, Engine(self._settings.engine)) is Engine.SPARK
        self._repository = app.repository()
        if self._repository.url != self._settings.store:
            raise InvalidInput(
                f"run {run.id} belongs to the store {self._settings.store}, not to"
                f" {self._repository.url}"
            )

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the file systems."""
        return of_s3() | properties_of(self._settings.catalog)

    @cached_property
    def _marker(self) -> "RepositoryMarker":
        from nessie_cli.gc.marker import RepositoryMarker

        workspace = self._app.store.workspace
        return RepositoryMarker(
            self._repository,
            self._settings,
            self.properties,
            self._progress,
            staged=lambda: staged_states(workspace) if workspace else (),
            engine=self._mark,
        )

    def _mark(
        self,
        repository: Repository,
        settings: RunSettings,
        marks: MarkDatasets,
        properties: Mapping[str, str],
        progress: Report,
    ) -> "Marked":
        if not self._spark:
            from nessie_cli.gc.mark import mark

            return mark(repository, settings, marks, properties, progress)
        from nessie_cli.spark import gc_mark

        with spark_session(self._app):
            marked: Marked = gc_mark(repository, settings, marks, properties, progress)
        return marked

    def verify(self) -> int | None:
        """Verifies the store. Prints a remark if it cannot be verified from here."""
        verified = self._marker.verify()
        if verified is None:
            self._app.output.note(
                f"{self._repository.url}: clients cannot verify the store of a server. Hint: run"
                " `nessie fsck` on the server's store first"
            )
        return verified

    def mark(self, marks: MarkDatasets) -> "Marked":
        """Marks the files that are live now."""
        return self._marker.mark(marks)

    def revived(self) -> Iterator[Revived]:
        """Yields files that have become live since the mark or the last call."""
        return self._marker.revived()

    def foreign(self) -> Sequence[ForeignLocation]:
        """Returns the locations of tables that another catalog may write now."""
        return self._marker.foreign()

    def plan(self) -> Mapping[str, int]:
        """Finds the candidates of the run, and returns counts."""
        settings = self._run.info.settings
        if not self._spark:
            from nessie_cli.gc.plan import plan

            return plan(self._run, settings, self.properties, self._progress)
        from nessie_cli.spark import gc_plan

        with spark_session(self._app):
            counts: Mapping[str, int] = gc_plan(
                self._run, settings, self.properties, self._progress
            )
        return counts
