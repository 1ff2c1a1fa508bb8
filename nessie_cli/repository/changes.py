"""The changes of a repository: one value for each method that writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, Self, TypeVar

from msgspec import Struct, structs

from nessie_cli.errors import ReferenceConflict
from nessie_cli.model import (
    CombinationRules,
    CommitMeta,
    CommitResult,
    ContentPlace,
    KeyBehavior,
    MergeBehavior,
    MergeResult,
    Operation,
    Reference,
    ReferenceType,
)
from nessie_cli.revisions import Revision

A = TypeVar("A")
AnyRevision = str | Revision


class Change(Struct, Generic[A], frozen=True):
    """A change of a repository, as a value. `A` is the type of its answer."""

    @property
    def is_dry_run(self) -> bool:
        """Whether the change only asks for its answer."""
        return False

    def repeatable(self) -> Self:
        """Returns the change in a form that can be drafted more than once."""
        return self


class TablePlaces(Struct, frozen=True):
    """Where the three states of a table can be read that is to be combined on a branch.

    `description` names the merge or revert in the summary of the new snapshot. `dry_run` writes
    nothing.
    """

    branch: str
    base: ContentPlace
    ours: ContentPlace
    theirs: ContentPlace
    description: str
    dry_run: bool = False


class MergeOptions(Struct, frozen=True):
    """The options that merge and transplant share.

    `meta` replaces the generated message of a merge, or the metadata of a transplanted commit if
    there is only one. `behaviors` decide for their contents, `default_behavior` for the others.
    `per_key` applies the rules of the original server, for which each key is a content of its own;
    otherwise a rename on one side and a change on the other combine. `unrelated` allows a merge
    without a common ancestor. `any_order` allows transplanting commits that are not each the
    parent of the next. `expected_hash` must be a commit of the branch; unless `per_key`,
    the keys that are changed must be the same there as at HEAD. `dry_run` writes nothing.
    `combination` asks a `combining_server` to combine the tables in conflict.
    `allow_failed_run` allows commits of a run that has failed.
    """

    meta: CommitMeta | None = None
    behaviors: Sequence[KeyBehavior] = ()
    default_behavior: MergeBehavior = MergeBehavior.NORMAL
    per_key: bool = False
    unrelated: bool = False
    any_order: bool = False
    expected_hash: str | None = None
    dry_run: bool = False
    combination: CombinationRules | None = None
    allow_failed_run: bool = False


class Commit(Change[CommitResult], frozen=True):
    """Put one commit with these operations on a branch.

    `operations` may be a generator of millions.
    """

    branch: str
    operations: Iterable[Operation]
    meta: CommitMeta
    expected_hash: str | None = None
    dry_run: bool = False

    @property
    def is_dry_run(self) -> bool:
        """Whether the change only asks for its answer."""
        return self.dry_run

    def repeatable(self) -> Self:
        """Returns the change with its operations as a list, because a generator ends."""
        return structs.replace(self, operations=list(self.operations))


class Merge(Change[MergeResult], frozen=True):
    """Merge the changes of `source` since the merge base into a branch, as one commit."""

    branch: str
    source: AnyRevision
    options: MergeOptions = MergeOptions()

    @property
    def is_dry_run(self) -> bool:
        """Whether the change only asks for its answer."""
        return self.options.dry_run


class Transplant(Change[MergeResult], frozen=True):
    """Apply commits (hashes) one by one onto a branch, in this order.

    Each must be the parent of the next, unless `any_order` is set.
    """

    branch: str
    commits: Sequence[str]
    options: MergeOptions = MergeOptions()

    @property
    def is_dry_run(self) -> bool:
        """Whether the change only asks for its answer."""
        return self.options.dry_run


class CreateReference(Change[Reference], frozen=True, omit_defaults=True):
    """Create a branch or tag at a hash. Only a tag may have a message.

    An empty message is not encoded, so the digest of a request without one does not change.
    """

    type: ReferenceType
    name: str
    target: str
    message: str = ""


class AssignReference(Change[Reference], frozen=True, omit_defaults=True):
    """Move a reference that is at `expected_hash` to another commit.

    `allow_failed_run` allows commits of a run that has failed. If it is None, as from clients of
    plain REST, a setting of the repository decides.
    """

    name: str
    target: str
    expected_hash: str
    allow_failed_run: bool | None = None


class RenameReference(Change[Reference], frozen=True):
    """Rename a reference that is at `expected_hash`."""

    old: str
    new: str
    expected_hash: str


class DeleteReference(Change[Reference], frozen=True):
    """Delete a reference that is at `expected_hash`."""

    name: str
    expected_hash: str


class PutSettings(Change[Mapping[str, str | None]], frozen=True, omit_defaults=True):
    """Set settings of the repository by name; None removes one.

    `expected` has the values that settings must have now (None: it is not set). Without it, the
    digest of a request is what it was before there was one.
    """

    values: Mapping[str, str | None]
    expected: Mapping[str, str | None] = {}

    def check_expected(self, settings: Mapping[str, str]) -> None:
        """Raises `ReferenceConflict` if a setting does not have its expected value."""
        for name, value in self.expected.items():
            if settings.get(name) != value:
                raise ReferenceConflict(f"setting {name} has changed meanwhile")
