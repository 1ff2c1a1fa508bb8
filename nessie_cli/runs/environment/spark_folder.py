"""A private copy of the user's configuration folder of Spark, with the catalog of the run.

The variable SPARK_CONF_DIR replaces the whole folder, so the copy links to every other file of it:
https://spark.apache.org/docs/latest/configuration.html#overriding-configuration-directory
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from nessie_cli.runs.environment.access import RunAccess
from nessie_cli.runs.environment.files import private_file, private_folder
from nessie_cli.runs.environment.programs import Program
from nessie_cli.runs.environment.properties import Property, property_line
from nessie_cli.runs.environment.spark_settings import (
    COMMANDS,
    DEFAULT_CATALOG,
    DEFAULTS,
    EXTENSIONS,
    decides_catalog,
    settings_file,
)

ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_ENVIRONMENT = "spark-env.sh"


class SparkInstallation(NamedTuple):
    """The Spark that a command would use."""

    home: Path | None
    configuration: Path | None
    """The user's configuration folder, if there is one."""
    defaults: Sequence[Property]
    """The entries of its spark-defaults.conf."""

    @property
    def has_iceberg(self) -> bool:
        """Whether Iceberg's runtime is among the jars of the installation."""
        return self.home is not None and any((self.home / "jars").glob("iceberg-spark-*.jar"))


def spark_installation(program: Program, inherited: Mapping[str, str]) -> SparkInstallation:
    """Returns the installation that Spark's own scripts would find, without starting them."""
    home = _home(program, inherited)
    named = inherited.get("SPARK_CONF_DIR")
    folder = Path(named) if named else home / "conf" if home else None
    if folder is None or not folder.is_dir():
        return SparkInstallation(home, None, ())
    return SparkInstallation(home, folder, settings_file(folder / DEFAULTS))


def _home(program: Program, inherited: Mapping[str, str]) -> Path | None:
    if named := inherited.get("SPARK_HOME"):
        return Path(named)
    own = [program.path] if program.is_python or program.name in COMMANDS else []
    for name in (*own, "spark-submit"):
        if path := shutil.which(name, path=inherited.get("PATH")):
            # The Python of a virtual environment is a link out of it.
            for place in (Path(path).absolute(), Path(path).resolve()):
                if home := _home_at(place.parents[1]):
                    return home
    return None


def _home_at(root: Path) -> Path | None:
    """Returns Spark itself, or the PySpark of a Python installation."""
    candidates = (root, *sorted(root.glob("lib/python*/site-packages/pyspark")))
    return next((path for path in candidates if (path / "jars").is_dir()), None)


def write_spark_folder(folder: Path, access: RunAccess, installation: SparkInstallation) -> None:
    """Writes the configuration folder of a run. Raises `StoreUnavailable` if writing fails."""
    private_folder(folder, is_empty=True)
    private_file(folder / DEFAULTS, _defaults(access, installation.defaults))
    user = installation.configuration
    if user is None:
        return
    for path in sorted(user.absolute().iterdir()):
        if path.name == _ENVIRONMENT:
            private_file(folder / _ENVIRONMENT, _environment(path, folder))
        elif path.name != DEFAULTS:
            (folder / path.name).symlink_to(path)


def _environment(path: Path, folder: Path) -> str:
    """Returns a script that runs the user's, which may name another configuration folder."""
    # Spark exports every variable that the script sets.
    return f". {shlex.quote(str(path))}\nSPARK_CONF_DIR={shlex.quote(str(folder.absolute()))}\n"


def spark_options(access: RunAccess) -> dict[str, str]:
    """Returns the settings with which a Spark session finds the branch."""
    return dict(_settings(access, {}))


def catalog_settings(access: RunAccess) -> dict[str, str]:
    """Returns the settings of the catalog alone, for a session that has others."""
    return dict(_of_catalog(access))


def _defaults(access: RunAccess, user: Sequence[Property]) -> str:
    """Returns the text of spark-defaults.conf: the user's lines, then those of the run."""
    retained = [entry.text for entry in user if not decides_catalog(entry.key, access.catalog)]
    settings = {entry.key: entry.value for entry in user}
    own = [property_line(*setting) for setting in _settings(access, settings)]
    # Of two lines with one key, Spark takes the later one.
    return "\n".join([*retained, "", "# The run's own settings.", *own, ""])


def _settings(access: RunAccess, user: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    extensions = [name.strip() for name in user.get(EXTENSIONS, "").split(",") if name.strip()]
    if ICEBERG_EXTENSIONS not in extensions:
        extensions.append(ICEBERG_EXTENSIONS)
    yield EXTENSIONS, ",".join(extensions)
    yield DEFAULT_CATALOG, access.catalog
    yield from _of_catalog(access)


def _of_catalog(access: RunAccess) -> Iterator[tuple[str, str]]:
    name = f"spark.sql.catalog.{access.catalog}"
    yield name, "org.apache.iceberg.spark.SparkCatalog"
    yield f"{name}.type", "rest"
    yield f"{name}.uri", access.branch_uri
    # Otherwise a session sees tables as they were when it first used them.
    yield f"{name}.cache-enabled", "false"
    if access.warehouse is not None:
        yield f"{name}.warehouse", access.warehouse
    if access.token is not None:
        # Spark hides the value of a setting whose name contains `token`.
        yield f"{name}.token", access.token
        # The token is valid for the whole run, and the server does not exchange tokens.
        yield f"{name}.token-refresh-enabled", "false"
        # Without these two, Iceberg warns that later versions need them.
        yield f"{name}.rest.auth.type", "oauth2"
        yield f"{name}.oauth2-server-uri", f"{access.branch_uri}/v1/oauth/tokens"
