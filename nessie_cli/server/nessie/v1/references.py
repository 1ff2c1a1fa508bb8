"""API v1: references."""

from __future__ import annotations

from nessie_cli.errors import InvalidInput
from nessie_cli.model import ReferenceType
from nessie_cli.server.nessie import listings
from nessie_cli.server.nessie.v1.requests import (
    Verb,
    check_name_v1,
    decode_reference_v1,
    target_and_body,
    target_of,
)
from nessie_cli.server.nessie.v2.references import assign, create, delete
from nessie_cli.server.pipeline.call import NO_CONTENT, Answer, Call
from nessie_cli.server.pipeline.targets import DETACHED, named
from nessie_cli.wire.decode import ReferenceBody
from nessie_cli.wire.references import reference_struct, reference_struct_v1
from nessie_cli.wire.rest import ReferencesResponseV1


def list_references(call: Call) -> Answer:
    """Returns branches, then tags, by name."""
    page = listings.references(call, call.number("maxRecords"), call.text("pageToken"))
    return Answer(page.body(ReferencesResponseV1, reference_struct_v1))


def get_default_branch(call: Call) -> Answer:
    """Returns the default branch."""
    return Answer(reference_struct(call.repository.reference(call.default_branch)))


def get_reference(call: Call) -> Answer:
    """Returns a reference."""
    metadata = call.fetches_all()
    name = check_name_v1(call.segments["ref"], "getReferenceByName.params.refName")
    reference = named(call.repository, name)
    return Answer(
        reference_struct_v1(
            call.repository.reference(name, metadata=True) if metadata else reference
        )
    )


def create_reference(call: Call) -> Answer:
    """Creates a branch or tag: the body has its name and commit, the query its source."""
    body = decode_reference_v1(call.needed_json("createReference.reference"))
    source = call.text("sourceRefName")
    if source is not None:
        check_name_v1(source, "createReference.sourceRefName")
    if body.type is ReferenceType.DETACHED:
        raise InvalidInput("createReference.reference: only a branch or a tag can be created")
    if source not in (None, DETACHED):
        named(call.repository, source)
    return Answer(
        reference_struct(
            create(call, body.type, body.name, ReferenceBody(body.type, "", body.hash))
        )
    )


def _kind(call: Call) -> ReferenceType:
    text = call.segments["kind"].upper()
    if text not in (ReferenceType.BRANCH, ReferenceType.TAG):
        raise InvalidInput(
            f"type of the reference: must be 'branch' or 'tag', not {call.segments['kind']!r}"
        )
    return ReferenceType(text)


def assign_reference(call: Call) -> Answer:
    """Assigns a branch or tag."""
    target, source = target_and_body(
        call, Verb("assignReference", "referenceName", "assignTo"), decode_reference_v1
    )
    assign(call, target, _kind(call), source)
    return NO_CONTENT


def delete_reference(call: Call) -> Answer:
    """Deletes a branch or tag."""
    delete(call, target_of(call, Verb("deleteReference", "referenceName")), _kind(call))
    return NO_CONTENT
