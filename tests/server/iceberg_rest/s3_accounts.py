"""moto's S3 with IAM and STS: a user whose signatures are verified, and a role to assume."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nessie_cli.iceberg.warehouses.warehouse import Vending, Warehouse
from tests.gc.s3 import KEY, SECRET, Store

ROLE = "arn:aws:iam::123456789012:role/lake"
_ALL = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
)


def warehouse(store: Store, *modes: str, location: str = "s3://lake/wh", **more: Any) -> Warehouse:
    """Returns a warehouse in the bucket of a store, with access delegation."""
    return Warehouse(
        name="w",
        location=location,
        allowed=(location,),
        storage=store.properties | more.pop("storage", {}),
        delegation=frozenset(modes),
        vending=Vending(role_arn=ROLE, sts_endpoint=store.url, seconds=900),
        choose_locations=False,
        **more,
    )


def user_of(store: Store) -> dict[str, str]:
    """Returns the keys of a new IAM user with all permissions."""
    import boto3

    iam = boto3.client(
        "iam",
        endpoint_url=store.url,
        region_name="us-east-1",
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
    )
    name = f"server-{len(iam.list_users()['Users'])}"
    iam.create_user(UserName=name)
    iam.put_user_policy(UserName=name, PolicyName="all", PolicyDocument=_ALL)
    made = iam.create_access_key(UserName=name)["AccessKey"]
    return {
        "s3.access-key-id": made["AccessKeyId"],
        "s3.secret-access-key": made["SecretAccessKey"],
    }


@contextmanager
def signatures_verified() -> Iterator[None]:
    """Makes moto refuse requests without a valid signature."""
    from moto import settings
    from moto.core.authorization import ActionAuthenticatorMixin

    before = settings.INITIAL_NO_AUTH_ACTION_COUNT
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    ActionAuthenticatorMixin.request_count = 0
    try:
        yield
    finally:
        settings.INITIAL_NO_AUTH_ACTION_COUNT = before
