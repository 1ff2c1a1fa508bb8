"""Maps changes to the functions that draft them. Their modules are loaded on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nessie_cli.repository.changes import (
    AssignReference,
    Change,
    Commit,
    CreateReference,
    DeleteReference,
    Merge,
    PutSettings,
    RenameReference,
    Transplant,
)
from nessie_cli.repository.draft import Draft
from nessie_cli.repository.requests import Submission
from nessie_cli.repository.snapshot import Snapshot

Verb = Callable[[Snapshot, Any, Submission], Draft[Any]]


def verb_of(change: Change) -> Verb:
    """Returns the function that drafts a change."""
    if isinstance(change, Commit):
        from nessie_cli.repository.commits import commit

        return commit
    if isinstance(change, Merge):
        from nessie_cli.repository.merges import merge

        return merge
    if isinstance(change, Transplant):
        from nessie_cli.repository.transplants import transplant

        return transplant
    if isinstance(change, PutSettings):
        from nessie_cli.repository.settings import put_settings

        return put_settings
    from nessie_cli.repository import references

    verbs: Mapping[type, Verb] = {
        CreateReference: references.create,
        AssignReference: references.assign,
        RenameReference: references.rename,
        DeleteReference: references.delete,
    }
    return verbs[type(change)]
