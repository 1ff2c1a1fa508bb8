"""Hints after an error: similar names, or a command that helps."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import islice

from nessie_cli import errors
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.errors.suggestions import did_you_mean
from nessie_cli.model import ContentKey
from nessie_cli.repository.urls import is_server

_LISTING: Mapping[type[errors.NotFound], str] = {
    errors.ReferenceNotFound: "`nessie branch` and `nessie tag` list the references",
    errors.ContentNotFound: "`nessie content list` lists the keys",
}
_CANDIDATE_DIGITS = 16
"""Digits of a candidate hash.

More than elsewhere, because these hashes share their first digits.
"""
MOST_NAMES = 10_000
"""The maximum number of names that are compared with a mistyped one."""


def hints_for(error: errors.NessieError, app: Invocation) -> list[str]:
    """Returns the lines that follow an error.

    There are none if what they depend on cannot be read: the first error is the one to report.
    """
    try:
        return _hints_for(error, app)
    except errors.NessieError:
        return []


def _hints_for(error: errors.NessieError, app: Invocation) -> list[str]:
    if isinstance(error, errors.AmbiguousHash):
        return [f"  {hash_[:_CANDIDATE_DIGITS]} {subject}" for hash_, subject in error.candidates]
    if isinstance(error, errors.ReferenceNotFound | errors.ContentNotFound | errors.CommitNotFound):
        return (
            _unrelated(error) or _without_current_reference(error, app) or _near_names(error, app)
        )
    if isinstance(error, errors.StoreNotFound):
        return _how_to_make(error.name) if error.name else _of_pynessie()
    if isinstance(error, errors.StoreUnavailable):
        return _of_store(error, app)
    if isinstance(error, errors.ReferenceMoved):
        lines = [line for conflict in error.conflicts for line in error.ways_out.of(conflict)]
        return [f"`{line.command}` repeats it at the current commit" for line in lines]
    return []


def _of_store(error: errors.StoreUnavailable, app: Invocation) -> list[str]:
    if isinstance(error, errors.OutcomeUnknown):
        return [_of_unknown_outcome(error.request_id, app)]
    is_damage = isinstance(error, errors.DamagedObject) and "fsck" not in app.argv
    return ["`nessie fsck` lists all damage"] if is_damage else []


def _how_to_make(url: str) -> list[str]:
    """Hints how to create a store. This is impossible through a server."""
    return [] if is_server(url) else ["`nessie init --store URL` creates a store"]


def _of_pynessie() -> list[str]:
    """Names the setting that replaces pynessie's settings, which are not read."""
    from nessie_cli.workspace.locations import user_config

    path = user_config().with_name("config.yaml")
    return (
        [
            (
                f"{path} belongs to pynessie and is not read; `nessie config set"
                " profile.NAME.store URL --user`"
                " names a server"
            )
        ]
        if path.is_file()
        else []
    )


def _of_unknown_outcome(request_id: str, app: Invocation) -> str:
    if _is_kept(request_id, app):
        return "Repeat the command: it asks the store for the outcome before it writes again"
    return "Check the outcome with `nessie log` and `nessie branch` before you repeat the command"


def _is_kept(request_id: str, app: Invocation) -> bool:
    """Whether the workspace keeps the request id, so that repeating the command is safe."""
    workspace = app.store.workspace
    if not request_id or workspace is None:
        return False
    from nessie_cli.workspace.batch import BatchFile
    from nessie_cli.workspace.requests import Requests

    # A file that cannot be read says nothing.
    with suppress(errors.NessieError):
        batch = BatchFile(workspace).read()
        if batch is not None and batch.request_id == request_id:
            return True
    with suppress(errors.NessieError):
        return Requests(workspace).has(request_id)
    return False


def _unrelated(error: errors.NotFound) -> list[str]:
    shares_nothing = error.message.startswith("No common ancestor")
    return (
        ["Their histories share no commit; `nessie merge --unrelated` merges them anyway"]
        if shares_nothing
        else []
    )


def _without_current_reference(error: errors.NotFound, app: Invocation) -> list[str]:
    """Hints what to do if the current reference is gone. Not needed if the error has a hint."""
    workspace, name = app.store.workspace, error.name
    if (
        not isinstance(error, errors.ReferenceNotFound)
        or error.hint
        or not workspace
        or workspace.current_reference() != name
    ):
        return []
    return [
        (
            f"'{name}' is the current reference: `nessie switch REF` selects another one; `nessie"
            " undo"
            f" {name}` restores it if it was deleted"
        )
    ]


def _near_names(error: errors.NotFound, app: Invocation) -> list[str]:
    """Suggests references or keys."""
    if not app.is_open or not error.name:
        return []
    if isinstance(error, errors.ReferenceNotFound) and (hint := _of_key(error.name, app)):
        return [hint]
    names = _known_names(error, app)
    if error.name in names:
        return [f"{app.head} has it"]
    if (
        isinstance(error, errors.ReferenceNotFound)
        and (here := error.name.partition("/")[2]) in names
    ):
        return [
            (
                f"'{here}' is its name here: branches live in the store, and there are no"
                " remote-tracking branches"
            )
        ]
    if suggestion := did_you_mean(error.name, names):
        return [suggestion.removeprefix("; ").capitalize()]
    return [_LISTING[type(error)]] if names and type(error) in _LISTING else []


def _known_names(error: errors.NotFound, app: Invocation) -> list[str]:
    repository = app.repository()
    if isinstance(error, errors.ContentNotFound):
        return [str(entry.key) for entry in islice(repository.entries(app.head), MOST_NAMES)]
    return [reference.name for reference in islice(repository.references(), MOST_NAMES)]


def _of_key(word: str, app: Invocation) -> str:
    """Returns a hint if a word is a key, not a reference."""
    try:
        key = ContentKey.parse(word)
    except errors.InvalidInput:
        return ""
    if key not in app.repository().contents(app.head, [key]):
        return ""
    way = f"`--prefix {key}`" if "audit" in app.argv else f"keys follow --: `-- {key}`"
    return f"{key} is a key; {way}"
