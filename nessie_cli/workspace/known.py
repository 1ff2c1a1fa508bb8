"""The known settings: their scopes and their values, so that a typo is an error."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import NamedTuple

from nessie_cli.errors import InvalidInput
from nessie_cli.model import IMPORT_PREFIX, ContentKey, check_reference_name
from nessie_cli.workspace import access
from nessie_cli.workspace.credentials import checked_endpoints
from nessie_cli.workspace.secrets import refuse_secret


class Scope(StrEnum):
    """The scope of settings: the workspace, the user, or the repository.

    Settings of the repository are stored in it, so every client uses them.
    """

    WORKSPACE = "workspace"
    USER = "user"
    REPOSITORY = "repository"


class Known(NamedTuple):
    """A setting: its name (`*` is a name that a user chooses), its scopes, and its meaning.

    A list has a `separator` between its values.
    """

    name: str
    scopes: tuple[Scope, ...]
    help: str
    separator: str = ""


_BOTH = (Scope.WORKSPACE, Scope.USER)
KNOWN = (
    Known(
        "store",
        (Scope.WORKSPACE,),
        (
            "The store: a path or sqlite:///path of a SQLite file, postgresql://..., or"
            " http(s)://host/api/v2. A relative path starts at the folder that contains .nessie/."
        ),
    ),
    Known("author", _BOTH, "The default author of commits. NESSIE_AUTHOR overrides it."),
    Known("alias.*", _BOTH, "The command line that `nessie NAME` runs, without `nessie`."),
    Known(
        "merge.tables",
        _BOTH,
        (
            "combine: merges combine the files of a table that both sides changed, if that is"
            " safe. conflict: such a table is always a conflict. Default: combine."
        ),
    ),
    Known(
        "merge.isolation",
        _BOTH,
        (
            "The isolation of tables that set none, for merges that combine them: snapshot or"
            " serializable. Default: snapshot."
        ),
    ),
    Known(
        "merge.identifiers",
        _BOTH,
        (
            "Rows that both sides added to a table with identifier fields, if their identifiers may"
            " be equal: warn combines them with a warning, conflict does not. Default: warn."
        ),
    ),
    Known(
        "run.catalog",
        _BOTH,
        "The name of the catalog that programs of `nessie run` use. Default: lake.",
    ),
    Known(
        "run.warehouse",
        _BOTH,
        (
            "The location of new tables in `nessie run` on an embedded store: a path or a URI."
            " A relative path starts at the folder that contains .nessie/. Default: warehouse."
        ),
    ),
    Known(
        "safe-directories",
        (Scope.USER,),
        (
            "Folders whose workspaces are trusted, even if another user owns them; separated by"
            " colons. FOLDER/* means all folders below FOLDER, * means all folders."
        ),
        ":",
    ),
    Known(
        "trusted-endpoints",
        (Scope.USER,),
        (
            "Servers that may get credentials even if only a workspace names them:"
            " scheme://host[:port], separated by spaces."
        ),
        " ",
    ),
    Known(
        "allow-http",
        (Scope.USER,),
        (
            "Servers on other machines that may get credentials without TLS: host or host:port,"
            " separated by spaces; true for all servers."
        ),
        " ",
    ),
    Known(
        "default-profile",
        (Scope.USER,),
        "The profile to use if neither an option, the environment nor a workspace names a store.",
    ),
    Known("profile.*.store", (Scope.USER,), "The store of a profile."),
    Known("profile.*.ref", (Scope.USER,), "The current reference if the profile is used."),
    *(Known(f"access.{name}", (Scope.WORKSPACE,), help_) for name, help_ in access.HELP.items()),
    *(
        Known(
            f"profile.*.{name}", (Scope.USER,), f"Like access.{name}, for the server of a profile."
        )
        for name in access.HELP
    ),
)
REPOSITORY = (
    Known(
        "require-expected-content",
        (Scope.REPOSITORY,),
        "If true, a Put that updates a content must have expectedContent. Default: false.",
    ),
    Known(
        "namespace-validation",
        (Scope.REPOSITORY,),
        (
            "If false, a key needs no namespace, and a namespace that contains keys may be"
            " deleted. Default: true."
        ),
    ),
    Known(
        "reflog-expiry",
        (Scope.REPOSITORY,),
        "Age at which `nessie store maintain` deletes reflog entries. Default: 90d.",
    ),
    Known(
        "request-expiry",
        (Scope.REPOSITORY,),
        "Age at which `nessie store maintain` deletes request ids. Default: 7d.",
    ),
    Known(
        "refuse-failed-runs",
        (Scope.REPOSITORY,),
        (
            "If true, merges and assignments over Nessie's API cannot bring commits of a run that"
            " failed, either. `nessie merge` refuses them in any case. Default: false."
        ),
    ),
    Known(
        "run-expiry",
        (Scope.REPOSITORY,),
        "Age at which the branch of a run that was not published is deleted. Default: 14d.",
    ),
    Known(
        f"{IMPORT_PREFIX}*",
        (Scope.REPOSITORY,),
        (
            "The tables that were imported from the source NAME. `nessie import` writes it, and"
            " `nessie gc` deletes no file of a table that another catalog may still write."
        ),
    ),
    Known(
        "protect.*",
        (Scope.REPOSITORY,),
        (
            "Rules for the branch or tag NAME, or for all that match a pattern such as release/*,"
            " separated by commas: no-delete, no-rewind, merge-only."
        ),
    ),
)
_OTHER_NAMES = {
    "endpoint": "store",
    "default_branch": "profile.NAME.ref",
    "user.name": "author",
    "user.email": "author",
    "safe.directory": "safe-directories",
}
"""Names in other programs, with those of nessie."""
_TRUTHS = ("true", "false")
_CHOICES = {
    "merge.tables": ("combine", "conflict"),
    "merge.isolation": ("snapshot", "serializable"),
    "merge.identifiers": ("warn", "conflict"),
}
"""The values of settings that have only a few."""
_STORES = ("sqlite", "postgresql", "postgres", "http", "https")
"""The schemes of stores."""


def parse_name(text: str) -> tuple[str, ...]:
    """Returns the parts of a setting's name, quoted as in a key. Raises `InvalidInput`."""
    try:
        return ContentKey.parse(text).elements
    except InvalidInput:
        raise InvalidInput(
            f"setting {text!r}: write NAME or TABLE.NAME, such as alias.lg or profile.work.store"
        ) from None


class UnknownSetting(InvalidInput):
    """No setting has this name. `other` is the name of the setting that was meant, if known."""

    def __init__(self, message: str, other: str = "") -> None:
        super().__init__(message)
        self.other = other


def known(text: str) -> Known:
    """Returns the setting of the workspace or user with a name.

    Raises `UnknownSetting`, or `InvalidInput` for a name that cannot be one.
    """
    parts = parse_name(text)
    for candidate in KNOWN:
        pattern = candidate.name.split(".")
        if len(pattern) == len(parts) and all(
            p in ("*", part) for p, part in zip(pattern, parts, strict=True)
        ):
            return candidate
    refuse_secret(text, None)
    other = _OTHER_NAMES.get(text, "")
    raise UnknownSetting(
        f"there is no setting '{text}'" + (f"; here it is called '{other}'" if other else ""), other
    )


def known_of_repository(name: str) -> Known:
    """Returns the setting of the repository with a name. Raises `UnknownSetting`."""
    for candidate in REPOSITORY:
        if fnmatchcase(name, candidate.name):
            return candidate
    raise UnknownSetting(f"the repository has no setting '{name}'")


def check_value(text: str, value: str) -> None:
    """Raises `InvalidInput` for an invalid value, and for a secret, which must not be in a file."""
    refuse_secret(text, value, is_name=not _is_of_access(text))
    if text.startswith(IMPORT_PREFIX):
        raise InvalidInput(f"{text}: only `nessie import` writes records of imports")
    if not value.strip() or not value.isprintable():
        raise InvalidInput(f"{text}: the value must be one line that is not blank")
    last = parse_name(text)[-1]
    if _is_of_access(text):
        access.check(last, value, text)
    if text == "trusted-endpoints":
        checked_endpoints(value.replace(",", " ").split(), text)
    if last == "store" and not text.startswith("alias."):
        _check_store(text, value)
    if last == "ref":
        check_reference_name(value)
    if text in ("require-expected-content", "namespace-validation") and value not in _TRUTHS:
        raise InvalidInput(f"{text}: {value!r} must be true or false")
    if text in _CHOICES and value not in _CHOICES[text]:
        raise InvalidInput(f"{text}: {value!r} must be {' or '.join(_CHOICES[text])}")


def _check_store(text: str, value: str) -> None:
    """Raises `InvalidInput` for a URL of an unknown kind. A path is a SQLite file."""
    scheme, separator, _ = value.partition("://")
    if separator and "/" not in scheme and scheme.lower() not in _STORES:
        known_schemes = ", ".join(
            f"{scheme_name}://" for scheme_name in ("sqlite", "postgresql", "http", "https")
        )
        raise InvalidInput(
            f"{text}: there are no {scheme}:// stores; write a path, or a URL with one of"
            f" {known_schemes}"
        )


def _is_of_access(text: str) -> bool:
    """Returns whether a setting is about the access to a server. Such names are not secrets."""
    parts = parse_name(text)
    return parts[-1] in access.VARIABLES and (
        parts[:-1] == ("access",) or (len(parts) > 2 and parts[0] == "profile")  # noqa: PLR2004
    )


def names(settings: Sequence[Known]) -> list[str]:
    """Returns the names of settings, with NAME for names that the user chooses."""
    return [setting.name.replace("*", "NAME") for setting in settings]
