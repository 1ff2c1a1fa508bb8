"""Settings for connections to a server: credentials, certificates and timeouts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from nessie_cli.reaching import access_to
from nessie_cli.repository.access import Access
from nessie_cli.workspace.access import SettingsOrigin

if TYPE_CHECKING:
    from collections.abc import Callable

    from nessie_cli.workspace.folder import Workspace
    from nessie_cli.workspace.user import Profile


def access_of(
    url: str,
    profile: Profile | None,
    workspace: Workspace | None,
    print_line: Callable[[str], None],
    *,
    named: bool = True,
) -> Access:
    """Returns the connection settings of the profile or workspace that names the server.

    Environment variables override them. `named` is true if the user named the URL, and false if
    only the workspace does.
    """

    def lookup(name: str) -> str | None:
        if profile:
            from nessie_cli.workspace.user import user_settings

            return user_settings().text("profile", profile.name, name)
        return workspace.access_setting(name) if workspace else None

    def place(name: str) -> str:
        return f"profile.{profile.name}.{name}" if profile else f"access.{name}"

    on_terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    return access_to(
        url,
        lookup,
        place,
        print_line if on_terminal else None,
        SettingsOrigin(server=named, settings=workspace is None),
    )
