"""What a command line, a properties file and spark-defaults.conf set for Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from nessie_cli.runs.environment.programs import Program
from nessie_cli.runs.environment.properties import Property, read_properties
from nessie_cli.workspace.files import read_text

DEFAULTS = "spark-defaults.conf"
DEFAULT_CATALOG = "spark.sql.defaultCatalog"
EXTENSIONS = "spark.sql.extensions"
COMMANDS = frozenset(
    {"pyspark", "spark-pipelines", "spark-shell", "spark-sql", "spark-submit", "sparkR"}
)
"""The commands of Spark that read its configuration folder."""

_WITHOUT_VALUE = frozenset(
    {
        "--help",
        "-h",
        "--load-spark-defaults",
        "--supervise",
        "--usage-error",
        "--verbose",
        "-v",
        "--version",
    }
)
_WITH_VALUE = frozenset(
    {
        "--archives",
        "--class",
        "--conf",
        "-c",
        "--deploy-mode",
        "--driver-class-path",
        "--driver-cores",
        "--driver-default-class-path",
        "--driver-java-options",
        "--driver-library-path",
        "--driver-memory",
        "--exclude-packages",
        "--executor-cores",
        "--executor-memory",
        "--files",
        "--jars",
        "--keytab",
        "--kill",
        "--master",
        "--name",
        "--num-executors",
        "--packages",
        "--principal",
        "--properties-file",
        "--proxy-user",
        "--py-files",
        "--queue",
        "--remote",
        "--repositories",
        "--status",
        "--total-executor-cores",
    }
)
"""Options of spark-submit, those of SparkSubmitOptionParser in Spark 4.1."""

_STORAGE = re.compile(
    r"(io-impl|default-namespace|metrics-reporter-impl|(s3|gcs|adls|oss|client|http-client|hadoop|"
    r"table-default|table-override|view-default|view-override)\..+)"
)
"""Settings of a catalog that say how files are reached, not which catalog it is."""


class SparkArguments(NamedTuple):
    """The arguments of a Spark command that Spark itself reads."""

    options: Mapping[str, str]
    """Options by name; of several, the last one. An option without a value has an empty one."""
    settings: Mapping[str, str]
    """The settings of `--conf`."""


def spark_arguments(arguments: Sequence[str], *, mixed: bool) -> SparkArguments:
    """Returns what Spark reads of its arguments.

    The application's arguments follow its first word, unless they are `mixed` with Spark's.
    """
    options: dict[str, str] = {}
    settings: dict[str, str] = {}
    for name, value in _options(arguments, mixed=mixed):
        if name in {"--conf", "-c"}:
            key, _, setting = value.partition("=")
            settings[key] = setting
        options[name] = value
    return SparkArguments(options, settings)


def arguments_of(program: Program) -> SparkArguments:
    """Returns the arguments of one of Spark's commands."""
    return spark_arguments(program.arguments, mixed=program.name != "spark-submit")


def _options(arguments: Sequence[str], *, mixed: bool) -> Iterator[tuple[str, str]]:
    rest = iter(arguments)
    for word in rest:
        name, has_value, value = word.partition("=")
        if has_value and name in _WITH_VALUE and word.startswith("--"):
            yield name, value
        elif word in _WITH_VALUE:
            yield word, next(rest, "")
        elif word in _WITHOUT_VALUE:
            yield word, ""
        elif not mixed:
            return


def settings_file(path: Path) -> Sequence[Property]:
    """Returns the settings of a properties file; none if it does not exist.

    Raises `InvalidInput` or `NotAllowed` if it cannot be read.
    """
    return [entry for entry in read_properties(read_text(path) or "") if entry.key]


def decides_catalog(key: str, catalog: str) -> bool:
    """Returns whether a setting decides which catalog a name stands for."""
    name = f"spark.sql.catalog.{catalog}"
    return key == name or (
        key.startswith(f"{name}.") and not _STORAGE.fullmatch(key.removeprefix(f"{name}."))
    )


def catalog_uris(settings: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yields the name and the URI of each catalog that is configured with one."""
    for key, value in settings:
        if name := re.fullmatch(r"spark\.sql\.catalog\.([^.]+)\.uri", key):
            yield name[1], value
