"""The drafting function of each change of the embedded repository."""

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
from nessie_cli.repository.draft import ChangeSubmission, Draft
from nessie_cli.repository.snapshot import StoreSnapshot


def drafting(change: Change[Any]) -> Callable[[StoreSnapshot, Any, ChangeSubmission], Draft[Any]]:
    """Returns the function that drafts a change. Its module is loaded on first use."""
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

    functions: Mapping[type, Callable[[StoreSnapshot, Any, ChangeSubmission], Draft[Any]]] = {
        CreateReference: references.create,
        AssignReference: references.assign,
        RenameReference: references.rename,
        DeleteReference: references.delete,
    }
    return functions[type(change)]
