"""Remote signing: the requests to S3 that clients send for the files of one table."""

from __future__ import annotations

from msgspec import ValidationError, convert

from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.server.http.messages import Reply, encoded, json_reply
from nessie_cli.server.iceberg.call import IcebergCall
from nessie_cli.server.iceberg.delegation import GRANT, Holder
from nessie_cli.server.iceberg.delegation.signing import SignRequest
from nessie_cli.server.iceberg.tables import key_in_path

_REQUEST = "RemoteSignRequest"


def sign_request(call: IcebergCall) -> Reply:
    """`POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign`.

    The grant in the query is that of the answer that loaded the table. The rights of the caller are
    checked again. A staged table can be signed for before it exists.
    """
    key, body = key_in_path(call), call.json_object(_REQUEST)
    # Raises if the caller may not read the table.
    exists = call.state().content(key) is not None
    grant = call.text(GRANT)
    if grant is None:
        raise NotAllowed("the request names no grant; load the table, and sign at its endpoint")
    try:
        request = convert(body, SignRequest)
    except ValidationError as error:
        raise InvalidInput(f"{_REQUEST}: {error}") from None
    holder = Holder(call.warehouse.name, call.reference_text, key, call.who)
    signed = call.services.delegation.sign(
        call.warehouse,
        holder,
        grant,
        request,
        writable=call.may_commit_to(key, exists=exists),
    )
    cached = b"private" if signed.reusable else b"no-cache"
    text = encoded({"uri": signed.uri, "headers": signed.headers})
    return json_reply(text, (b"cache-control", cached))
