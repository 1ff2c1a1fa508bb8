"""The user's own configuration: the default profile and the author's name.

`config.toml` in the user's configuration folder of this system:

    author = "Ada <ada@example.org>"
    default-profile = "work"

    [profile.work]
    store = "sqlite:////home/ada/catalog.sqlite"
    ref = "main"
"""

from typing import NamedTuple

from nessie_cli.workspace.locations import user_config
from nessie_cli.workspace.settings import SettingsFile


class Profile(NamedTuple):
    """A named store in the user's configuration."""

    name: str
    store: str
    ref: str | None


def user_settings() -> SettingsFile:
    """Returns the user's configuration."""
    return SettingsFile(user_config())


def default_profile() -> Profile | None:
    """Returns the default profile, or None."""
    settings = user_settings()
    name = settings.text("default-profile")
    if name is None:
        return None
    profile = _profile(settings, name)
    if profile is None:
        raise settings.fault(
            f"is {name!r}, but there is no store under [profile.{name}]", "default-profile"
        )
    return profile


def named_profile(name: str) -> Profile | None:
    """Returns a profile, or None."""
    return _profile(user_settings(), name)


def _profile(settings: SettingsFile, name: str) -> Profile | None:
    store = settings.text("profile", name, "store")
    return Profile(name, store, settings.text("profile", name, "ref")) if store else None


def profile_names() -> list[str]:
    """Returns the names of the profiles."""
    return list(
        dict.fromkeys(
            names[1]
            for names in user_settings().texts()
            if len(names) > 1 and names[0] == "profile"
        )
    )


def default_author() -> str | None:
    """Returns the configured author, or None."""
    return user_settings().text("author")
