"""The values that travel between all rooms: frozen dataclasses without I/O, clock or environment."""

from nessie_cli.model.commits import NO_ANCESTOR, CommitMeta, LogEntry
from nessie_cli.model.conflicts import Conflict, ConflictType, Rename
from nessie_cli.model.contents import (
    CONTENT_TYPES,
    TYPE_OF_PAYLOAD,
    UDF,
    Content,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    Namespace,
    UnknownContent,
    content_from,
)
from nessie_cli.model.keys import ContentKey
from nessie_cli.model.operations import Delete, Operation, Put, Unchanged
from nessie_cli.model.references import (
    Reference,
    ReferenceMetadata,
    ReferenceType,
    ReflogEntry,
    check_new_reference_name,
    check_reference_name,
)
from nessie_cli.model.results import (
    ChangedKey,
    CommitResult,
    DiffEntry,
    Entry,
    KeyBehavior,
    KeyRange,
    MergeBehavior,
    MergeDetail,
    MergeResult,
    Problem,
    ProblemKind,
    RepositoryConfig,
)
from nessie_cli.model.secrets import Secret

__all__ = [
    "CONTENT_TYPES",
    "NO_ANCESTOR",
    "TYPE_OF_PAYLOAD",
    "UDF",
    "ChangedKey",
    "CommitMeta",
    "CommitResult",
    "Conflict",
    "ConflictType",
    "Content",
    "ContentKey",
    "Delete",
    "DeltaLakeTable",
    "DiffEntry",
    "Entry",
    "IcebergTable",
    "IcebergView",
    "KeyBehavior",
    "KeyRange",
    "LogEntry",
    "MergeBehavior",
    "MergeDetail",
    "MergeResult",
    "Namespace",
    "Operation",
    "Problem",
    "ProblemKind",
    "Put",
    "Reference",
    "ReferenceMetadata",
    "ReferenceType",
    "ReflogEntry",
    "Rename",
    "RepositoryConfig",
    "Secret",
    "Unchanged",
    "UnknownContent",
    "check_new_reference_name",
    "check_reference_name",
    "content_from",
]
