"""Vended credentials and grants: their scope, their holder and their lifetime."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests

from nessie_cli.errors import NotAllowed, StoreUnavailable
from nessie_cli.iceberg.warehouses.warehouse import Vending, Warehouse, Warehouses
from nessie_cli.model import ContentKey, Secret
from nessie_cli.server.iceberg.call import mode_of
from nessie_cli.server.iceberg.delegation import (
    LIFETIME,
    DelegatedTable,
    Delegation,
    FileAccess,
    Grants,
    Holder,
)
from nessie_cli.server.iceberg.delegation.s3 import Folder
from nessie_cli.server.iceberg.delegation.signing import SignRequest
from nessie_cli.server.iceberg.delegation.vending import LONGEST_POLICY, policy
from tests.gc.s3 import Store
from tests.server.iceberg_rest.s3_accounts import ROLE, signatures_verified, user_of, warehouse

ID = "01234567-89ab-4cde-8f01-23456789abcd"
LOCATION = f"s3://lake/wh/db/orders_{ID}"
FOLDER = Folder("lake", "wh/db/orders_1")
RESOURCE = "v1/main/namespaces/db/tables/orders"
VENDED, SIGNING = "vended-credentials", "remote-signing"


class Clock:
    """A clock that stands still unless a test moves it."""

    def __init__(self) -> None:
        import time

        self.now = time.time()

    def __call__(self) -> float:
        return self.now


def table(**changed: Any) -> DelegatedTable:
    return DelegatedTable(
        ref="main", key=ContentKey(("db", "orders")), content_id=ID, location=LOCATION,
        resource=RESOURCE, catalog="http://h/iceberg", caller="ann", writable=True, trusted=False,
    )._replace(**changed)  # fmt: skip


def delegation(found: Warehouse, clock: Clock | None = None) -> Delegation:
    return Delegation(Warehouses([found], Secret("s" * 32)), clock or Clock())


def last_policy() -> dict[str, Any]:
    """Returns the last session policy that STS received."""
    from moto.sts.models import sts_backends

    roles = [
        r for account in sts_backends.values() for b in account.values() for r in b.assumed_roles
    ]
    assert roles[-1].role_arn == ROLE
    return dict(json.loads(roles[-1].policy))


def allows(document: dict[str, Any], action: str, resource: str, prefix: str | None = None) -> bool:
    """Evaluates a policy as IAM does: a statement allows the action, and none denies it."""
    effects = {
        statement["Effect"]
        for statement in document["Statement"]
        if matches(statement["Action"], action)
        and matches(statement["Resource"], resource)
        and (
            "Condition" not in statement
            or (
                prefix is not None
                and matches(statement["Condition"]["StringLike"]["s3:prefix"], prefix)
            )
        )
    }
    return effects == {"Allow"}


def matches(patterns: str | list[str], text: str) -> bool:
    several = [patterns] if isinstance(patterns, str) else patterns
    return any(fnmatchcase(text, pattern.replace("[", "[[]")) for pattern in several)


# -- session policies ----------------------------------------------------------------------------
OBJECT = "arn:aws:s3:::lake/"


@pytest.mark.parametrize("writable", [False, True])
def test_a_policy_allows_exactly_the_folder_of_the_table(writable: bool) -> None:
    document = json.loads(policy(FOLDER, partition="aws", writable=writable))
    mine = f"{OBJECT}wh/db/orders_1/data/a.parquet"
    assert allows(document, "s3:GetObject", mine)
    assert allows(document, "s3:PutObject", mine) is writable
    assert allows(document, "s3:AbortMultipartUpload", mine) is writable
    assert not allows(document, "s3:DeleteObject", mine)
    assert not allows(document, "s3:PutObjectAcl", mine)
    assert not allows(
        document, "s3:PutObject", f"{OBJECT}wh/db/orders_1/metadata/0-x.metadata.json"
    )
    assert allows(document, "s3:GetObject", f"{OBJECT}wh/db/orders_1/metadata/0-x.metadata.json")
    for other in (
        "wh/db/orders_12/a",
        "wh/db/orders_1",
        "wh/db/a",
        "wh/db/orders_2/wh/db/orders_1/a",
    ):
        for action in ("s3:GetObject", "s3:PutObject"):
            assert not allows(document, action, f"{OBJECT}{other}")
    assert not allows(document, "s3:GetObject", "arn:aws:s3:::lake2/wh/db/orders_1/a")
    bucket = "arn:aws:s3:::lake"
    for prefix in ("wh/db/orders_1/", "wh/db/orders_1/data"):
        assert allows(document, "s3:ListBucket", bucket, prefix)
    for prefix in (None, "", "wh/db/orders_1", "wh/db/orders_12/", "wh/"):
        assert not allows(document, "s3:ListBucket", bucket, prefix)


def test_a_policy_allows_deletes_only_on_request_and_never_of_metadata_files() -> None:
    for writable in (False, True):
        document = json.loads(policy(FOLDER, partition="aws", writable=writable, deletes=True))
        mine = f"{OBJECT}wh/db/orders_1"
        assert allows(document, "s3:DeleteObject", f"{mine}/data/a.parquet") is writable
        for name in ("0-x.metadata.json", "0-x.metadata.json.gz"):
            assert not allows(document, "s3:DeleteObject", f"{mine}/metadata/{name}")
        assert not allows(document, "s3:DeleteObject", f"{OBJECT}wh/db/orders_12/a")
        assert not allows(document, "s3:DeleteObjectVersion", f"{mine}/data/a.parquet")


@pytest.mark.parametrize("mode", [VENDED, SIGNING])
def test_clients_are_told_whether_they_may_delete(store: Store, mode: str) -> None:
    guarded = warehouse(store, mode)
    config = delegation(guarded).access(mode, guarded, table()).config
    assert config["s3.delete-enabled"] == "false"
    deleting = warehouse(store, mode, delete_files=True)
    config = delegation(deleting).access(mode, deleting, table()).config
    assert "s3.delete-enabled" not in config
    if mode == VENDED:
        assert "s3:DeleteObject" in json.dumps(last_policy())


def test_a_policy_uses_the_partition_of_the_role() -> None:
    assert "arn:aws-cn:s3:::lake/" in policy(FOLDER, partition="aws-cn", writable=True)


# -- vended credentials --------------------------------------------------------------------------
def test_credentials_from_sts_are_vended(store: Store) -> None:
    found = warehouse(store, VENDED)
    access = delegation(found).access(VENDED, found, table())
    assert access.expires is not None
    (credential,) = access.credentials
    assert credential["prefix"] == f"{LOCATION}/"
    assert credential["config"]["s3.session-token-expires-at-ms"] == str(access.expires * 1000)
    assert access.config == {
        **credential["config"],
        "client.refresh-credentials-endpoint": f"{RESOURCE}/credentials",
        "s3.delete-enabled": "false",
    }
    assert access.config["s3.access-key-id"].startswith("ASIA")
    assert store.properties["s3.secret-access-key"] not in str(access)
    assert last_policy() == json.loads(
        policy(Folder("lake", LOCATION.removeprefix("s3://lake/")), partition="aws", writable=True)
    )


def test_vended_credentials_give_access_to_the_files(store: Store) -> None:
    from pyiceberg.io.pyarrow import PyArrowFileIO

    found = warehouse(store, VENDED)
    given = delegation(found).access(VENDED, found, table()).config
    reached = {"s3.endpoint": store.url, "s3.region": "us-east-1", **given}
    file_io = PyArrowFileIO(reached)
    with file_io.new_output(f"{LOCATION}/data/a").create() as stream:
        stream.write(b"rows")
    with file_io.new_input(f"{LOCATION}/data/a").open() as stream:
        assert stream.read() == b"rows"


def test_a_reader_gets_read_only_credentials(store: Store) -> None:
    found = warehouse(store, VENDED)
    giving = delegation(found)
    reading = giving.access(VENDED, found, table(writable=False))
    assert "s3:PutObject" not in json.dumps(last_policy())
    writing = giving.access(VENDED, found, table())
    assert reading.config["s3.access-key-id"] != writing.config["s3.access-key-id"]


def test_credentials_are_cached_for_half_of_their_lifetime(store: Store) -> None:
    found, clock = warehouse(store, VENDED), Clock()
    giving = delegation(found, clock)
    first = giving.access(VENDED, found, table())
    clock.now += 400
    assert giving.access(VENDED, found, table()) == first
    assert giving.access(VENDED, found, table(caller="ben")).config != first.config
    other = f"s3://lake/wh/db/other_{ID}"
    assert giving.access(VENDED, found, table(location=other)).config != first.config
    clock.now += 100
    assert giving.access(VENDED, found, table()).config != first.config


@pytest.mark.parametrize(
    "location",
    [
        f"s3://lake/wh/a*/t_{ID}",
        f"s3://lake/wh/a?/t_{ID}",
        f"s3://lake/wh/${{aws:username}}/t_{ID}",
        f"s3://lake/wh/../t_{ID}",
        f"file:///wh/t_{ID}",
        f"s3://other/wh/t_{ID}",
        f"s3://lake/not-in-the-warehouse/t_{ID}",
        f"s3://lake/{'a' * LONGEST_POLICY}/t_{ID}",
    ],
)
@pytest.mark.parametrize("trusted", [False, True])
def test_no_credentials_for_locations_that_a_policy_cannot_express(
    store: Store, location: str, trusted: bool
) -> None:
    found = warehouse(store, VENDED)
    table_ = table(location=location, trusted=trusted)
    assert delegation(found).access(VENDED, found, table_) == FileAccess()


@pytest.mark.parametrize("mode", [VENDED, SIGNING])
def test_no_credentials_for_a_location_that_was_not_issued_for_the_table(
    store: Store, mode: str
) -> None:
    """A commit through the other API can name any location, such as another table's."""
    found = warehouse(store, VENDED, SIGNING)
    giving = delegation(found)
    sibling = table(location="s3://lake/wh/db/salaries_99999999-89ab-4cde-8f01-23456789abcd")
    plain = table(location="s3://lake/wh/db")
    for one in (sibling, plain):
        assert giving.access(mode, found, one) == FileAccess()
        assert giving.access(mode, found, one._replace(trusted=True)) != FileAccess()
    staged = table(last_change="")
    assert giving.access(mode, found, staged) != FileAccess()


def test_a_role_that_cannot_be_assumed_is_reported(
    store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    found = warehouse(store, VENDED)
    gone = Delegation(
        Warehouses(
            [
                Warehouse(
                    name="w",
                    location="s3://lake",
                    allowed=("s3://lake",),
                    storage=store.properties,
                    delegation=frozenset({VENDED}),
                    vending=Vending(role_arn=ROLE, sts_endpoint="http://127.0.0.1:1"),
                )
            ]
        )
    )
    with pytest.raises(StoreUnavailable, match="no credentials for the table now"):
        gone.access(VENDED, found, table())
    logged = capfd.readouterr().err
    assert "STS gives no credentials" in logged
    assert store.properties["s3.secret-access-key"] not in logged


def test_the_first_mode_that_both_sides_support_is_used(store: Store) -> None:
    both, one = warehouse(store, VENDED, SIGNING), warehouse(store, SIGNING)
    for header, found, mode in (
        (None, both, ""),
        ("", both, ""),
        ("vended-credentials", both, VENDED),
        ("remote-signing, vended-credentials", both, SIGNING),
        ("vended-credentials,remote-signing", one, SIGNING),
        ("other", both, ""),
        ("vended-credentials", warehouse(store), ""),
    ):
        assert mode_of(header, found) == mode


# -- remote signing ------------------------------------------------------------------------------
HOLDER = Holder("w", "main", ContentKey(("db", "orders")), "ann")


def test_a_grant_is_bound_to_caller_table_branch_and_warehouse() -> None:
    grants = Grants(Secret("s" * 32), Clock())
    text, grant = grants.issue(HOLDER, table())
    assert grants.read(text, HOLDER) == grant
    for other in (
        HOLDER._replace(caller="ben"),
        HOLDER._replace(ref="feature"),
        HOLDER._replace(key=ContentKey(("db", "salaries"))),
        HOLDER._replace(key=ContentKey(("db.orders",))),
        HOLDER._replace(warehouse="v"),
    ):
        with pytest.raises(NotAllowed, match="is not for this table"):
            grants.read(text, other)
    with pytest.raises(NotAllowed):
        Grants(Secret("t" * 32), Clock()).read(text, HOLDER)


def test_a_grant_is_for_a_table_while_its_key_has_it() -> None:
    _, grant = Grants(Secret("s" * 32), Clock()).issue(HOLDER, table())
    _, staged = Grants(Secret("s" * 32), Clock()).issue(HOLDER, table(last_change="ab"))
    _, new = Grants(Secret("s" * 32), Clock()).issue(HOLDER, table(last_change=""))
    for each in (grant, staged, new):
        assert each.is_for(ID, "")
        assert not each.is_for("99999999-89ab-4cde-8f01-23456789abcd", "")
    assert [each.is_for(None, "") for each in (grant, staged, new)] == [False, False, True]
    assert [each.is_for(None, "ab") for each in (grant, staged, new)] == [False, True, False]


def test_a_modified_grant_is_refused() -> None:
    grants = Grants(Secret("s" * 32), Clock())
    text, _ = grants.issue(HOLDER, table(writable=False))
    wider, _ = Grants(Secret("s" * 32), Clock()).issue(HOLDER, table())
    mixed = f"{wider.partition('.')[0]}.{text.partition('.')[2]}"
    for bad in (
        "",
        ".",
        "x",
        text[:-1],
        text + "A",
        f"{text}.{text}",
        mixed,
        "é.é",
        text.replace(".", ""),
    ):
        with pytest.raises(NotAllowed):
            grants.read(bad, HOLDER)


def test_a_grant_expires() -> None:
    clock = Clock()
    grants = Grants(Secret("s" * 32), clock)
    text, grant = grants.issue(HOLDER, table())
    assert grant.expires == int(clock.now) + LIFETIME
    clock.now += LIFETIME - 1
    assert grants.read(text, HOLDER)
    clock.now += 2
    with pytest.raises(NotAllowed, match="has expired; load the table again"):
        grants.read(text, HOLDER)


def test_signing_is_announced_to_old_and_new_clients(store: Store) -> None:
    found = warehouse(store, SIGNING)
    access = delegation(found).access(SIGNING, found, table())
    assert access.credentials == ()
    assert access.config["s3.remote-signing-enabled"] == "true"
    assert access.config["signer.uri"] == access.config["s3.signer.uri"] == "http://h/iceberg"
    endpoint = access.config["signer.endpoint"]
    assert access.config["s3.signer.endpoint"] == endpoint
    assert endpoint.startswith(f"{RESOURCE}/sign?grant=")
    assert not {"s3.access-key-id", "s3.session-token"} & access.config.keys()


def test_a_request_is_signed_with_a_grant(store: Store) -> None:
    found = warehouse(store, SIGNING, storage=user_of(store))
    giving = delegation(found)
    endpoint = giving.access(SIGNING, found, table()).config["signer.endpoint"]
    grant = parse_qs(urlsplit(endpoint).query)["grant"][0]
    uri = f"{store.url}/lake/{LOCATION.removeprefix('s3://lake/')}/a"

    def signed(
        method: str, uri: str = uri, *, writable: bool = True, holder: Holder = HOLDER
    ) -> Any:
        request = SignRequest(region="us-east-1", uri=uri, method=method, headers={})
        read = giving.grant(found, holder, grant)
        made = giving.sign(found, read, request, writable=writable)
        headers = {name: values[0] for name, values in made.headers.items()}
        return requests.request(method, made.uri, headers=headers, timeout=60)

    with signatures_verified():
        assert signed("PUT").status_code == 200
        assert signed("GET", writable=False).status_code == 200
    for refused in (
        lambda: signed("PUT", writable=False),
        lambda: signed("GET", uri.replace("orders_", "orders2_")),
        lambda: signed("GET", holder=HOLDER._replace(caller="ben")),
    ):
        with pytest.raises(NotAllowed):
            refused()


def test_a_reader_gets_a_read_only_grant(store: Store) -> None:
    found = warehouse(store, SIGNING)
    giving = delegation(found)
    endpoint = giving.access(SIGNING, found, table(writable=False)).config["signer.endpoint"]
    grant = parse_qs(urlsplit(endpoint).query)["grant"][0]
    uri = f"{store.url}/lake/{LOCATION.removeprefix('s3://lake/')}/a"
    request = SignRequest(region="us-east-1", uri=uri, method="PUT", headers={})
    with pytest.raises(NotAllowed, match="may only read"):
        giving.sign(found, giving.grant(found, HOLDER, grant), request, writable=True)


def test_a_warehouse_without_signing_refuses_to_sign(store: Store) -> None:
    found = warehouse(store, VENDED)
    with pytest.raises(NotAllowed, match="does not offer remote signing"):
        delegation(found).grant(found, HOLDER, "")
