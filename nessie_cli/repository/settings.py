"""The verb that changes settings of the embedded repository."""

from __future__ import annotations

from collections.abc import Mapping

from nessie_cli.errors import InvalidInput
from nessie_cli.repository import expiry
from nessie_cli.repository.changes import PutSettings
from nessie_cli.repository.draft import ChangeSubmission, Draft, check_protection
from nessie_cli.repository.requests import digest
from nessie_cli.repository.snapshot import StoreSnapshot
from nessie_cli.repository.writes import WriteMaker, repeated_draft
from nessie_cli.store.records import Write

MOST_SETTINGS = 1_000
"""The most settings of a repository: each write reads all of them."""

MOST_TEXT = 32 << 20
"""The most characters of all settings, their names included."""


def put_settings(
    at: StoreSnapshot, change: PutSettings, submission: ChangeSubmission
) -> Draft[Mapping[str, str | None]]:
    """Drafts a change of settings, and returns their previous values.

    Raises `ReferenceConflict` if a setting does not have its expected value.
    """
    if len(change.values) > MOST_SETTINGS:
        raise _too_many()
    for name, value in change.values.items():
        if not name or name.startswith("."):
            raise InvalidInput(f"setting {name!r}: names of settings begin with a letter")
        check_protection(name, value)
        expiry.check_setting(name, value)
    request = at.view.request(submission.request_id) if submission.given else None
    if request is not None:
        return repeated_draft(at, change, request, digest(change), lambda done: done.settings)
    settings = at.view.settings()
    change.check_expected(settings.values)
    previous = {name: settings.values.get(name) for name in change.values}
    if _number({**settings.values, **change.values}) > max(MOST_SETTINGS, _number(settings.values)):
        raise _too_many()
    _check_size(settings.values, {**settings.values, **change.values})
    maker = WriteMaker(at.context, submission, "settings")
    write = Write(
        request=maker.request(lambda: digest(change), (), previous),
        moves=[
            maker.setting_change(name, before, after)
            for name, after in change.values.items()
            if (before := previous[name]) != after
        ],
        settings=change.values,
        settings_version=settings.version,
    )
    return Draft(change, [], answer=previous, write=write)


def _number(settings: Mapping[str, str | None]) -> int:
    """Returns the number of settings, without properties: their names begin with a dot."""
    return sum(v is not None and not name.startswith(".") for name, v in settings.items())


def _check_size(before: Mapping[str, str | None], after: Mapping[str, str | None]) -> None:
    """Raises `InvalidInput` for settings that are too large and grow."""
    size = _size(after)
    if size > max(MOST_TEXT, _size(before)):
        raise InvalidInput(
            f"the settings would have {size:,} characters, {MOST_TEXT:,} are allowed",
            hint="remove some, or shorten the largest ones",
        )


def _size(settings: Mapping[str, str | None]) -> int:
    return sum(
        len(name) + len(value)
        for name, value in settings.items()
        if value is not None and not name.startswith(".")
    )


def _too_many() -> InvalidInput:
    return InvalidInput(
        f"a repository has at most {MOST_SETTINGS} settings",
        hint="remove some, or protect several branches with one pattern, such as `release/*`",
    )
