"""The options that the commands of `nessie config` share."""

from typing import Annotated

import typer
from msgspec import Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.workspace.known import Scope


class ScopeOptions(Struct, frozen=True, kw_only=True):
    """The options that choose a scope."""

    user: Annotated[
        bool,
        typer.Option(
            "--user",
            help="Use the user settings (config.toml in the user's configuration folder), which"
            " apply in every workspace.",
        ),
    ] = False
    workspace: Annotated[
        bool,
        typer.Option(
            "--workspace", help="Use the settings of this workspace (.nessie/config.toml)."
        ),
    ] = False
    repository: Annotated[
        bool,
        typer.Option(
            "--repository", help="Use the settings of the repository, which apply to every client."
        ),
    ] = False

    @property
    def scope(self) -> Scope | None:
        """The chosen scope, or None. Raises `InvalidInput` if there are two."""
        chosen = [scope for scope in Scope if getattr(self, scope.value)]
        if len(chosen) > 1:
            raise InvalidInput("only one of --user, --workspace and --repository is allowed")
        return chosen[0] if chosen else None


class KeyOptions(ScopeOptions, frozen=True, kw_only=True):
    """The name of a setting, and its scope."""

    key: Annotated[
        str,
        typer.Argument(
            metavar="KEY", help="The setting, such as author, alias.lg or profile.work.store."
        ),
    ]
