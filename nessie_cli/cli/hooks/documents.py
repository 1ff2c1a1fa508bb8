"""The JSON that a hook reads from stdin: the effect of a commit, merge or transplant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import structs

from nessie_cli.model import Delete, Put
from nessie_cli.repository.changes import Commit, Merge, Transplant
from nessie_cli.wire.bodies import encode_operation
from nessie_cli.wire.commits import CommitMeta
from nessie_cli.wire.contents import optional_content
from nessie_cli.wire.documents import MergeDetail
from nessie_cli.wire.references import reference_struct

if TYPE_CHECKING:
    from nessie_cli.model import Content, ContentKey, Operation
    from nessie_cli.repository.draft import Draft

Document = dict[str, Any]


def commit_document(draft: Draft[Any], change: Commit) -> Document:
    """Returns the operations of a commit, with each content before and after."""
    head, operations = draft.references[0].before, list(change.operations)
    keys = dict.fromkeys(operation.key for operation in operations)
    before = draft.view.contents(f"@{head}", keys)
    return {
        "operation": "commit",
        "branch": draft.references[0].name,
        "hash": head,
        "expectedHash": change.expected_hash,
        "commitMeta": CommitMeta.of(change.meta),
        "operations": [_operation(operation, before) for operation in operations],
    }


def _operation(operation: Operation, states: Mapping[ContentKey, Content]) -> Document:
    before = after = states.get(operation.key)
    if isinstance(operation, Put):
        after = operation.content
    elif isinstance(operation, Delete):
        after = None
    contents = {"before": optional_content(before), "after": optional_content(after)}
    return encode_operation(operation) | contents


def merge_document(draft: Draft[Any], change: Merge | Transplant) -> Document:
    """Returns the source of a merge or transplant, and its effect on each key."""
    view, outcome, options = draft.view, draft.answer(), change.options
    if isinstance(change, Merge):
        source = structs.replace(view.resolve(change.source), hash=draft.sources[0])
        about: Document = {"operation": "merge", "source": reference_struct(source)}
    else:
        metas = [view.commit_at(f"@{commit}").meta for commit in change.commits]
        about = {"operation": "transplant", "commits": list(map(CommitMeta.of, metas))}
    return about | {
        "branch": outcome.target_branch,
        "hash": outcome.effective_target_hash,
        "expectedHash": options.expected_hash,
        "commonAncestor": outcome.common_ancestor,
        "commitMeta": CommitMeta.of(options.meta)
        if options.meta and options.meta.message
        else None,
        "details": list(map(MergeDetail.of, outcome.details)),
    }
