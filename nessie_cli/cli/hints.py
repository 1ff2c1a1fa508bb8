"""The line after an error: the nearest name, or the command that helps. Loaded on the way to an error only."""

from __future__ import annotations

from itertools import islice

from nessie_cli import errors
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.suggestions import did_you_mean
from nessie_cli.model import ContentKey

_OF_REFLOG = "`nessie reflog REF` lists where a reference was; REF@HASH is it there, and REF*yesterday goes back in time"
MOST_NAMES = 10_000
"""How many names are compared with a mistyped one before the search gives up."""


def hints_for(error: errors.NessieError, call: Invocation) -> list[str]:
    """The lines that may follow an error; none where there is nothing to say."""
    if isinstance(error, errors.AmbiguousHash):
        return [f"  {hash_[:16]} {subject}" for hash_, subject in error.candidates]
    if isinstance(error, errors.ReferenceNotFound | errors.ContentNotFound | errors.CommitNotFound):
        return _unrelated(error) or _near_names(error, call)
    if isinstance(error, errors.StoreNotFound):
        return _of_pynessie() if "nessie init" in error.message else _how_to_make(error)
    if isinstance(error, errors.OutcomeUnknown):
        from nessie_cli.cli.once import hints_for_unknown

        return list(hints_for_unknown(error, call))
    if isinstance(error, errors.DamagedObject):
        return [] if "fsck" in call.argv else ["`nessie fsck` lists everything that is damaged"]
    return [_OF_REFLOG] if isinstance(error, errors.InvalidInput) and "@{" in error.message else []


def _how_to_make(error: errors.StoreNotFound) -> list[str]:
    """Nothing is made through a server."""
    return [] if error.message.startswith("server ") else ["`nessie init --store URL` makes a store"]


def _of_pynessie() -> list[str]:
    """Where to put what pynessie's own settings say; they are not read."""
    from nessie_cli.workspace.user import user_config_path

    path = user_config_path().with_name("config.yaml")
    return [f"{path} is pynessie's and not read; `nessie config set profile.NAME.store URL --user` names a server"] if path.is_file() else []


def _unrelated(error: errors.NotFound) -> list[str]:
    shares_nothing = error.message.startswith("No common ancestor")
    return ["Their histories share nothing; `nessie merge --unrelated` merges them all the same"] if shares_nothing else []


def _as_key(word: str, call: Invocation) -> str:
    """What to say where the word that is no reference is a key; an empty text where it is none."""
    try:
        key = ContentKey.parse(word)
    except errors.InvalidInput:
        return ""
    if key not in call.repository().contents(call.head, [key]):
        return ""
    way = f"`--prefix {key}`" if "audit" in call.argv else f"keys stand behind --: `-- {key}`"
    return f"{key} is a key; {way}"


def _near_names(error: errors.NotFound, call: Invocation) -> list[str]:
    """The references or keys that look like the missing one; a store that fails here has nothing to add to the error."""
    if not call.is_open or not error.name:
        return []
    repository = call.repository()
    try:
        if isinstance(error, errors.ReferenceNotFound) and (said := _as_key(error.name, call)):
            return [said]
        if isinstance(error, errors.ContentNotFound):
            known = [str(entry.key) for entry in islice(repository.entries(call.head), MOST_NAMES)]
        else:
            known = [reference.name for reference in islice(repository.references(), MOST_NAMES)]
    except errors.NessieError:
        return []
    if error.name in known:
        return [f"{call.head} has it"]
    if isinstance(error, errors.ReferenceNotFound) and (here := error.name.partition("/")[2]) in known:
        return [f"'{here}' is what it is called: branches are where the store is, none of them is a copy"]
    found = did_you_mean(error.name, known)
    return [found.removeprefix("; ").capitalize()] if found else []
