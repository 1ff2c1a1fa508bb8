"""API v1: decodes requests, and validates them in the order of the original server.

An unreadable body is reported first and alone. Then one message reports all missing or invalid
parameters, together with a missing body.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from nessie_cli.errors import InvalidInput
from nessie_cli.model import ReferenceType
from nessie_cli.server.pipeline.call import Call
from nessie_cli.server.pipeline.targets import Target, check_name, plain_hash
from nessie_cli.wire.decode import ReferenceBody, decode_reference

_MODEL = "org.projectnessie.model"
_BREAKS_A_RULE = " - but was: "
_Body = TypeVar("_Body")


class Verb(NamedTuple):
    """A method of the original server's API, and the parameter names in its messages."""

    method: str
    reference: str
    body: str = ""


def check_name_v1(name: str, place: str) -> str:
    """Returns a well-formed name; `-` is allowed, but not as an alias."""
    return name if name == "-" else check_name(name, place)


def target_of(call: Call, verb: Verb) -> Target:
    """Returns the reference and the expected hash of a write that has no body."""
    target, violations = _judged_target(call, verb)
    if violations:
        raise InvalidInput(", ".join(violations))
    return target


def target_and_body(call: Call, verb: Verb, decode: Callable[[Any], _Body]) -> tuple[Target, _Body]:
    """Returns the reference and the expected hash of a write, and its body decoded by `decode`."""
    body = call.decoded(decode)
    target, violations = _judged_target(call, verb)
    if body is None:
        violations.append(f"{verb.method}.{verb.body}: must not be null")
    if body is None or violations:
        raise InvalidInput(", ".join(violations))
    return target, body


def _judged_target(call: Call, verb: Verb) -> tuple[Target, list[str]]:
    name, hash_ = call.segments["ref"], call.text("expectedHash")
    violations: list[str] = []
    try:
        plain_hash(hash_, f"{verb.method}.expectedHash")
    except InvalidInput as error:
        violations.append(error.message)
    try:
        check_name_v1(name, f"{verb.method}.{verb.reference}")
    except InvalidInput as error:
        violations.append(error.message)
    return Target(name, hash_), violations


def decode_reference_v1(value: Any) -> ReferenceBody:
    """Decodes a reference in a body.

    Messages for an unknown type and an invalid name or hash are the original server's, because its
    published tests compare them.
    """
    try:
        return decode_reference(value)
    except InvalidInput as error:
        raise InvalidInput(_in_original_words(value, error.message)) from None


def _in_original_words(value: Any, message: str) -> str:
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str):
        return message
    if kind not in ReferenceType.__members__:
        return (
            f"Could not resolve type id '{kind}' as a subtype of `{_MODEL}.Reference`: known type"
            f" ids = [{', '.join(ReferenceType)}]"
        )
    place, _, problem = message.partition(": ")
    if _BREAKS_A_RULE not in problem:
        return message
    return (
        f"Cannot construct instance of `{_MODEL}.Immutable{kind.capitalize()}`, problem:"
        f" {problem}\n at {place}"
    )
