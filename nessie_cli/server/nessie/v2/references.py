"""API v2: references."""

from __future__ import annotations

from msgspec import structs

from nessie_cli.errors import InvalidInput, ReferenceNotFound
from nessie_cli.model import Reference, ReferenceType
from nessie_cli.repository.changes import AssignReference, CreateReference, DeleteReference
from nessie_cli.server.nessie import listings
from nessie_cli.server.nessie.extensions import message_given
from nessie_cli.server.pipeline.call import Answer, Call
from nessie_cli.server.pipeline.targets import (
    DETACHED,
    Target,
    check_name,
    commit,
    expected,
    named,
    parse_segment,
    parse_spec,
)
from nessie_cli.wire.decode import ReferenceBody, decode_reference
from nessie_cli.wire.extensions import ALLOW_FAILED_RUN
from nessie_cli.wire.references import reference_struct
from nessie_cli.wire.rest import ReferencesResponse, SingleReference

_TYPES = {
    "branch": ReferenceType.BRANCH,
    "BRANCH": ReferenceType.BRANCH,
    "tag": ReferenceType.TAG,
    "TAG": ReferenceType.TAG,
}
_TYPE_RULE = "Reference type name must be either 'branch' or 'tag'"


def list_references(call: Call) -> Answer:
    """Returns branches, then tags, by name."""
    page = listings.references(call, call.number("max-records"), call.text("page-token"))
    return Answer(page.body(ReferencesResponse, reference_struct))


def plain_name(call: Call, forbidden: str) -> str:
    """Returns the reference of a path that must not have a hash."""
    target = parse_segment(call.segments["ref"], call.default_branch)
    if not target.is_plain:
        raise InvalidInput(f"Hashes are not allowed when fetching {forbidden}")
    assert target.name is not None
    return target.name


def get_reference(call: Call) -> Answer:
    """Returns a reference."""
    name = plain_name(call, "a reference by name")
    return Answer(SingleReference.of(call.repository.reference(name, metadata=call.fetches_all())))


def reference_type(call: Call, place: str) -> ReferenceType | None:
    """Returns the parameter `type`."""
    text = call.text("type")
    if text is not None and text not in _TYPES:
        raise InvalidInput(f"{place}.type: {_TYPE_RULE}")
    return None if text is None else _TYPES[text]


def create_reference(call: Call) -> Answer:
    """Creates a branch or tag."""
    name, kind = call.text("name"), reference_type(call, "createReference")
    if name is None:
        raise InvalidInput("createReference.name: must not be null")
    if kind is None:
        raise InvalidInput("createReference.type: must not be null")
    check_name(name, "createReference.name")
    body = call.json()
    source = None if body is None else decode_reference(body)
    return Answer(SingleReference.of(create(call, kind, name, source, message_given(call, body))))


def create(
    call: Call,
    kind: ReferenceType,
    name: str,
    source: ReferenceBody | None,
    message: str = "",
) -> Reference:
    """Creates a reference at the commit that a body names."""
    check_new(name)
    if source is not None and source.name == "-":
        # Only a creation accepts the alias of the default branch.
        source = structs.replace(source, name=call.default_branch)
    created: Reference = call.submit(
        CreateReference(kind, name, commit_of_body(call, source), message)
    )
    return created


def check_new(name: str) -> None:
    """Returns a valid name for a new reference."""
    from nessie_cli.model import check_new_reference_name

    check_new_reference_name(name)


def commit_of_body(call: Call, source: ReferenceBody | None) -> str:
    """Returns the commit that a reference in a body names. The hash is required."""
    if source is not None and source.name and source.name != DETACHED:
        named(call.repository, source.name)
    if source is None or source.hash is None:
        raise InvalidInput("Target hash must be provided.")
    return commit(call.repository, parse_spec(source.hash, "hash"), "Target hash")


def assign_reference(call: Call) -> Answer:
    """Assigns a branch or tag."""
    kind = reference_type(call, "assignReference")
    source = decode_reference(call.needed_json("assignReference.assignTo"))
    target = parse_segment(call.segments["ref"], call.default_branch)
    # Clients of plain REST do not send it, and keep the rules of the original server.
    allowed = call.flag(ALLOW_FAILED_RUN) if call.text(ALLOW_FAILED_RUN) is not None else None
    return Answer(SingleReference.of(assign(call, target, kind, source, allowed)))


def assign(
    call: Call,
    target: Target,
    kind: ReferenceType | None,
    source: ReferenceBody,
    allow_failed_run: bool | None = None,
) -> Reference:
    """Assigns a reference to the commit that a body names."""
    if target.name is None:
        raise InvalidInput("Assignment target must be a branch or a tag.")
    reference = named(call.repository, target.name)
    check_type(reference, kind)
    where = expected(call.repository, target)
    to = commit_of_body(call, source)
    change = AssignReference(reference.name, to, where, allow_failed_run)
    assigned: Reference = call.submit(change)
    return assigned


def check_type(reference: Reference, kind: ReferenceType | None) -> None:
    """Checks the type that a request requires of a reference."""
    if kind is not None and reference.type is not kind:
        type_name = "Branch" if reference.type is ReferenceType.BRANCH else "Tag"
        described = f"{type_name}Name{{name={reference.name}}}"
        raise InvalidInput(
            f"Expected reference type {kind.value} does not match existing reference {described}"
        )


def delete_reference(call: Call) -> Answer:
    """Deletes a branch or tag."""
    kind = reference_type(call, "deleteReference")
    target = parse_segment(call.segments["ref"], call.default_branch)
    return Answer(SingleReference.of(delete(call, target, kind)))


def delete(call: Call, target: Target, kind: ReferenceType | None) -> Reference:
    """Deletes a reference that is at the expected hash."""
    if target.name is None:
        raise ReferenceNotFound(f"Named reference '{DETACHED}' not found", DETACHED)
    reference = named(call.repository, target.name)
    check_type(reference, kind)
    if reference.name == call.default_branch:
        raise InvalidInput(f"Default branch '{reference.name}' cannot be deleted.")
    deleted: Reference = call.submit(
        DeleteReference(reference.name, expected(call.repository, target))
    )
    return deleted
