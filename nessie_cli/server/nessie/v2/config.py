"""API v2: configuration of the server and of the repository."""

from __future__ import annotations

from contextlib import suppress

from msgspec import json, to_builtins

from nessie_cli.errors import InvalidInput
from nessie_cli.repository.changes import PutSettings
from nessie_cli.server.auth.authorized import require_config
from nessie_cli.server.nessie.extensions import (
    announcement,
    get_settings,
    put_settings,
    settings_asked,
    settings_given,
)
from nessie_cli.server.pipeline.call import Answer, Call
from nessie_cli.wire import rest
from nessie_cli.wire.repository_config import TYPE_NAMES, decode_repository_config
from nessie_cli.wire.scalars import Json

SETTING = "repository-config.{}"
"""The setting of the repository that contains an object, as JSON."""


def get_config(call: Call) -> Answer:
    """Returns the configuration that clients request first."""
    return Answer(
        to_builtins(rest.NessieConfiguration.of(call.repository.config())) | announcement(call)
    )


def get_repository_config(call: Call) -> Answer:
    """Returns the stored configuration objects of the requested types."""
    if settings_asked(call):
        return get_settings(call)
    type_names = dict.fromkeys(call.texts("type"))
    for name in type_names:
        if name not in TYPE_NAMES:
            raise InvalidInput(f"No repository config type registered for name {name}")
        require_config(call.repository, name)
    settings = call.repository.config().settings if type_names else {}
    configs = [
        config for name in type_names if (config := _object(settings.get(SETTING.format(name))))
    ]
    return Answer({"configs": configs} if configs else {})


def post_repository_config(call: Call) -> Answer:
    """Stores a configuration object, and returns the one that it replaces."""
    body = call.needed_json("updateRepositoryConfig.repositoryConfigUpdate")
    if (settings := settings_given(call, body)) is not None:
        return put_settings(call, settings)
    name, value = decode_repository_config(body)
    setting = SETTING.format(name)
    previous = call.submit(PutSettings({setting: json.encode(value).decode()})).get(setting)
    return Answer({"previous": _object(previous)})


def _object(text: str | None) -> Json | None:
    """Returns the object of a setting; None for another text, which `nessie config` can store."""
    with suppress(ValueError, RecursionError):
        value = json.decode(text or "null")
        return value if isinstance(value, dict) and "type" in value else None
    return None
