"""Vended credentials: temporary ones of STS for exactly one table's folder."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from nessie_cli.errors import StoreUnavailable
from nessie_cli.iceberg.files import first_line
from nessie_cli.iceberg.warehouses.warehouse import Vending
from nessie_cli.server.iceberg.delegation.s3 import Account, Folder
from nessie_cli.server.runtime.watched_files import report_on_stderr

EXPIRES = "s3.session-token-expires-at-ms"
LONGEST_POLICY = 2048
"""Characters that STS accepts."""

_READ = ["s3:GetObject"]
_DELETE = "s3:DeleteObject"
_WRITE = ["s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
_NOT_IN_SESSION_NAMES = re.compile(r"[^\w+=,.@-]", re.ASCII)
_LONGEST_SESSION_NAME = 64
_MOST_CACHED = 4096


class VendedCredentials(NamedTuple):
    """Temporary credentials, as clients read them, and the second of their expiry."""

    config: dict[str, str]
    expires: int


def policy(folder: Folder, *, partition: str, writable: bool, deletes: bool = False) -> str:
    """Returns the session policy for a table's folder.

    It allows deletes only if `deletes`, and never to write or delete metadata files.
    """
    bucket = f"arn:{partition}:s3:::{folder.bucket}"
    below = f"{bucket}/{folder.prefix}/*"
    writing = [*_WRITE, *([_DELETE] if deletes else [])]
    statements: list[dict[str, Any]] = [
        {"Effect": "Allow", "Action": _READ + (writing if writable else []), "Resource": below},
        {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": bucket,
            "Condition": {"StringLike": {"s3:prefix": f"{folder.prefix}/*"}},
        },
        {"Effect": "Allow", "Action": "s3:GetBucketLocation", "Resource": bucket},
    ]
    if writable:
        files = [f"{below}.metadata.json", f"{below}.metadata.json.gz"]
        denied = ["s3:PutObject", _DELETE] if deletes else "s3:PutObject"
        statements.append({"Effect": "Deny", "Action": denied, "Resource": files})
    return msgspec.json.encode({"Version": "2012-10-17", "Statement": statements}).decode()


class Vendor:
    """Gets credentials from STS, and reuses each until half of its lifetime is over."""

    def __init__(
        self, account: Account, vending: Vending, clock: Callable[[], float] = time.time
    ) -> None:
        self._account, self._vending, self._clock = account, vending, clock
        self._lock = threading.Lock()
        self._sts: Any = None
        self._cached: dict[tuple[Folder, bool, str], VendedCredentials] = {}

    def credentials(
        self, folder: Folder, caller: str, *, writable: bool
    ) -> VendedCredentials | None:
        """Returns a caller's credentials for a table's folder; None if the policy is too long.

        Raises `StoreUnavailable` if STS issues none. Cost: one request, unless some are cached.
        """
        deletes = self._account.warehouse.delete_files
        text = policy(folder, partition=self._partition, writable=writable, deletes=deletes)
        if len(text) > LONGEST_POLICY:
            return None
        whose = (folder, writable, caller)
        credentials = self._cached.get(whose)
        if credentials is None or credentials.expires - self._clock() < self._vending.seconds / 2:
            credentials = self._assumed(text, caller)
            with self._lock:
                self._cached.pop(whose, None)
                while len(self._cached) >= _MOST_CACHED:
                    del self._cached[next(iter(self._cached))]
                self._cached[whose] = credentials
        return credentials

    @property
    def _partition(self) -> str:
        """The partition of AWS (`aws`, `aws-cn`, ...), from the ARN of the role."""
        return (self._vending.role_arn.split(":") + ["aws"] * 2)[1] or "aws"

    def _assumed(self, text: str, caller: str) -> VendedCredentials:
        request = {
            "RoleArn": self._vending.role_arn,
            "RoleSessionName": _NOT_IN_SESSION_NAMES.sub("_", f"nessie-{caller}")[
                :_LONGEST_SESSION_NAME
            ],
            "Policy": text,
            "DurationSeconds": self._vending.seconds,
        }
        if self._vending.external_id:
            request["ExternalId"] = self._vending.external_id
        try:
            given = self._client().assume_role(**request)["Credentials"]
        except Exception as error:  # noqa: BLE001 - botocore's errors share no base with those of its transports
            name = self._account.warehouse.name
            report_on_stderr(f"warehouse '{name}': STS gives no credentials: {first_line(error)}")
            raise StoreUnavailable(
                f"warehouse '{name}': no credentials for the table now; the server's log says why"
            ) from None
        expires = int(given["Expiration"].timestamp())
        config = {
            "s3.access-key-id": given["AccessKeyId"],
            "s3.secret-access-key": given["SecretAccessKey"],
            "s3.session-token": given["SessionToken"],
            EXPIRES: str(expires * 1000),
        }
        return VendedCredentials(config, expires)

    def _client(self) -> Any:
        with self._lock:
            if self._sts is None:
                self._sts = self._account.sts(self._vending.sts_endpoint)
            return self._sts
