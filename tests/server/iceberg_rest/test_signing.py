"""Remote signing: requests that moto accepts with our signature, and requests that are
refused."""

from __future__ import annotations

import base64
import hashlib
import time
from typing import Any

import pytest
import requests
from msgspec.structs import replace

from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.iceberg.warehouses.warehouse import Warehouse
from nessie_cli.server.iceberg.delegation.s3 import Account, Folder
from nessie_cli.server.iceberg.delegation.signing import Signed, Signer, SignRequest
from tests.gc.s3 import Store
from tests.server.iceberg_rest.s3_accounts import signatures_verified, user_of, warehouse

FOLDER = Folder("lake", "wh/db/orders_1")
AWS = Warehouse(
    name="w",
    location="s3://lake/wh",
    allowed=("s3://lake/wh",),
    storage={
        "s3.access-key-id": "AKIDEXAMPLE",
        "s3.secret-access-key": "wJalrXUtnFEMI",
        "s3.region": "eu-west-1",
    },
    delete_files=True,
)
HOST = "https://lake.s3.eu-west-1.amazonaws.com"
HERE = f"{HOST}/wh/db/orders_1"


@pytest.fixture(scope="module")
def signer(store: Store) -> Signer:
    """Signs with the keys of a user that moto knows."""
    deleting = warehouse(store, "remote-signing", storage=user_of(store), delete_files=True)
    return Signer(Account(deleting))


def ask(
    method: str, uri: str, body: str | None = None, region: str = "eu-west-1", **headers: str
) -> SignRequest:
    sent = {name.replace("_", "-"): [value] for name, value in headers.items()}
    return SignRequest(region=region, uri=uri, method=method, headers=sent, body=body)


def signed(request: SignRequest, *, writable: bool = True) -> Signed:
    return Signer(Account(AWS)).sign(request, FOLDER, writable=writable)


def sent(
    store: Store, signer: Signer, method: str, path: str, body: str | None = None
) -> requests.Response:
    """Sends a request as an unsigned client does, with the headers that the signer adds."""
    deletes = body if "?delete" in path else None
    request = ask(method, f"{store.url}{path}", deletes, region="us-east-1")
    added = signer.sign(request, FOLDER, writable=True)
    headers = {name: values[0] for name, values in added.headers.items()}
    data = (body or "").encode()
    if deletes is not None:
        headers["Content-MD5"] = base64.b64encode(hashlib.md5(data).digest()).decode()
    return requests.request(method, added.uri, headers=headers, data=data, timeout=60)


def test_the_storage_accepts_signed_requests(store: Store, signer: Signer) -> None:
    key = "/lake/wh/db/orders_1/data/a.parquet"
    with signatures_verified():
        assert sent(store, signer, "PUT", key, "rows").status_code == 200
        # moto expects a signature, and fails without one.
        assert not requests.get(f"{store.url}{key}", timeout=60).ok
        assert sent(store, signer, "GET", key).content == b"rows"
        assert sent(store, signer, "HEAD", key).status_code == 200
        listing = "/lake?list-type=2&prefix=wh%2Fdb%2Forders_1%2F"
        assert "a.parquet" in sent(store, signer, "GET", listing).text
        deletion = f"<Delete><Object><Key>{key.removeprefix('/lake/')}</Key></Object></Delete>"
        assert sent(store, signer, "POST", "/lake?delete=", deletion).status_code == 200
        assert sent(store, signer, "GET", key).status_code == 404


def test_a_signature_is_valid_for_its_request_only(store: Store, signer: Signer) -> None:
    mine, other = "/lake/wh/db/orders_1/a", "/lake/wh/db/salaries_2/a"
    with signatures_verified():
        assert sent(store, signer, "PUT", mine, "x").status_code == 200
        added = signer.sign(
            ask("GET", f"{store.url}{mine}", region="us-east-1"), FOLDER, writable=True
        )
        headers = {name: values[0] for name, values in added.headers.items()}
        assert requests.get(added.uri, headers=headers, timeout=60).status_code == 200
        for uri in (f"{store.url}{other}", f"{added.uri}?acl"):
            assert requests.get(uri, headers=headers, timeout=60).status_code == 403


@pytest.mark.parametrize(
    "request_",
    [
        ask("GET", f"{HERE}/a"),
        ask("HEAD", f"{HERE}/a?x-id=HeadObject"),
        ask("GET", f"{HERE}/data/ts=2026-01-01T00%253A00/a%20b.parquet", Range="bytes=0-9"),
        ask("GET", "https://s3.eu-west-1.amazonaws.com/lake/wh/db/orders_1/a"),
        ask("GET", "https://lake.s3.amazonaws.com:443/wh/db/orders_1/a"),
        ask("PUT", f"{HERE}/a", x_amz_checksum_crc32="AAAAAA=="),
        ask("PUT", f"{HERE}/a?partNumber=1&uploadId=u"),
        ask("POST", f"{HERE}/a?uploads="),
        ask("POST", f"{HERE}/a?uploads"),
        ask("POST", f"{HERE}/a?uploadId=u"),
        ask("DELETE", f"{HERE}/a"),
        ask("DELETE", f"{HERE}/a?uploadId=u"),
        ask("PUT", f"{HERE}/a", x_amz_copy_source="/lake/wh/db/orders_1/b"),
        ask("PUT", f"{HERE}/a", x_amz_copy_source="lake/wh/db/orders_1/b%20c"),
        ask("GET", f"{HOST}/?list-type=2&prefix=wh%2Fdb%2Forders_1%2Fmetadata"),
        ask("GET", f"{HOST}?list-type=2&prefix=wh/db/orders_1/&max-keys=1&delimiter=%2F"),
    ],
)
def test_common_requests_of_clients_are_signed(request_: SignRequest) -> None:
    made = signed(request_)
    assert made.uri == request_.uri
    assert made.headers["Authorization"][0].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert made.reusable == (request_.method in ("GET", "HEAD"))
    every = {name.lower() for name in request_.headers}
    assert not every & {name.lower() for name in made.headers}


@pytest.mark.parametrize(
    "uri",
    [
        f"{HOST}/wh/db/orders_12/a",
        f"{HOST}/wh/db/orders_1",
        f"{HOST}/wh/db/orders_1/",
        f"{HOST}/wh/db/salaries_2/a",
        f"{HERE}/../salaries_2/a",
        f"{HERE}/%2e%2e/salaries_2/a",
        f"{HERE}/%252e%252e/salaries_2/a",
        f"{HERE}/%25252e%25252e/salaries_2/a",
        f"{HERE}%2f..%2fsalaries_2/a",
        f"{HERE}/./a",
        f"{HERE}//a",
        f"{HOST}//wh/db/orders_1/a",
        f"{HERE}/a%00",
        f"{HERE}/a%0d%0ax",
        "https://other.s3.eu-west-1.amazonaws.com/wh/db/orders_1/a",
        "https://s3.eu-west-1.amazonaws.com/other/wh/db/orders_1/a",
        "https://s3.eu-west-1.amazonaws.com/l%61ke/wh/db/orders_1/a",
        "https://lake.s3.eu-west-1.amazonaws.com.evil.example/wh/db/orders_1/a",
        "https://lake.s3-evil.amazonaws.com/wh/db/orders_1/a",
        "https://evil.example/lake/wh/db/orders_1/a",
        "https://169.254.169.254/lake/wh/db/orders_1/a",
        "http://lake.s3.eu-west-1.amazonaws.com/wh/db/orders_1/a",
        "https://lake.s3.eu-west-1.amazonaws.com:8443/wh/db/orders_1/a",
        "https://user@lake.s3.eu-west-1.amazonaws.com/wh/db/orders_1/a",
        "https://evil.example@lake.s3.eu-west-1.amazonaws.com/wh/db/orders_1/a",
        "https://lake.s3.eu-west-1.amazonaws.com\\@evil.example/wh/db/orders_1/a",
        "s3://lake/wh/db/orders_1/a",
        f"{HERE}/a#b",
        f"{HERE}/a b",
        f"{HERE}/a\n",
        f"{HERE}/%zz",
        f"{HERE}/%ff",
        "",
        "https://[::1",
        # subresources
        f"{HERE}/a?acl",
        f"{HERE}/a?acl=",
        f"{HERE}/a?tagging",
        f"{HERE}/a?retention",
        f"{HERE}/a?legal-hold",
        f"{HERE}/a?torrent",
        f"{HERE}/a?versionId=1",
        f"{HERE}/a?%61cl",
        f"{HERE}/a?partNumber=1&acl",
        f"{HERE}/a?response-content-type=text/html",
        f"{HERE}/a?X-Amz-Signature=1",
        f"{HOST}/?policy",
        f"{HOST}/?acl",
        f"{HOST}/?versions&prefix=wh/db/orders_1/",
        f"{HOST}/?uploads&prefix=wh/db/orders_1/",
        f"{HOST}/?location",
        # listings
        f"{HOST}/",
        f"{HOST}/?list-type=2",
        f"{HOST}/?list-type=2&prefix=",
        f"{HOST}/?list-type=2&prefix=wh/db/orders_1",
        f"{HOST}/?list-type=2&prefix=wh/db/orders_12/",
        f"{HOST}/?list-type=2&prefix=wh/db/orders_1/../salaries_2/",
        f"{HOST}/?list-type=2&prefix=wh/db/orders_1/%2e%2e/salaries_2/",
        f"{HOST}/?prefix=wh/db/orders_1/&prefix=",
        f"{HOST}/?prefix=wh/db/orders_1/;prefix=",
        f"{HOST}/?prefix=wh/db/orders_1/+x",
    ],
)
def test_other_uris_are_not_signed(uri: str) -> None:
    with pytest.raises((NotAllowed, InvalidInput)):
        signed(ask("GET", uri))


@pytest.mark.parametrize(
    "request_",
    [
        ask("PATCH", f"{HERE}/a"),
        ask("OPTIONS", f"{HERE}/a"),
        ask("get", f"{HERE}/a"),
        ask("POST", f"{HERE}/a"),
        ask("POST", f"{HERE}/a?select&select-type=2"),
        ask("POST", f"{HERE}/a?restore"),
        ask("PUT", f"{HERE}/a?acl"),
        ask("PUT", f"{HOST}/"),
        ask("PUT", f"{HOST}/?policy"),
        ask("DELETE", f"{HOST}/"),
        ask("DELETE", f"{HERE}/a?versionId=1"),
        ask("PUT", f"{HERE}/a", x_amz_acl="public-read"),
        ask("PUT", f"{HERE}/a", X_Amz_Acl="public-read"),
        ask("PUT", f"{HERE}/a", x_amz_grant_read="uri=http://x"),
        ask("PUT", f"{HERE}/a", x_amz_website_redirect_location="/x"),
        ask("PUT", f"{HERE}/a", x_amz_object_lock_mode="GOVERNANCE"),
        ask("DELETE", f"{HERE}/a", x_amz_bypass_governance_retention="true"),
        ask("GET", f"{HERE}/a", x_amz_security_token="x"),
        ask("GET", f"{HERE}/a", x_amz_content_sha256="x\nhost:evil"),
        ask("GET", f"{HERE}/a", region="us-east-1"),
        ask("GET", f"{HERE}/a", region="x/../y"),
        ask("PUT", f"{HERE}/a", x_amz_copy_source="/lake/wh/db/salaries_2/a"),
        ask("PUT", f"{HERE}/a", x_amz_copy_source="/other/wh/db/orders_1/a"),
        ask("PUT", f"{HERE}/a", x_amz_copy_source="/lake/wh/db/orders_1/../salaries_2/a"),
        ask("PUT", f"{HERE}/a", x_amz_copy_source="/lake/wh/db/orders_1/%2e%2e/salaries_2/a"),
        ask("PUT", f"{HERE}/a", x_amz_copy_source="/lake/wh/db/orders_1/a?versionId=1"),
        ask("PUT", f"{HERE}/a", x_amz_copy_source="arn:aws:s3:eu-west-1:1:accesspoint/x/object/a"),
        ask("PUT", f"{HERE}/metadata/00001-x.metadata.json"),
        ask("DELETE", f"{HERE}/metadata/00001-x.gz.metadata.json"),
        ask("POST", f"{HERE}/metadata/00001-x.metadata.json?uploads"),
    ],
)
def test_other_requests_are_not_signed(request_: SignRequest) -> None:
    with pytest.raises((NotAllowed, InvalidInput)):
        signed(request_)


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_a_reader_cannot_sign_writes(method: str) -> None:
    query = "?uploads" if method == "POST" else ""
    with pytest.raises(NotAllowed, match="may only read"):
        signed(ask(method, f"{HERE}/a{query}"), writable=False)
    body = "<Delete><Object><Key>wh/db/orders_1/a</Key></Object></Delete>"
    with pytest.raises(NotAllowed, match="may only read"):
        signed(ask("POST", f"{HOST}/?delete", body), writable=False)
    assert signed(ask("GET", f"{HERE}/a"), writable=False)


def objects(*keys: str) -> str:
    return f"<Delete>{''.join(f'<Object><Key>{key}</Key></Object>' for key in keys)}</Delete>"


MINE = "wh/db/orders_1/a"


@pytest.mark.parametrize(
    "body",
    [
        None,
        "",
        "no xml",
        objects("wh/db/salaries_2/a"),
        objects(MINE, "wh/db/salaries_2/a"),
        objects("wh/db/orders_1/../salaries_2/a"),
        objects("wh/db/orders_1/%2e%2e/salaries_2/a"),
        objects("wh/db/orders_1"),
        objects("wh/db/orders_1/metadata/00000-x.metadata.json"),
        objects(*[MINE] * 1002),
        objects(""),
        f"<Delete><Object><Key>{MINE}</Key><VersionId>1</VersionId></Object></Delete>",
        f"<Delete><Object><Key>{MINE}</Key><Key>wh/x</Key></Object></Delete>",
        f"<Delete><Object><Key>{MINE}<b>x</b></Key></Object></Delete>",
        f"<Delete><Other/><Object><Key>{MINE}</Key></Object></Delete>",
        f"<Other><Object><Key>{MINE}</Key></Object></Other>",
        f"<!DOCTYPE d [<!ENTITY e 'x'>]>{objects('&e;')}",
        f"<?xml version='1.0' encoding='UTF-16'?>{objects(MINE)}",
        f"<Delete><Object><Key><![CDATA[{MINE}]]></Key></Object></Delete>",
    ],
)
def test_every_key_of_a_deletion_is_checked(body: str | None) -> None:
    with pytest.raises((NotAllowed, InvalidInput)):
        signed(ask("POST", f"{HOST}/?delete", body))


@pytest.mark.parametrize(
    "body",
    [
        objects(MINE, f"{MINE}b"),
        f"""<?xml version="1.0" encoding="UTF-8"?>
<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
<Object><Key>{MINE}</Key></Object><Quiet>true</Quiet></Delete>""",
    ],
)
def test_the_signature_covers_the_body_of_a_deletion(body: str) -> None:
    made = signed(ask("POST", f"{HOST}/?delete=", body))
    digest = hashlib.sha256(body.encode()).hexdigest()
    assert made.headers["X-Amz-Content-SHA256"] == [digest]
    with pytest.raises(NotAllowed):
        signed(ask("POST", f"{HOST}/?delete", body, x_amz_content_sha256="UNSIGNED-PAYLOAD"))


LONG = 4_000_000
"""A text in the body of a request to the server can be about as long."""
ATTRIBUTES = " ".join(f'a{number}=""' for number in range(150_000))


@pytest.mark.parametrize(
    ("request_", "place"),
    [
        (ask("GET", f"https://s3.us{'-e' * LONG}/lake/a"), "uri"),
        (ask("GET", f"{HERE}/{'%41' * (LONG // 3)}"), "uri"),
        (ask("GET", f"{HERE}/a?{'&'.join(map(str, range(500_000)))}"), "uri"),
        (ask("GET", f"{HERE}/a", **{f"x{number}": "" for number in range(300_000)}), "headers"),
        (replace(ask("GET", f"{HERE}/a"), headers={"range": ["x"] * LONG}), "headers"),
        (ask("GET", f"{HERE}/a", x_amz_tagging="x" * LONG), "headers"),
        (ask("POST", f"{HOST}/?delete", f"<Delete>{'<a/>' * 500_000}</Delete>"), "body"),
        (ask("POST", f"{HOST}/?delete", "<a>" * 250_000 + "</a>" * 250_000), "body"),
        (ask("POST", f"{HOST}/?delete", f"<Delete {ATTRIBUTES}/>"), "body"),
        (ask("POST", f"{HOST}/?delete", objects("x" * 2_000_000)), "body"),
    ],
)
def test_large_requests_are_refused_before_they_are_parsed(
    request_: SignRequest, place: str
) -> None:
    begun = time.thread_time()
    with pytest.raises(InvalidInput, match=f"^{place}: "):
        signed(request_)
    assert time.thread_time() - begun < 0.1


def test_the_largest_deletion_of_s3_is_signed() -> None:
    keys = [f"{MINE}{'&#97;' * 900}{number:03}" for number in range(1000)]
    assert len(objects(*keys)) > 4_000_000
    with pytest.raises(InvalidInput, match="too large"):
        signed(ask("POST", f"{HOST}/?delete", objects(*keys)))
    plain = [f"{MINE}{'a' * 900}{number:03}" for number in range(1000)]
    assert signed(ask("POST", f"{HOST}/?delete", objects(*plain)))


def test_a_configured_endpoint_replaces_those_of_aws(store: Store, signer: Signer) -> None:
    path = "/lake/wh/db/orders_1/a"
    for base in (
        store.url,
        store.url.replace("127.0.0.1", "127.0.0.1").upper().replace("HTTP", "http"),
    ):
        assert signer.sign(ask("GET", f"{base}{path}", region="us-east-1"), FOLDER, writable=False)
    port = store.url.rpartition(":")[2]
    for base in (
        "https://s3.us-east-1.amazonaws.com",
        "http://localhost",
        f"https://127.0.0.1:{port}",
        f"http://127.0.0.1:{int(port) - 1}",
        f"http://127.0.0.1.evil:{port}",
    ):
        with pytest.raises(NotAllowed):
            signer.sign(ask("GET", f"{base}{path}", region="us-east-1"), FOLDER, writable=False)


def test_no_deletion_is_signed_unless_the_warehouse_allows_it() -> None:
    guarded = Signer(Account(replace(AWS, delete_files=False)))
    body = f"<Delete><Object><Key>{MINE}</Key></Object></Delete>"
    for request in (ask("DELETE", f"{HERE}/a"), ask("POST", f"{HOST}/?delete", body)):
        assert signed(request)
        with pytest.raises(NotAllowed, match="may not delete files of this warehouse"):
            guarded.sign(request, FOLDER, writable=True)
    # A client that gives up an upload deletes no file.
    assert guarded.sign(ask("DELETE", f"{HERE}/a?uploadId=u"), FOLDER, writable=True)


def test_the_bucket_may_be_in_the_host() -> None:
    account = Account(
        Warehouse(
            name="w",
            location="s3://lake",
            allowed=("s3://lake",),
            storage={**AWS.storage, "s3.endpoint": "https://minio.example:9000"},
            client_config={"s3.endpoint": "https://s3.example"},
        )
    )
    for host in ("lake.minio.example:9000", "lake.s3.example"):
        assert Signer(account).sign(
            ask("GET", f"https://{host}/wh/db/orders_1/a"), FOLDER, writable=False
        )
    with pytest.raises(NotAllowed):
        Signer(account).sign(ask("GET", HERE), FOLDER, writable=False)


def test_errors_show_no_credentials() -> None:
    shown: Any = repr(Account(AWS)) + repr(Account(AWS).warehouse)
    assert "wJalr" not in shown


def test_a_folder_with_special_characters_is_not_delegated() -> None:
    for bad in (
        "s3://lake/wh/a*", "s3://lake/wh/a?b", "s3://lake/wh/${aws:username}", "s3://lake/wh/%2e",
        "s3://lake/wh/../x", "s3://lake/wh//x", "s3://lake", "s3://lake/", "file:///lake/x", "gs://lake/x",
        "no location",
    ):  # fmt: skip
        assert Folder.of(bad) is None
    assert Folder.of("s3a://lake/wh/t_1/") == Folder("lake", "wh/t_1")
