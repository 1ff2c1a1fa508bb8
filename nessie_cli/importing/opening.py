"""Opens the source of an import: a catalog, a server or a folder, as its text says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path

from nessie_cli.errors import InvalidInput, NotFound
from nessie_cli.iceberg.locations import SCHEMES, absolute_location, local_path, scheme_of, shown
from nessie_cli.importing.source import Source
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.workspace.secrets import refuse_secret, without_secrets

_SQL = re.compile(r"(sqlite|postgresql|postgres|mysql|mariadb|oracle|mssql)(\+[a-z0-9_]+)?:")
_NESSIE = re.compile(r"https?://.*/api/v[12]/?([?#].*)?")
_WORD = re.compile(r"[A-Za-z0-9_.-]+")


class SourceType(StrEnum):
    """The types of sources. All but the last two are catalogs of PyIceberg.

    A name in PyIceberg's configuration may also be a catalog of another type.
    """

    REST = "rest"
    HIVE = "hive"
    GLUE = "glue"
    SQL = "sql"
    DYNAMODB = "dynamodb"
    NESSIE = "nessie"
    FOLDER = "folder"


def open_source(
    text: str,
    kind: SourceType | None = None,
    properties: Mapping[str, str] | None = None,
    *,
    revision: str | None = None,
    target: ReadableRepository | None = None,
) -> Source:
    """Opens the source that a text names: a catalog's name or URI, a server's URL, or a folder.

    `kind` is its type, if the text does not say it. `properties` are those of a PyIceberg catalog,
    of FileIO for other sources, and `access.*` (nessie-access(7)) for a Nessie server. They contain
    no secrets, which come from the environment, PyIceberg's configuration or files. `revision`
    names a branch, tag or commit of a Nessie server (default: its default branch). `target` is the
    repository that is imported into, which must not be the source.

    Raises `InvalidInput` if the text is ambiguous or the source cannot be used, `NotFound` if
    nothing has this name, and `NotAllowed` or `StoreUnavailable` if the source refuses or does not
    answer. The caller closes the source.
    """
    properties = dict(properties or {})
    if not text.strip():
        raise InvalidInput("the source of the import is empty")
    _refuse_secrets(properties)
    chosen = kind or _type_of(text)
    if revision is not None and chosen is not SourceType.NESSIE:
        raise InvalidInput(
            f"{without_secrets(text)} has no branches and tags: only a Nessie server has revisions"
        )
    if chosen is SourceType.NESSIE:
        from nessie_cli.importing.sources.nessie_server import open_nessie

        return open_nessie(text, properties, revision, target)
    if chosen is SourceType.FOLDER:
        from nessie_cli.importing.sources.folder import Folder

        return Folder(_folder(text), properties)
    try:
        from nessie_cli.importing.sources.catalog_opening import open_catalog
    except ImportError:
        raise InvalidInput(
            f"PyIceberg is needed to read the catalog {without_secrets(text)}",
            hint="`pip install 'nessie-cli[iceberg]'`",
        ) from None
    return open_catalog(text, chosen, properties, is_uri=_is_catalog_uri(text), target=target)


def _refuse_secrets(properties: Mapping[str, str]) -> None:
    """Raises `InvalidInput` for a secret in properties, which a command line shows to others."""
    for name, value in properties.items():
        # `s3.access-key-id` and `access.token-file` are no secrets.
        is_name = not name.endswith(("-file", "-id", "-endpoint", "-uri"))
        refuse_secret(name, value, is_name=is_name)


def _type_of(text: str) -> SourceType | None:
    """Returns the type that a text says, or None for the name of a catalog in the configuration."""
    scheme = scheme_of(text)
    if _NESSIE.fullmatch(text):
        return SourceType.NESSIE
    if scheme in ("http", "https"):
        return SourceType.REST
    if scheme == "thrift":
        return SourceType.HIVE
    if _SQL.match(text):
        return SourceType.SQL
    if scheme in SCHEMES:
        return SourceType.FOLDER
    if scheme:
        hint = "name the type of the source by --type"
        if scheme == "jdbc":
            hint = "write the URL of SQLAlchemy, such as postgresql://host/database"
        raise InvalidInput(
            f"{without_secrets(text)}: {scheme}: is the scheme of no source", hint=hint
        )
    return _type_of_word(text)


def _type_of_word(text: str) -> SourceType | None:
    if not _WORD.fullmatch(text) or text in (".", ".."):
        return SourceType.FOLDER
    is_catalog = text.lower() in configured_catalogs()
    is_folder = Path(text).exists()
    # The credentials of AWS choose the account.
    is_glue = text == SourceType.GLUE
    if is_folder and (is_catalog or is_glue):
        raise InvalidInput(
            f"{text} names a catalog of PyIceberg and a folder",
            hint=f"write ./{text} for the folder, or --type for the catalog",
        )
    if is_folder:
        return SourceType.FOLDER
    if is_catalog:
        return None
    if is_glue:
        return SourceType.GLUE
    raise _unknown(text)


def _unknown(text: str) -> NotFound:
    names = configured_catalogs()
    near = get_close_matches(text, [*names, SourceType.GLUE], n=1)
    if near:
        hint = f"did you mean {near[0]}?"
    elif names:
        hint = f"PyIceberg's configuration has {', '.join(sorted(names))}"
    else:
        hint = "write a URI, the path of a folder, or a catalog of PyIceberg's configuration"
    return NotFound(f"{text} is neither a catalog of PyIceberg nor a folder", text, hint=hint)


def configured_catalogs() -> list[str]:
    """Returns the names of the catalogs in PyIceberg's configuration; none without PyIceberg."""
    try:
        from nessie_cli.importing.sources.configuration import catalog_names
    except ImportError:
        return []
    return catalog_names()


def _is_catalog_uri(text: str) -> bool:
    return bool(scheme_of(text)) and scheme_of(text) not in SCHEMES


def _folder(text: str) -> str:
    """Returns the absolute location of a folder. Raises `NotFound` or `InvalidInput`."""
    # The record of the import and its commit name the folder.
    refuse_secret("SOURCE", text)
    if scheme_of(text) not in ("", "file"):
        return text.rstrip("/")
    path = local_path(text)
    if not path.exists():
        raise NotFound(f"{shown(text)}: no such folder", text)
    if path.is_dir():
        return absolute_location(text).rstrip("/") or "/"
    if ".metadata.json" in path.name:
        hint = "`nessie content put KEY --from-metadata FILE` stages one table or view"
    elif path.suffix == ".zip":
        hint = "an export of the original server is a source of --history"
    else:
        hint = "name the folder of a warehouse; --type sql takes sqlite:///PATH"
    raise InvalidInput(f"{shown(text)} is not a folder", hint=hint)
