"""The scalar types of the JSON, and instants as text.

In JSON Schemas, a type with a title has a definition of this name (`schemas`).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, overload

from msgspec import Meta

from nessie_cli.model import ConflictType, MergeBehavior

Json = dict[str, Any]
"""An object of JSON."""

SHA_256: Json = {"pattern": "^[0-9a-f]{64}$"}
"""The schema of a hash in full."""

Hash = Annotated[
    str,
    Meta(
        title="Hash",
        description="The hash of a commit, in full.",
        extra_json_schema=SHA_256,
    ),
]
Digest = Annotated[
    str,
    Meta(
        title="Digest",
        description="The hash of an object that is not a commit.",
        extra_json_schema=SHA_256,
    ),
]
Instant = Annotated[
    str,
    Meta(
        title="Instant",
        description="An ISO instant in UTC with no fraction, or with three or six digits of it.",
        extra_json_schema={
            "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
            r"(\.[0-9]{3}|\.[0-9]{6})?Z$"
        },
    ),
]
ContentId = Annotated[
    str,
    Meta(
        title="ContentId",
        description="The identity of a content, kept through renames and merges; usually a UUID.",
    ),
]
ConflictKind = Annotated[
    str,
    Meta(
        title="ConflictKind",
        description="The kind of a conflict.",
        extra_json_schema={"enum": [str(kind) for kind in ConflictType]},
    ),
]
Count = Annotated[
    int,
    Meta(title="Count", description="How many there are.", extra_json_schema={"minimum": 0}),
]
Behavior = Annotated[
    str, Meta(extra_json_schema={"enum": [str(behavior) for behavior in MergeBehavior]})
]
BranchOrTag = Annotated[str, Meta(extra_json_schema={"enum": ["BRANCH", "TAG"]})]
Null = Annotated[Any, Meta(extra_json_schema={"type": "null"})]
"""An attribute that is null in our answers, and is not read from those of other servers."""


@overload
def instant(when: datetime) -> str: ...
@overload
def instant(when: None) -> None: ...
def instant(when: datetime | None) -> str | None:
    """Returns an ISO instant in UTC ending in `Z`, with no, three or six digits of a fraction."""
    if when is None:
        return None
    # Most are in UTC already, and a page has a hundred of them.
    text = (when if when.tzinfo is UTC else when.astimezone(UTC)).isoformat().removesuffix("+00:00")
    return text.removesuffix("000") + "Z" if when.microsecond else text + "Z"


def empty_list() -> list[Any]:
    """The factory of a list that is always written."""
    # msgspec leaves out an empty list of the factory `list`, but not one of any other factory.
    return []
