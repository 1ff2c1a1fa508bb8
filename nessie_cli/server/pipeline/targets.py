"""Parses the commits that requests name: references in paths, hashes and relative parts.

A segment is `[name | -][@hash][relative parts]`. Which parts may be missing follows the Nessie
specification (https://projectnessie.org/nessie-latest/api/); the messages are the original
server's.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from nessie_cli.errors import CommitNotFound, InvalidInput, ReferenceNotFound
from nessie_cli.model import (
    FULL_HASH,
    STEP_TIME,
    STEPS,
    Reference,
    ReferenceType,
    check_reference_name,
    check_revision_size,
)
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.server.pipeline.table import Match

_SEGMENT = re.compile(rf"(?P<name>[^@~*^]*)(?:@(?P<hash>{FULL_HASH})?)?(?P<steps>{STEPS})")
_SPEC = re.compile(rf"(?P<hash>{FULL_HASH})?(?P<steps>{STEPS})")
_STEP = re.compile(rf"([~*^])(?:({STEP_TIME})|(\d+))")
_HASH = re.compile(FULL_HASH)
HASH_RULE = "Hash must consist of the hex representation of 4-32 bytes"
SPEC_RULE = (
    "Hash with optional relative part must consist of either a valid commit hash (the hex"
    " representation of 4-32 bytes), or a valid relative part"
    " ('~' or '^' and a number, '*' and milliseconds or an ISO instant), or both"
)
DETACHED = "DETACHED"
_DIGITS = 64
_MOST_DIGITS = 19
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Target(NamedTuple):
    """The commit of a request: a reference (None: a bare commit), a full hash, relative parts."""

    name: str | None
    hash: str | None = None
    steps: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether it is only a name."""
        return self.name is not None and self.hash is None and not self.steps


@lru_cache(1024)
def parse_segment(text: str, default_branch: str) -> Target:
    """Parses a reference segment of a v2 path; `-` is the default branch."""
    check_revision_size(text)
    match = _SEGMENT.fullmatch(text)
    if not match:
        raise InvalidInput(
            f"reference {text!r}: write NAME, NAME@HASH or @HASH, optionally followed by relative"
            " parts (~N, ^N, *TIME)"
        )
    name, hash_, steps = match["name"], match["hash"], match["steps"]
    if name and name != "-":
        check_reference_name(name)
    if not name and not hash_ and not steps:
        raise InvalidInput(f"reference {text!r}: names neither a reference nor a commit")
    return Target(default_branch if name == "-" else name or None, hash_, steps)


def read_targets(match: Match, default_branch: str) -> list[Target] | None:
    """Returns the commits on which alone a read depends.

    Returns None if it depends on more, or if its handler refuses one of them.
    """
    endpoint, segments = match
    try:
        targets = [parse_segment(segments[name], default_branch) for name in endpoint.reads]
    except InvalidInput:
        return None
    return targets or None


def parse_spec(text: str, place: str) -> Target:
    """Parses a hash with optional relative parts, without a reference."""
    check_revision_size(text)
    match = _SPEC.fullmatch(text)
    if not text or not match:
        raise InvalidInput(f"{place}: {SPEC_RULE} - but was: {text}")
    return Target(None, match["hash"], match["steps"])


def plain_hash(text: str | None, place: str) -> str:
    """Returns a required full hash of a v1 request."""
    if text is None:
        raise InvalidInput(f"{place}: must not be null")
    if not _HASH.fullmatch(text):
        raise InvalidInput(f"{place}: {HASH_RULE}")
    return text


def check_name(text: str, place: str) -> str:
    """Returns a well-formed reference name."""
    try:
        return check_reference_name(text)
    except InvalidInput as error:
        raise InvalidInput(f"{place}: {error.message}") from None


def named(repository: ReadableRepository, name: str) -> Reference:
    """Returns an existing branch or tag."""
    # A repository reads an unknown name as an abbreviated hash; here it is only a name.
    if name == "-":
        raise ReferenceNotFound(f"Named reference '{name}' not found", name)
    return repository.reference(name)


def read_at(repository: ReadableRepository, target: Target, hash_name: str) -> Reference:
    """Returns the reference at which to read: HEAD if there is no hash.

    Relative parts may stand alone on a named reference.
    """
    if target.name is None or target.name == DETACHED:
        return Reference(ReferenceType.DETACHED, "", commit(repository, target, hash_name))
    head = named(repository, target.name)
    if target.hash is None and not target.steps:
        return head
    hash_ = _resolved(repository, target.hash or head.hash, target.steps)
    return Reference(head.type, head.name, hash_)


def commit(repository: ReadableRepository, target: Target, hash_name: str) -> str:
    """Returns the hash of an existing commit that a request must name by its full hash."""
    return _resolved(repository, absolute(target, hash_name), target.steps)


def absolute(target: Target, hash_name: str) -> str:
    """Returns the full hash of a target. Messages call it `hash_name`, such as `Expected hash`."""
    if target.hash is None:
        raise InvalidInput(
            f"{hash_name} must contain a starting commit ID."
            if target.steps
            else f"{hash_name} must be provided."
        )
    return target.hash


def expected(repository: ReadableRepository, target: Target) -> str:
    """Returns the expected hash of a write. The verb checks whether a plain hash exists."""
    hash_ = absolute(target, "Expected hash")
    _check_even(hash_)
    return _resolved(repository, hash_, target.steps) if target.steps else hash_


def _resolved(repository: ReadableRepository, hash_: str, steps: str) -> str:
    _check_even(hash_)
    if len(hash_) < _DIGITS:
        # REST does not allow abbreviated hashes.
        raise CommitNotFound(f"Commit '{hash_}' not found", hash_)
    return repository.resolve(f"@{hash_}{_canonical(steps)}").hash


def _check_even(hash_: str) -> None:
    if len(hash_) % 2:
        raise InvalidInput(f"hash length needs to be a multiple of two, was {len(hash_)}")


def _canonical(steps: str) -> str:
    """Returns relative parts for a repository: milliseconds as an instant, and numbers in range."""
    return "".join(_step(*match.groups()) for match in _STEP.finditer(steps)) if steps else ""


def _step(kind: str, time: str | None, number: str | None) -> str:
    if kind != "*":
        if number is None:
            raise InvalidInput(
                f"Illegal relative commit spec '{kind}{time}': a number must follow '{kind}'"
            )
        return f"{kind}{number}"
    return f"*{time or _instant(number or '')}"


def _instant(millis: str) -> str:
    """Returns epoch milliseconds as an ISO instant, at most the last one that can be written."""
    digits = millis.lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS or int(digits) >= 2**63:
        raise InvalidInput(
            f"Illegal relative commit spec '*{millis}': the number of milliseconds is too large"
        )
    try:
        when = _EPOCH + timedelta(milliseconds=int(digits))
    except OverflowError:
        return "9999-12-31T23:59:59Z"
    return when.isoformat().replace("+00:00", "Z")
