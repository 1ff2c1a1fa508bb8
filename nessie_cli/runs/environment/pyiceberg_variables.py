"""The variables that make a PyIceberg program load the catalog of a run.

PyIceberg lower-cases the names, separates their parts at `__` (at most three parts), and makes `-`
of `_`. A variable replaces the same key of the file .pyiceberg.yaml; other keys of the file remain.
https://py.iceberg.apache.org/configuration/
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from nessie_cli.runs.environment.access import RunAccess
from nessie_cli.workspace.files import read_text

_BEGINNING = "PYICEBERG_"
_FILE = ".pyiceberg.yaml"
_STORAGE = re.compile(r"(s3|gcs|adls|hdfs|oss)\..+|py-io-impl|ssl(\..+)?")
"""Keys that say how files and servers are reached, not which catalog it is."""
_AUTHORIZATION = ("auth", "oauth2-server-uri", "rest.sigv4-enabled")
"""Keys of a file that would send other credentials than the token."""


def pyiceberg_variables(
    access: RunAccess, inherited: Mapping[str, str], working_folder: Path
) -> dict[str, str | None]:
    """Returns the changes to the environment; None removes an inherited variable.

    Raises `InvalidInput` or `NotAllowed` if .pyiceberg.yaml cannot be read.
    """
    catalog = pyiceberg_name(access.catalog)
    changes: dict[str, str | None] = {
        name: None
        for name in inherited
        if _key(name)[:2] == ["catalog", catalog] and not _STORAGE.fullmatch(_key(name)[-1])
    }
    for name in inherited:
        if _key(name) == ["default-catalog"]:
            changes[name] = None
    settings = {"type": "rest", "uri": access.branch_uri}
    if access.warehouse is not None:
        settings["warehouse"] = access.warehouse
    of_file = set(_keys_of_file(catalog, inherited, working_folder))
    if access.token is not None:
        settings["token"] = access.token
        if "credential" in of_file:
            # The server's token endpoint answers a token with the same token.
            settings["credential"] = access.token
        settings |= {key: "" for key in _AUTHORIZATION if key in of_file}
    changes |= {variable(access.catalog, key): value for key, value in settings.items()}
    return changes | {f"{_BEGINNING}DEFAULT_CATALOG": catalog}


def pyiceberg_name(catalog: str) -> str:
    """Returns the name of a catalog as PyIceberg reads it from a variable."""
    return re.sub("_+", "-", catalog.lower())


def variable(catalog: str, key: str) -> str:
    """Returns the variable of a setting.

    >>> variable("lake", "oauth2-server-uri")
    'PYICEBERG_CATALOG__LAKE__OAUTH2_SERVER_URI'
    """
    name = pyiceberg_name(catalog)
    return f"{_BEGINNING}CATALOG__{name}__{key.replace('.', '__')}".replace("-", "_").upper()


def catalog_uris(inherited: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yields the name and the URI of each catalog that inherited variables configure."""
    for name, value in inherited.items():
        match _key(name):
            case ["catalog", catalog, "uri"]:
                yield catalog, value


def _key(name: str) -> list[str]:
    """Returns the parts of a variable's name; none if it is not one of PyIceberg."""
    if not name.upper().startswith(_BEGINNING):
        return []
    parts = name[len(_BEGINNING) :].lower().split("__", maxsplit=2)
    return [part.replace("__", ".").replace("_", "-") for part in parts]


def _keys_of_file(
    catalog: str, inherited: Mapping[str, str], working_folder: Path
) -> Iterator[str]:
    """Yields the keys that the user's file has for a catalog.

    PyIceberg reads the first file that is not empty, and only mappings in block style.
    """
    folders = (inherited.get("PYICEBERG_HOME"), inherited.get("HOME"), str(working_folder))
    for folder in folders:
        text = read_text(Path(folder) / _FILE) if folder else None
        if text and text.strip():
            yield from _keys_of_catalog(text, catalog)
            return


def _keys_of_catalog(text: str, catalog: str) -> Iterator[str]:
    path: list[tuple[int, str]] = []
    for line in text.splitlines():
        entry = re.match(r"( *)[\"']?([^\s#:\"'][^:\"']*)[\"']?:(\s|$)", line)
        if entry is None:
            continue
        depth = len(entry[1])
        path = [(level, key) for level, key in path if level < depth]
        path.append((depth, entry[2].lower()))
        match [key for _, key in path]:
            case ["catalog", name, key] if name == catalog:
                yield key
