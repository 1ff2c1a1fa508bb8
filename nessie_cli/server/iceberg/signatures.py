"""Remote signing: the requests to S3 that clients send for the files of one table."""

from __future__ import annotations

from msgspec import ValidationError, convert

from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.model import IcebergTable
from nessie_cli.server.http.messages import Reply, encoded, json_reply
from nessie_cli.server.iceberg.call import IcebergCall
from nessie_cli.server.iceberg.delegation import GRANT, Holder, is_issued
from nessie_cli.server.iceberg.delegation.signing import SignRequest
from nessie_cli.server.iceberg.tables import key_in_path

_REQUEST = "RemoteSignRequest"


def sign_request(call: IcebergCall) -> Reply:
    """`POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign`.

    The grant in the query is that of the answer that loaded the table. The rights of the caller are
    checked again, and that it is still this table. A staged table can be signed for before it
    exists.
    """
    key, body = key_in_path(call), call.json_object(_REQUEST)
    # Raises if the caller may not read the table.
    content = call.state().content(key)
    text = call.text(GRANT)
    if text is None:
        raise NotAllowed("the request names no grant; load the table, and sign at its endpoint")
    try:
        request = convert(body, SignRequest)
    except ValidationError as error:
        raise InvalidInput(f"{_REQUEST}: {error}") from None
    delegation = call.services.delegation
    holder = Holder(call.warehouse.name, call.reference_text, key, call.who)
    grant = delegation.grant(call.warehouse, holder, text)
    exists = content is not None
    if not grant.is_for(content.id if content else None, "" if exists else call.last_change(key)):
        raise NotAllowed(f"the grant is for another table than {key} is now; load the table again")
    if not (
        is_issued(grant.location, grant.content_id)
        or call.may_choose_location(key, IcebergTable.type)
    ):
        raise NotAllowed("the caller may no longer choose the location of this table")
    writable = call.may_commit_to(key, exists=exists)
    signed = delegation.sign(call.warehouse, grant, request, writable=writable)
    cached = b"private" if signed.reusable else b"no-cache"
    answer = encoded({"uri": signed.uri, "headers": signed.headers})
    return json_reply(answer, (b"cache-control", cached))
