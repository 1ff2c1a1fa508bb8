"""Writing a setting: its scope, its stored form, and the change."""

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.config.settings import find_setting, known_setting, settings_file, settings_path
from nessie_cli.errors import InvalidInput
from nessie_cli.workspace.folder import absolute_store, working_folder
from nessie_cli.workspace.known import Scope, parse_name
from nessie_cli.workspace.settings_writing import change


def scope_to_write(app: Invocation, name: str, scope: Scope | None) -> Scope:
    """Returns the scope to write to: the given one, else the only one, else the workspace."""
    allowed = known_setting(name, scope).scopes
    if scope:
        return scope
    if len(allowed) == 1:
        return allowed[0]
    if app.store.workspace is None:
        raise InvalidInput(
            f"{name}: there is no workspace here", hint="--user writes it to your own settings"
        )
    return Scope.WORKSPACE


def stored_form(name: str, value: str) -> str:
    """Returns a value with absolute paths, so that it is the same in every folder."""
    if name == "safe-directories":
        return ":".join(
            part if part[:1] in "~*" else str(working_folder() / part)
            for part in value.split(":")
            if part
        )
    if (
        name.startswith(("profile.", "access."))
        and name.endswith("-file")
        and not value.startswith("~")
    ):
        return str(working_folder() / value)
    is_store = name.startswith("profile.") and name.endswith(".store")
    return absolute_store(value, working_folder()) if is_store else value


def with_value(app: Invocation, name: str, value: str, scope: Scope) -> str:
    """Returns a list with an additional value.

    Raises `InvalidInput` if the setting is not a list.
    """
    separator = known_setting(name, scope).separator
    file = settings_file(app, scope)
    if not separator or file is None:
        raise InvalidInput(f"{name} is not a list", hint="omit --add")
    values = [part for text in file.texts_of(name) for part in text.split(separator) if part]
    return separator.join(values if value in values else [*values, value])


def write_setting(app: Invocation, name: str, value: str | None, scope: Scope) -> str | None:
    """Sets a setting, or removes it if the value is None. Returns the previous value."""
    if scope is Scope.REPOSITORY:
        return app.repository().put_setting(name, value)
    before = find_setting(app, name, scope)
    path = settings_path(app, scope)
    lock = (
        app.store.need_workspace().lock_path
        if scope is Scope.WORKSPACE
        else path.with_name("config.lock")
    )
    change(path, lock, parse_name(name), value)
    return before.value if before else None
