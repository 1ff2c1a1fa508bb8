"""Applies decisions to staged operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nessie_cli.cli.errors.resolutions import command_line, key_option
from nessie_cli.cli.merge.decisions import Choice, Decision
from nessie_cli.cli.staging.resolutions import OF_NAMESPACES
from nessie_cli.cli.staging.restaging import Restager
from nessie_cli.errors import InvalidInput, ReferenceConflict
from nessie_cli.inspection.text import short_hash
from nessie_cli.model import Conflict, ConflictType, Content, ContentKey, Namespace
from nessie_cli.repository.base import Repository
from nessie_cli.workspace.content_edits import ContentEdit, without_keys
from nessie_cli.workspace.staging import StagedList, delete_all, effective, put, replace

Decided = Mapping[ContentKey, tuple[Conflict, Decision]]
"""The conflicts of a batch, by key, with their decisions."""


class Resolved(NamedTuple):
    """The staged operations after decisions, and the changes of other contents that are dropped."""

    staged: StagedList
    dropped: tuple[ContentEdit, ...] = ()


class BatchResolution:
    """Resolves conflicts of a batch, begun at `base`, with the hash `head` of a branch.

    `OURS` keeps the state at `head`, `THEIRS` stages the changes again on that state. `options` are
    the global options of the command lines in hints.
    """

    def __init__(
        self, repository: Repository, branch: str, head: str, base: str, options: Sequence[str]
    ) -> None:
        self._repository, self._head = repository, head
        self._options = options
        self._restager = Restager(repository, branch, head, base, options)

    def resolved(self, staged: StagedList, decided: Decided, error: ReferenceConflict) -> Resolved:
        """Returns the batch with the conflicts of an error resolved.

        Raises `InvalidInput` if a staged change cannot be kept, if decisions contradict each other,
        or if they delete a content that no effect of an answer names.
        """
        for key, (_, decision) in decided.items():
            _refuse_foreign_elements(key, decision.content)
        of_contents = {
            key: decision
            for key, (conflict, decision) in decided.items()
            if conflict.type not in OF_NAMESPACES or decision.content is not None
        }
        current = {key for key, decision in of_contents.items() if decision.choice is Choice.OURS}
        proposed = {
            key: decision.content for key, decision in of_contents.items() if key not in current
        }
        for key, (conflict, decision) in decided.items():
            if key in of_contents:
                continue
            if decision.choice is not Choice.OURS:
                staged = self._with_namespace(staged, key, conflict)
            elif conflict.type is ConflictType.NAMESPACE_NOT_EMPTY:
                current.add(key)
            else:
                current |= {item.key for item in staged if _is_below(item.key, key)}
        left, removed = without_keys(staged, current) if current else (staged, [])
        _refuse_contradiction(removed, current, set(proposed))
        # The answer about a content says itself what it drops.
        dropped = tuple(edit for edit in removed if (edit.old or edit.new) not in of_contents)
        if not proposed:
            return Resolved(left, dropped)
        restaged = self._restager.restaged(left, proposed)
        if restaged.replaced:
            named = {
                key
                for own in proposed
                for key in error.ways_out.deleted_by_proposed(decided[own][0])
            }
            deleted = sorted(set(restaged.replaced) - named)
            _refuse_unnamed(deleted, set(proposed), error, self._options)
        return Resolved(restaged.staged, dropped)

    def _with_namespace(
        self, staged: StagedList, key: ContentKey, conflict: Conflict
    ) -> StagedList:
        """Returns the batch that also creates a namespace, or deletes its contents.

        Deletes only the contents that the conflict names.
        """
        if conflict.type is ConflictType.NAMESPACE_NOT_EMPTY:
            named = [deleted for option in conflict.options for deleted in option.deletes]
            present = self._repository.contents(self._head, named)
            return delete_all(staged, present, present.get)
        state = self._repository.contents(self._head, [key]).get
        namespace = Namespace(elements=key.elements)
        if conflict.type is ConflictType.NAMESPACE_ABSENT or effective(staged, key, state) is None:
            return put(staged, key, namespace, state)
        return replace(staged, key, namespace, state)


def _is_below(key: ContentKey, namespace: ContentKey) -> bool:
    return key != namespace and key.starts_with(namespace)


def _refuse_foreign_elements(key: ContentKey, content: Content | None) -> None:
    """Raises `InvalidInput` for a namespace whose elements are not its key."""
    if isinstance(content, Namespace) and content.elements != key.elements:
        raise InvalidInput(
            f"{key}: the elements of the namespace to store are not its key",
            hint=f"its elements are {list(key.elements)}",
        )


def _refuse_contradiction(
    removed: list[ContentEdit], current: set[ContentKey], proposed: set[ContentKey]
) -> None:
    """Raises `InvalidInput` if a change that a decision keeps is dropped by another one."""
    for edit in removed:
        if edit.keys & proposed:
            key, others = min(edit.keys & proposed), ", ".join(map(str, sorted(current)))
            raise InvalidInput(
                f"the decisions contradict each other: the staged change of {key} cannot be kept,"
                f" because the current state of {others} is kept",
                hint="decide in the same way about the keys of a rename, a swap or a chain",
            )


def _refuse_unnamed(
    deleted: Sequence[ContentKey],
    proposed: set[ContentKey],
    error: ReferenceConflict,
    options: Sequence[str],
) -> None:
    """Raises `InvalidInput` if decisions delete contents that no effect of an answer names.

    The effects are those of keeping all staged changes. If one of them is not kept, a content that
    it moves away stays at a key that another one takes.
    """
    for key in deleted:
        connected = error.ways_out.connected_by_proposed(key)
        others = [other for other in connected if other not in proposed]
        if not others:
            continue
        expected = ("--expected-hash", short_hash(error.head)) if error.head else ()
        ways: list[str] = []
        for side in ("--proposed", "--current"):
            keys = [word for other in connected for word in key_option(side, str(other))]
            ways.append(f"`{command_line(*options, 'resolve', *keys, *expected)}`")
        raise InvalidInput(
            f"the decisions contradict each other: keeping the staged change of {key} would delete"
            f" the present {key}, because the staged change of {', '.join(map(str, others))} is"
            " not kept",
            hint=f"decide in the same way about all of them: {', or '.join(ways)}",
        )
