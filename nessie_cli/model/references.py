"""References: branches, tags, and the entries of their reflog."""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.model.commits import CommitMeta

MAX_NAME_LENGTH = 1024
"""The most characters of a reference name. An index of PostgreSQL holds at most 2,700 bytes."""
MAX_REVISION_LENGTH = 4096
"""The most characters of a text that names a commit."""
MAX_STEPS = 100
"""The most relative parts (`~N`, `^N`, `*TIME`) of a text that names a commit: each is read."""
_NAME = r"[A-Za-z](?:(?:(?!\.\.)[A-Za-z0-9./_-])*[A-Za-z0-9_-])?"
FULL_HASH = r"[0-9a-fA-F]{8,64}"
"""The pattern of a commit hash in REST: 4 to 32 bytes."""
STEP_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z"
STEPS = rf"(?:[~*^](?:{STEP_TIME}|\d+))*"
"""The pattern of relative parts in REST: a number or an instant after `~`, `^` or `*`."""
NAME_RULE = (
    "Reference name must start with a letter, followed by letters, digits, one of the ./_-"
    " characters, not end with a slash or dot, not contain '..'"
)


class ReferenceType(StrEnum):
    """The type of a reference. DETACHED occurs only in answers about a bare hash."""

    BRANCH = "BRANCH"
    TAG = "TAG"
    DETACHED = "DETACHED"


class ReflogType(StrEnum):
    """What an entry of the reflog changes."""

    BRANCH = "BRANCH"
    TAG = "TAG"
    SETTING = "SETTING"


SETTING_PREFIX = "setting:"
NAMESPACE_VALIDATION = "namespace-validation"
"""The setting that allows keys without a namespace, if it is `false`."""
"""How the reflog names settings. No reference has a colon in its name."""


def check_reference_name(name: str) -> str:
    """Returns a well-formed reference name unchanged, otherwise raises `InvalidInput`."""
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidInput(
            f"Reference name too long: it has {len(name)} characters,"
            f" max allowed length: {MAX_NAME_LENGTH}"
        )
    if not re.fullmatch(_NAME, name):
        raise InvalidInput(f"{NAME_RULE} - but was: {name}")
    return name


def check_new_reference_name(name: str) -> str:
    """Returns the name like `check_reference_name`, but refuses hashes and keywords."""
    check_reference_name(name)
    if name.upper() in ("HEAD", "DETACHED") or re.fullmatch(FULL_HASH, name):
        raise InvalidInput(
            # Sic: the original server's message.
            "Reference name mut not be HEAD, DETACHED or a potential commit ID representation."
            f" - but was {name}"
        )
    return name


def check_revision_size(text: str) -> None:
    """Raises `InvalidInput` if a text is too long to name a commit, or has too many steps."""
    if len(text) > MAX_REVISION_LENGTH:
        raise InvalidInput(
            f"Revision too long: it has {len(text)} characters,"
            f" max allowed length: {MAX_REVISION_LENGTH}"
        )
    steps = sum(map(text.count, "~^*"))
    if steps > MAX_STEPS:
        raise InvalidInput(
            f"Revision has {steps} relative parts, max allowed number: {MAX_STEPS}",
            hint="write ~N for N steps back",
        )


class ReferenceMetadata(Struct, frozen=True):
    """The metadata of a reference: its head and numbers of commits along first parents.

    `total` counts all of them. `ahead`, `behind` and `common_ancestor` compare a branch with the
    default branch; they are None for the default branch and for tags.
    """

    head: CommitMeta | None = None
    total: int | None = None
    ahead: int | None = None
    behind: int | None = None
    common_ancestor: str | None = None


class Reference(Struct, frozen=True):
    """A branch or tag and the hash it points at; a detached one has an empty name."""

    type: ReferenceType
    name: str
    hash: str
    metadata: ReferenceMetadata | None = None


class Tag(Reference, frozen=True):
    """A tag with its message, None if it has none."""

    message: str | None = None


class ReflogEntry(Struct, frozen=True):
    """One move of a reference, or one change of a setting.

    `before` is None for a creation, `after` for a deletion. `number` counts up in the whole
    repository. `operation` is the method, such as `commit` or `assign`. `message` is the subject of
    the new commit, or the message of a tag. For a setting, `reference` is `setting:NAME`, both
    hashes are None, and `value_before` and `value_after` are its values, None if it was not set.
    """

    number: int
    reference: str
    type: ReflogType
    before: str | None
    after: str | None
    time: datetime
    who: str
    operation: str
    message: str
    request_id: str
    value_before: str | None = None
    value_after: str | None = None

    @property
    def setting(self) -> str | None:
        """The name of the changed setting, or None."""
        is_setting = self.type is ReflogType.SETTING
        return self.reference.removeprefix(SETTING_PREFIX) if is_setting else None
