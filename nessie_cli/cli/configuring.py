"""What the verbs of `nessie config` share: which settings a scope has, where a value stands, and how one is printed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from nessie_cli.errors import InvalidInput
from nessie_cli.workspace.known import KNOWN, REPOSITORY, Known, Scope, known, known_of_repository, names, parse_name

if TYPE_CHECKING:
    from pathlib import Path

    from nessie_cli.cli.context import Invocation
    from nessie_cli.workspace.settings import Settings

User = Annotated[bool, typer.Option("--user", help="Your own settings, for every workspace.")]
Workspace = Annotated[bool, typer.Option("--workspace", help="The settings of this workspace.")]
Repository = Annotated[bool, typer.Option("--repository", help="The settings of the repository, which every client meets.")]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The setting, such as author, alias.lg or profile.work.store.", show_default=False)]


class Setting(NamedTuple):
    """A setting as it is: its name, value, and whose it is."""

    name: str
    value: str
    scope: Scope


def scope_of(*, user: bool, workspace: bool, repository: bool) -> Scope | None:
    """The scope that the options name; raises `InvalidInput` for two."""
    chosen = [scope for scope, given in ((Scope.USER, user), (Scope.WORKSPACE, workspace), (Scope.REPOSITORY, repository)) if given]
    if len(chosen) > 1:
        raise InvalidInput("only one of --user, --workspace and --repository at a time")
    return chosen[0] if chosen else None


def settings_of(call: Invocation, scope: Scope | None) -> Iterator[Setting]:
    """All settings of a scope; those of the workspace and of the user where none is named, the nearer ones first."""
    if scope is Scope.REPOSITORY:
        for name, value in sorted(call.repository().config().settings.items()):
            yield Setting(name, value, scope)
        return
    for source in (Scope.WORKSPACE, Scope.USER):
        file = _file(call, source) if scope in (None, source) else None
        for parts, value in sorted(file.texts().items()) if file else ():
            yield Setting(_joined(parts), value, source)


def find(call: Invocation, name: str, scope: Scope | None) -> Setting | None:
    """One setting; where no scope is named, that of the workspace goes before that of the user."""
    wanted = name if scope is Scope.REPOSITORY else _joined(parse_name(name))
    return next((setting for setting in settings_of(call, scope) if setting.name == wanted), None)


def setting_named(name: str, scope: Scope | None) -> Known:
    """What is known of a setting; raises `InvalidInput` with the nearest names for one that there is not."""
    try:
        found = known_of_repository(name) if scope is Scope.REPOSITORY else known(name)
    except InvalidInput as error:
        from fnmatch import fnmatchcase

        from nessie_cli.cli.errors.suggestions import did_you_mean

        if scope is None and any(fnmatchcase(name, setting.name) for setting in REPOSITORY):
            raise InvalidInput(f"{name}: is a setting of the repository; add --repository") from None
        near = did_you_mean(name, names(REPOSITORY if scope is Scope.REPOSITORY else KNOWN)) if ";" not in error.message else ""
        raise InvalidInput(error.message + near) from None
    if scope and scope not in found.scopes:
        where = " or ".join(f"--{allowed}" for allowed in found.scopes)
        raise InvalidInput(f"{name}: is no setting of the {scope}; use {where}")
    return found


def place_to_write(call: Invocation, name: str, scope: Scope | None) -> Scope:
    """Where a value goes: the scope that is named, else the only one that the setting has, else this workspace."""
    allowed = setting_named(name, scope).scopes
    if scope:
        return scope
    if len(allowed) == 1:
        return allowed[0]
    if call.workspace is None:
        raise InvalidInput(f"{name}: there is no workspace here; --user makes it a setting of yours")
    return Scope.WORKSPACE


def written_form(name: str, value: str) -> str:
    """A value as it is kept: the path of a profile's store, and of any file, must mean the same wherever it is used."""
    from pathlib import Path

    from nessie_cli.workspace.folder import absolute_store

    if name == "safe-directories":
        return ":".join(entry if entry[:1] in "~*" else str(Path.cwd() / entry) for entry in value.split(":") if entry)
    if name.startswith(("profile.", "access.")) and name.endswith("-file") and not value.startswith("~"):
        return str(Path.cwd() / value)
    return absolute_store(value, Path.cwd()) if name.startswith("profile.") and name.endswith(".store") else value


def write(call: Invocation, name: str, value: str | None, scope: Scope) -> str | None:
    """Set, or with None remove, one setting; answers the value that it had."""
    if scope is Scope.REPOSITORY:
        return call.repository().put_setting(name, value)
    from nessie_cli.workspace.settings_writing import change

    before = find(call, name, scope)
    path = _path(call, scope)
    lock = call.need_workspace().lock_path if scope is Scope.WORKSPACE else path.with_name("config.lock")
    change(path, lock, parse_name(name), value)
    return before.value if before else None


def with_another(call: Invocation, name: str, value: str, scope: Scope) -> str:
    """A list with one more value, which may be there already; raises `InvalidInput` for a setting that is no list."""
    separator = setting_named(name, scope).separator
    file = _file(call, scope)
    if not separator or file is None:
        raise InvalidInput(f"{name}: is no list; leave --add out")
    before = [part for text in file.texts_of(name) for part in text.split(separator) if part]
    return separator.join(before if value in before else [*before, value])


def _path(call: Invocation, scope: Scope) -> Path:
    from nessie_cli.workspace.user import user_config_path

    return call.need_workspace().config_path if scope is Scope.WORKSPACE else user_config_path()


def _file(call: Invocation, scope: Scope) -> Settings | None:
    from nessie_cli.workspace.settings import Settings

    return None if scope is Scope.WORKSPACE and call.workspace is None else Settings(_path(call, scope))


def _joined(parts: tuple[str, ...]) -> str:
    """A name as it is typed; a part that no key could hold, in a file written by hand, is shown as it is."""
    from nessie_cli.model import ContentKey

    try:
        return str(ContentKey(parts))
    except InvalidInput:
        return ".".join(parts)


def document(setting: Setting) -> dict[str, Any]:
    """The JSON of one setting."""
    return {"key": setting.name, "value": setting.value, "scope": setting.scope.value}
