"""What a command does not reach through its environment: refused, or warned about by name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from nessie_cli.errors import InvalidInput
from nessie_cli.runs.environment import pyiceberg_variables
from nessie_cli.runs.environment.access import RunAccess
from nessie_cli.runs.environment.programs import Program
from nessie_cli.runs.environment.spark_folder import SparkInstallation
from nessie_cli.runs.environment.spark_settings import (
    COMMANDS,
    DEFAULT_CATALOG,
    SparkArguments,
    arguments_of,
    catalog_uris,
    decides_catalog,
    settings_file,
    spark_arguments,
)
from nessie_cli.workspace.credentials import endpoint, is_loopback
from nessie_cli.workspace.files import read_text

_SERVER_SIDE = {"beeline": "Spark's Thrift server", "trino": "Trino", "trino-cli": "Trino"}
"""Clients of servers that have catalogs of their own."""
_ELSEWHERE = frozenset({"docker", "kubectl", "podman", "ssh", "sudo"})
"""Programs that start others without this environment."""
_DUCKDB = "NESSIE_RUN_DUCKDB"
_SPECIFICATIONS = ("spark-pipeline.yaml", "spark-pipeline.yml")


class Reach:
    """Decides whether a command reaches the branch of its run."""

    def __init__(
        self,
        access: RunAccess,
        program: Program,
        inherited: Mapping[str, str],
        installation: SparkInstallation,
        working_folder: Path,
    ) -> None:
        self._access = access
        self._program = program
        self._environment = {} if program.clears else dict(inherited)
        for name, value in program.changes.items():
            if value is None:
                self._environment.pop(name, None)
            else:
                self._environment[name] = value
        self._installation = installation
        self._folder = working_folder
        self._is_spark = program.name in COMMANDS
        self._arguments = self._spark_arguments()

    def _spark_arguments(self) -> SparkArguments:
        """Returns what Spark reads: of its own command, otherwise of PYSPARK_SUBMIT_ARGS."""
        if self._is_spark:
            return arguments_of(self._program)
        try:
            arguments = shlex.split(self._environment.get("PYSPARK_SUBMIT_ARGS", ""))
        except ValueError:
            arguments = []
        return spark_arguments(arguments, mixed=False)

    def check(self, variables: Mapping[str, str | None]) -> None:
        """Raises `InvalidInput` if the command would silently work beside the branch."""
        program = self._program
        if program.clears:
            raise InvalidInput(
                "the command does not reach the branch of the run: `env -i` removes its variables",
                hint="remove -i",
            )
        if own := sorted(name for name in program.changes if variables.get(name) is not None):
            raise InvalidInput(
                f"the command does not reach the branch of the run: it changes {own[0]} itself",
                hint=f"remove {own[0]} from the command",
            )
        if server := _SERVER_SIDE.get(program.name):
            raise InvalidInput(
                f"{program.name} does not reach the branch of a run: the catalogs of {server} are"
                " configured at its server",
                hint="run the statements with Spark, DuckDB or PyIceberg",
            )
        if self._is_spark or program.is_python:
            self._check_spark()

    def _check_spark(self) -> None:
        place = self._program.name if self._is_spark else "PYSPARK_SUBMIT_ARGS:"
        options = self._arguments.options
        if "--properties-file" in options and "--load-spark-defaults" not in options:
            raise InvalidInput(
                f"{place} --properties-file does not reach the branch of the run: Spark then"
                " ignores spark-defaults.conf, which has the run's catalog",
                hint="add --load-spark-defaults (since Spark 4.0)",
            )
        self._check_remote(place)
        if self._is_cluster() and is_loopback(self._access.api):
            raise InvalidInput(
                f"{place} --deploy-mode cluster does not reach the branch of the run: its server"
                " accepts connections of this machine only",
                hint="use --deploy-mode client, or a shared server (docs/guides/shared-server.md)",
            )
        for key, value, source in self._explicit_settings(place):
            if decides_catalog(key, self._access.catalog):
                raise InvalidInput(
                    f"{source} sets {key}, which replaces the catalog of the run",
                    hint="remove the setting; the run sets the catalog",
                )
            if key == DEFAULT_CATALOG and value != self._access.catalog:
                raise InvalidInput(
                    f"{source} sets {key}={value}, so names without a catalog are not those of"
                    " the run's branch",
                    hint="remove the setting, or give the setting run.catalog this name",
                )

    def _check_remote(self, place: str) -> None:
        remote, source = self._arguments.options.get("--remote", ""), f"{place} --remote"
        # spark-pipelines passes an address of its own.
        if not remote and self._program.name != "spark-pipelines":
            remote, source = self._environment.get("SPARK_REMOTE", ""), "SPARK_REMOTE"
        if remote and not remote.startswith("local"):
            raise InvalidInput(
                f"{source} does not reach the branch of the run: the catalogs of a remote Spark"
                " Connect server are configured there",
                hint="remove it to start Spark on this machine",
            )

    def _is_cluster(self) -> bool:
        key = "spark.submit.deployMode"
        defaults = {entry.key: entry.value for entry in self._installation.defaults}
        mode = self._arguments.options.get("--deploy-mode") or self._arguments.settings.get(key)
        return (mode or defaults.get(key)) == "cluster"

    def _explicit_settings(self, place: str) -> Iterator[tuple[str, str, str]]:
        """Yields key, value and place of settings that take precedence over the defaults."""
        for key, value in self._arguments.settings.items():
            yield key, value, f"{place} --conf"
        if path := self._arguments.options.get("--properties-file"):
            for entry in settings_file(self._folder / path):
                yield entry.key, entry.value, path
        if self._program.name == "spark-pipelines" and (specification := self._specification()):
            for key, value in _entries(specification):
                yield key, value, str(specification)

    def _specification(self) -> Path | None:
        """Returns the file that spark-pipelines reads, the nearest one above if none is named."""
        arguments = list(self._program.arguments)
        for index, word in enumerate(arguments):
            if word == "--spec" and index + 1 < len(arguments):
                return self._folder / arguments[index + 1]
            if word.startswith("--spec="):
                return self._folder / word.removeprefix("--spec=")
        folders = (self._folder, *self._folder.parents)
        paths = (folder / name for folder in folders for name in _SPECIFICATIONS)
        return next((path for path in paths if path.is_file()), None)

    def warnings(self) -> Iterator[str]:
        """Yields what the command may miss, one sentence each."""
        program, access = self._program, self._access
        if program.name in _ELSEWHERE:
            yield (
                f"{program.name} starts programs without the environment of the run:"
                " pass the variables of `nessie run --print-env` to them"
            )
        yield from self._names()
        if self._is_spark:
            yield from self._spark_warnings()
        elif not program.is_python:
            # The program may start Spark.
            try:
                self._check_spark()
            except InvalidInput as error:
                yield error.message
        if program.name == "duckdb" and not any(_DUCKDB in word for word in program.arguments):
            yield (
                f"duckdb reads no environment: start it with -init and the file that {_DUCKDB}"
                f" names, otherwise it does not know the catalog {access.catalog}"
            )
        if program.name == "sqlmesh":
            yield "a run does not undo SQLMesh's own state: give each run its own state database"

    def _names(self) -> Iterator[str]:
        """Yields what the names of catalogs lead to."""
        access = self._access
        if "_" in access.catalog:
            yield (
                f"PyIceberg finds no catalog with _ in its name in the environment: use"
                f" load_catalog() without a name instead of load_catalog({access.catalog!r})"
            )
        own = {access.catalog.lower(), pyiceberg_variables.pyiceberg_name(access.catalog)}
        settings = [(entry.key, entry.value) for entry in self._installation.defaults]
        uris = (*catalog_uris(settings), *pyiceberg_variables.catalog_uris(self._environment))
        server = endpoint(access.api)
        for name in sorted({name for name, uri in uris if endpoint(uri) == server}):
            if name.lower() not in own:
                yield (
                    f"the catalog {name} is on the same server, but not on the branch of the run:"
                    f" the run sets only {access.catalog} (setting run.catalog)"
                )

    def _spark_warnings(self) -> Iterator[str]:
        access = self._access
        defaults = {entry.key: entry.value for entry in self._installation.defaults}
        if defaults.get(DEFAULT_CATALOG, access.catalog) != access.catalog:
            yield (
                f"spark-defaults.conf has the default catalog {defaults[DEFAULT_CATALOG]}; in the"
                f" run, names without a catalog are those of {access.catalog} (setting run.catalog)"
            )
        if not self._has_iceberg(defaults):
            yield (
                "Spark has no Iceberg runtime in its settings: add"
                " `spark.jars.packages org.apache.iceberg:iceberg-spark-runtime-...` for your"
                " version of Spark to spark-defaults.conf"
            )
        is_complete = "--full-refresh-all" in self._program.arguments
        if self._program.name == "spark-pipelines" and not is_complete:
            yield (
                "a run does not undo the checkpoints in the pipeline's storage: after a run that"
                " is not published, use --full-refresh-all"
            )

    def _has_iceberg(self, defaults: Mapping[str, str]) -> bool:
        if self._installation.has_iceberg or self._installation.home is None:
            return True
        options = self._arguments.options
        settings = {**defaults, **{key: text for key, text, _ in self._explicit_settings("")}}
        keys = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
        sources: Sequence[str | None] = (
            *(options.get(name) for name in ("--jars", "--packages", "--driver-class-path")),
            *(settings.get(key) for key in keys),
            self._environment.get("SPARK_DIST_CLASSPATH"),
        )
        return any("iceberg" in source for source in sources if source)


def _entries(specification: Path) -> Iterator[tuple[str, str]]:
    """Yields the settings of Spark in the specification of a pipeline, and its default catalog.

    Only those that have a line of their own.
    """
    for line in (read_text(specification) or "").splitlines():
        if entry := re.fullmatch(r"\s*[\"']?(spark\.[^\s:\"']+)[\"']?:\s*[\"']?(.*?)[\"']?", line):
            yield entry[1], entry[2]
        elif entry := re.fullmatch(r"catalog:\s*[\"']?([^\s\"'#]+)[\"']?.*", line):
            yield DEFAULT_CATALOG, entry[1]
