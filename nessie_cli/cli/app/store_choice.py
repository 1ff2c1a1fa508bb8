"""The choice of the store, and the settings of its connection.

The first of these names the store: `--store` or `--profile`, `NESSIE_STORE`, `NESSIE_ENDPOINT`,
`NESSIE_PROFILE`, the workspace, the default profile.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from nessie_cli.errors import InvalidInput, SettingNotFound, StoreNotFound
from nessie_cli.repository.urls import is_server
from nessie_cli.workspace import environment as env
from nessie_cli.workspace.folder import find_workspace, store_name, working_folder
from nessie_cli.workspace.trust import FOREIGN, TRUSTED

if TYPE_CHECKING:
    from nessie_cli.cli.app.global_options import GlobalOptions
    from nessie_cli.cli.app.output import Output
    from nessie_cli.repository.access import Access
    from nessie_cli.workspace.folder import Workspace
    from nessie_cli.workspace.user import Profile


class StoreChoice:
    """The store of an invocation, its workspace and its profile. Each is looked up on first use."""

    def __init__(self, options: GlobalOptions, output: Output) -> None:
        self._options = options
        self._output = output

    @cached_property
    def found_workspace(self) -> Workspace | None:
        """The workspace of this folder or a folder above, trusted or not."""
        return find_workspace(working_folder())

    @cached_property
    def workspace(self) -> Workspace | None:
        """The workspace in use.

        None if there is none, or if it is not trusted and the user names a store. Raises
        `NotAllowed` for a workspace of another user.
        """
        workspace = self.found_workspace
        if workspace is None or workspace.trust == TRUSTED:
            return workspace
        if self._user_names_store():
            return None
        if workspace.trust == FOREIGN:
            raise workspace.refusal("nothing in it is used")
        return workspace

    def need_workspace(self) -> Workspace:
        """Returns the workspace. Raises `StoreNotFound` if there is none."""
        if self.workspace is not None:
            return self.workspace
        if self.found_workspace is not None:
            raise self.found_workspace.refusal(
                "it is ignored while an option or a variable names the store"
            )
        raise StoreNotFound(
            "no workspace in this folder or a parent",
            hint="`nessie init` creates one; with -m, `nessie content` commits without one",
        )

    @cached_property
    def profile(self) -> Profile | None:
        """The named profile, or the default profile if nothing with precedence names a store."""
        from nessie_cli.workspace.user import default_profile

        if name := self.profile_name:
            return _named_profile(name)
        return default_profile() if self.nearer_store is None else None

    @property
    def profile_name(self) -> str | None:
        """The profile that `--profile` or `NESSIE_PROFILE` names."""
        options = self._options
        if (
            options.profile
            or options.store
            or env.variable(env.STORE)
            or env.variable(env.ENDPOINT)
        ):
            return options.profile
        return env.variable(env.PROFILE)

    @property
    def nearer_store(self) -> str | None:
        """The store that an option, a variable or the workspace names. They override profiles."""
        named = self._options.store or env.variable(env.STORE) or env.variable(env.ENDPOINT)
        return named or (self.workspace.store() if self.workspace else None)

    def url(self) -> str:
        """Returns the URL of the store. Raises `StoreNotFound` if nothing names one."""
        self.refuse_two_stores()
        named = self.profile.store if self.profile_name and self.profile else None
        url = named or self.nearer_store or (self.profile.store if self.profile else None)
        if url is None:
            raise StoreNotFound(
                "no store: no workspace in this folder or a parent, and no --store, NESSIE_STORE or"
                " default profile",
                hint="`nessie init` creates one",
            )
        return url

    def refuse_two_stores(self) -> None:
        """Raises `InvalidInput` if two options name the store."""
        if self._options.store and self._options.profile:
            raise InvalidInput("--store and --profile cannot be used together: both name the store")

    def origin(self) -> str:
        """Returns the source of the store's URL, such as an option, a variable or a profile."""
        if self._options.store:
            return "--store"
        if self.profile_name:
            by = "--profile" if self._options.profile else env.PROFILE
            return f"the profile {self.profile_name} ({by})"
        for variable in (env.STORE, env.ENDPOINT):
            if env.variable(variable):
                return variable
        if self.workspace:
            return f"the workspace {self.workspace.root}"
        return f"the default profile {self.profile.name}" if self.profile else "nothing"

    def name(self) -> str:
        """Returns the name of the store, as recorded in the staged batch."""
        return store_name(self.url(), self.workspace.root if self.workspace else None)

    def access(self, url: str, workspace: Workspace | None = None) -> Access | None:
        """Returns the connection settings of a server, or None if the store is not a server.

        They belong to the profile or workspace that names the URL.
        """
        if not is_server(url):
            return None
        from nessie_cli.cli.app.access import access_of

        print_line = self._output.err.print_text
        if self.profile_name or self.nearer_store is None:
            return access_of(url, self.profile, None, print_line)
        # A plug-in gets the URL of the workspace or profile; the settings there apply to it.
        workspace = workspace or self.workspace
        if not workspace or workspace.named_store() != url:
            return access_of(url, profile_with(url), None, print_line)
        try:
            return access_of(url, None, workspace, print_line, named=self._user_names(url))
        finally:
            if workspace.ignored:
                names = ", ".join(dict.fromkeys(workspace.ignored))
                self._output.note(
                    f"hint: the workspace {workspace.root} is not trusted, so its {names} is"
                    f" ignored; `{workspace.trusting}` trusts it"
                )

    def is_chosen_by_user(self, url: str) -> bool:
        """Whether the user named the store at a URL, in this or an earlier command.

        False for a server that only a workspace names.
        """
        if "://" not in url or url.startswith("sqlite:") or self._user_names(url):
            return True
        if self.profile and self.profile.store == url:
            return True
        from nessie_cli.workspace.trust_records import consent

        return consent().covers(url)

    def _user_names_store(self) -> bool:
        options = self._options
        variables = (env.STORE, env.ENDPOINT, env.PROFILE)
        return bool(options.store or options.profile) or any(map(env.variable, variables))

    def _user_names(self, url: str) -> bool:
        """Whether an option or a variable names exactly this URL."""
        return url in (self._options.store, env.variable(env.STORE), env.variable(env.ENDPOINT))


def profile_with(url: str) -> Profile | None:
    """Returns the profile of NESSIE_PROFILE, else the default one, if it names this store."""
    from nessie_cli.workspace.user import default_profile, named_profile

    name = env.variable(env.PROFILE)
    profile = (named_profile(name) if name else None) or default_profile()
    return profile if profile and profile.store == url else None


def _named_profile(name: str) -> Profile:
    from nessie_cli.workspace.user import named_profile, profile_names

    profile = named_profile(name)
    if profile is None:
        from nessie_cli.cli.errors.suggestions import did_you_mean

        near = did_you_mean(name, profile_names())
        raise SettingNotFound(f"there is no profile '{name}'{near}", name)
    return profile
