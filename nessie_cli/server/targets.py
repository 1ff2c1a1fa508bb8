"""Which commit a request means: reference segments of paths, hashes with relative parts, and the rules about which of them may be missing.

A segment is `[name | -][@hash][relative parts]`. What a rule says is in reference 3.2 to 3.5; the texts of the errors are the original's.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from nessie_cli.errors import CommitNotFound, InvalidInput, ReferenceNotFound
from nessie_cli.model import Reference, ReferenceType, check_reference_name
from nessie_cli.repository.base import Repository

_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z"
_STEPS = rf"(?:[~*^](?:{_TIME}|\d+))*"
_SEGMENT = re.compile(rf"(?P<name>[^@~*^]*)(?:@(?P<hash>[0-9a-fA-F]{{8,64}})?)?(?P<steps>{_STEPS})")
_SPEC = re.compile(rf"(?P<hash>[0-9a-fA-F]{{8,64}})?(?P<steps>{_STEPS})")
_STEP = re.compile(rf"([~*^])(?:({_TIME})|(\d+))")
_HASH = re.compile(r"[0-9a-fA-F]{8,64}")
HASH_RULE = "Hash must consist of the hex representation of 4-32 bytes"
SPEC_RULE = (
    "Hash with optional relative part must consist of either a valid commit hash (the hex representation of 4-32 bytes), or a valid relative part"
    " ('~' or '^' and a number, '*' and milliseconds or an ISO instant), or both"
)
DETACHED = "DETACHED"
_DIGITS = 64
_MOST_DIGITS = 19
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Target(NamedTuple):
    """What a request names: a reference (None: a bare commit), an absolute hash, relative parts."""

    name: str | None
    hash: str | None = None
    steps: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether it is a name alone."""
        return self.name is not None and self.hash is None and not self.steps


def parse_segment(text: str, default_branch: str) -> Target:
    """A reference segment of a v2 path; `-` is the default branch."""
    found = _SEGMENT.fullmatch(text)
    if not found:
        raise InvalidInput(
            f"reference {text!r}: write NAME, NAME@HASH or @HASH, and relative parts (~N, ^N, *TIME) behind them"
        )
    name, hash_, steps = found["name"], found["hash"], found["steps"]
    if name and name != "-":
        check_reference_name(name)
    if not name and not hash_ and not steps:
        raise InvalidInput(f"reference {text!r}: names neither a reference nor a commit")
    return Target(default_branch if name == "-" else name or None, hash_, steps)


def parse_spec(text: str, place: str) -> Target:
    """A hash with optional relative parts, not bound to a reference."""
    found = _SPEC.fullmatch(text)
    if not text or not found:
        raise InvalidInput(f"{place}: {SPEC_RULE} - but was: {text}")
    return Target(None, found["hash"], found["steps"])


def plain_hash(text: str | None, place: str) -> str:
    """A required absolute hash of a v1 request."""
    if text is None:
        raise InvalidInput(f"{place}: must not be null")
    if not _HASH.fullmatch(text):
        raise InvalidInput(f"{place}: {HASH_RULE}")
    return text


def check_name(text: str, place: str) -> str:
    """A well-formed reference name."""
    try:
        return check_reference_name(text)
    except InvalidInput as error:
        raise InvalidInput(f"{place}: {error.message}") from None


def named(repository: Repository, name: str) -> Reference:
    """An existing branch or tag."""
    # A repository takes a bare word for a shortened hash when no reference has that name; here it is a name and nothing else.
    if name == "-":
        raise ReferenceNotFound(f"Named reference '{name}' not found", name)
    return repository.reference(name)


def read_at(repository: Repository, target: Target, what: str) -> Reference:
    """The reference at which to read: HEAD where no hash is given; on a named reference relative parts may stand alone (reference 3.4)."""
    if target.name is None or target.name == DETACHED:
        return Reference(ReferenceType.DETACHED, "", commit(repository, target, what))
    head = named(repository, target.name)
    if target.hash is None and not target.steps:
        return head
    hash_ = _resolved(repository, target.hash or head.hash, target.steps)
    return Reference(head.type, head.name, hash_)


def commit(repository: Repository, target: Target, what: str) -> str:
    """The hash of a commit that a request must name absolutely; it has to exist."""
    return _resolved(repository, absolute(target, what), target.steps)


def absolute(target: Target, what: str) -> str:
    """The absolute hash of a target; raises where there is none. `what` is how the original calls it (`Expected hash`)."""
    if target.hash is None:
        raise InvalidInput(
            f"{what} must contain a starting commit ID."
            if target.steps
            else f"{what} must be provided."
        )
    return target.hash


def expected(repository: Repository, target: Target, what: str = "Expected hash") -> str:
    """The expected hash of a write. Without relative parts it is taken as it is: whether it exists is for the verb to say."""
    hash_ = absolute(target, what)
    _check_even(hash_)
    return _resolved(repository, hash_, target.steps) if target.steps else hash_


def _resolved(repository: Repository, hash_: str, steps: str) -> str:
    _check_even(hash_)
    if len(hash_) < _DIGITS:
        # No abbreviations on the wire: a short id is an id that nothing has (reference 3.1).
        raise CommitNotFound(f"Commit '{hash_}' not found", hash_)
    return repository.resolve(f"@{hash_}{_canonical(steps)}").hash


def _check_even(hash_: str) -> None:
    if len(hash_) % 2:
        raise InvalidInput(f"hash length needs to be a multiple of two, was {len(hash_)}")


def _canonical(steps: str) -> str:
    """Relative parts as a repository reads them: milliseconds as an instant, and no time where a number belongs."""
    return "".join(_step(*found.groups()) for found in _STEP.finditer(steps)) if steps else ""


def _step(kind: str, time: str | None, number: str | None) -> str:
    if kind != "*":
        if number is None:
            raise InvalidInput(
                f"Illegal relative commit spec '{kind}{time}': a number belongs behind '{kind}'"
            )
        return f"{kind}{number}"
    return f"*{time or _instant(number or '')}"


def _instant(millis: str) -> str:
    """Epoch milliseconds as an ISO instant. A time beyond all commits is as good as the last one that can be written."""
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
