"""Reading settings, and the definitions of their names."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.result import Document
from nessie_cli.cli.errors.suggestions import did_you_mean
from nessie_cli.errors import InvalidInput, SettingNotFound
from nessie_cli.model import ContentKey
from nessie_cli.workspace.known import (
    KNOWN,
    REPOSITORY,
    Known,
    Scope,
    UnknownSetting,
    known,
    known_of_repository,
    names,
    parse_name,
)
from nessie_cli.workspace.locations import user_config
from nessie_cli.workspace.settings import SettingsFile


class Setting(Document, frozen=True):
    """A setting, its value and its scope."""

    key: str
    value: str
    scope: Scope


def settings_of(app: Invocation, scope: Scope | None) -> Iterator[Setting]:
    """Yields the settings of a scope. For None, yields those of the workspace, then the user's."""
    if scope is Scope.REPOSITORY:
        for name, value in sorted(app.repository().config().settings.items()):
            yield Setting(name, value, scope)
        return
    for source in (Scope.WORKSPACE, Scope.USER):
        file = settings_file(app, source) if scope in (None, source) else None
        for parts, value in sorted(file.texts().items()) if file else ():
            yield Setting(_joined(parts), value, source)


def find_setting(app: Invocation, name: str, scope: Scope | None) -> Setting | None:
    """Returns a setting, or None. Without a scope, the workspace's value overrides the user's."""
    key = name if scope is Scope.REPOSITORY else _joined(parse_name(name))
    return next((setting for setting in settings_of(app, scope) if setting.key == key), None)


def need_setting(app: Invocation, name: str, scope: Scope | None) -> Setting:
    """Returns a setting. Raises `SettingNotFound`, with similar names.

    A setting in a file is found even if this version does not know its name.
    """
    setting = find_setting(app, name, scope)
    if setting is not None:
        return setting
    try:
        known_setting(name, scope)
    except UnknownSetting as error:
        raise SettingNotFound(error.message, name) from None
    command = "nessie config list" + (f" --{scope}" if scope else "")
    near = did_you_mean(name, (setting.key for setting in settings_of(app, scope)))
    hint = near or f". Hint: `{command}` lists the settings that have a value"
    if scope is Scope.REPOSITORY and app.repository().caller() is not None:
        hint = ", or you may not read it (READ_REPOSITORY_CONFIG)" + hint
    raise SettingNotFound(f"'{name}' is not set{hint}", name)


def known_setting(name: str, scope: Scope | None) -> Known:
    """Returns the definition of a setting.

    Raises `UnknownSetting`, with similar names, if no setting of the scope has this name, and
    `InvalidInput` if it belongs to another scope.
    """
    try:
        setting = known_of_repository(name) if scope is Scope.REPOSITORY else known(name)
    except UnknownSetting as error:
        if scope is not Scope.REPOSITORY and any(
            fnmatchcase(name, setting.name) for setting in REPOSITORY
        ):
            raise InvalidInput(
                f"{name} is a setting of the repository", hint="add --repository"
            ) from None
        known_names = names(REPOSITORY if scope is Scope.REPOSITORY else KNOWN)
        # The second word of `protect.main` is the user's own.
        own = [*name.split("."), ""][1]
        choices = [choice.replace("NAME", own or "NAME") for choice in known_names]
        near = "" if error.other else did_you_mean(name, choices)
        raise UnknownSetting(error.message + near) from None
    if scope and scope not in setting.scopes:
        where = " or ".join(f"--{allowed}" for allowed in setting.scopes)
        raise InvalidInput(f"{name} is not a setting of the {scope}", hint=f"use {where}")
    return setting


def settings_file(app: Invocation, scope: Scope) -> SettingsFile | None:
    """Returns the file of the user's or workspace's settings; None if there is no workspace."""
    if scope is Scope.WORKSPACE and app.store.workspace is None:
        return None
    return SettingsFile(settings_path(app, scope))


def settings_path(app: Invocation, scope: Scope) -> Path:
    """Returns the path of the user's or workspace's settings."""
    return app.store.need_workspace().config_path if scope is Scope.WORKSPACE else user_config()


def _joined(parts: tuple[str, ...]) -> str:
    """Returns the name of a setting as it is typed, even if a file has invalid parts."""
    try:
        return str(ContentKey(parts))
    except InvalidInput:
        return ".".join(parts)
