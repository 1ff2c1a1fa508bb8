"""Remote signing: the server checks and signs the requests that a client will send to S3.

A request is signed only if this module knows all of it: the host, the bucket, the key, each
parameter of the query and each header that S3 acts on. Everything else is refused.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit
from xml.etree import ElementTree as ET

from msgspec import Struct

from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.iceberg.warehouses.warehouse import Warehouse
from nessie_cli.server.iceberg.delegation.s3 import Account, Folder, is_metadata_file

UNSIGNED = "UNSIGNED-PAYLOAD"

_CONTENT_HASH, _COPY = "x-amz-content-sha256", "x-amz-copy-source"
_HASHES = re.compile(r"[0-9a-f]{64}|UNSIGNED-PAYLOAD|STREAMING-[A-Z0-9-]{1,64}")
_AWS_HOST = re.compile(
    r"(?:(?P<bucket>[a-z0-9.-]+)\.)?s3(?:-fips)?(?:[.-]dualstack)?"
    r"(?:[.-](?P<region>[a-z]{2}(?:-[a-z]+)+-\d))?\.amazonaws\.com(?:\.cn)?"
)
_HEADERS = re.compile(
    r"x-amz-(?:content-sha256|date|decoded-content-length|trailer|te|user-agent|tagging"
    r"|checksum-[a-z0-9-]+|sdk-checksum-algorithm|storage-class|meta-[^:]+|metadata-directive"
    r"|server-side-encryption[a-z-]*|copy-source(?:-range|-if-[a-z-]+"
    r"|-server-side-encryption[a-z-]*)?|expected-bucket-owner|request-payer)"
)
"""Headers that S3 acts on and that change nothing but the object itself."""


class SignRequest(Struct, frozen=True, kw_only=True):
    """A request that a client asks to sign, as the specification's `RemoteSignRequest`."""

    region: str
    uri: str
    method: str
    headers: dict[str, list[str]]
    properties: dict[str, str] | None = None
    body: str | None = None
    provider: str | None = None


class Signed(NamedTuple):
    """The signed URI, the headers to add, and whether the client may use them again."""

    uri: str
    headers: dict[str, list[str]]
    reusable: bool


class Operation(NamedTuple):
    """A kind of request that can be signed: its method, target and query parameters."""

    method: str
    on_object: bool
    required: frozenset[str] = frozenset()
    allowed: frozenset[str] = frozenset()
    writes: bool = False
    deletes: bool = False

    def takes(self, method: str, key: str, query: Mapping[str, str]) -> bool:
        """Whether a request is of this kind."""
        same = method == self.method and bool(key) == self.on_object
        return same and self.required <= query.keys() <= self.required | self.allowed | {"x-id"}


def _names(*names: str) -> frozenset[str]:
    return frozenset(names)


_LISTING = _names(
    "list-type", "delimiter", "max-keys", "continuation-token", "start-after", "encoding-type",
    "fetch-owner", "marker",
)  # fmt: skip
LIST = Operation("GET", on_object=False, required=_names("prefix"), allowed=_LISTING)
DELETE_OBJECTS = Operation(
    "POST", on_object=False, required=_names("delete"), writes=True, deletes=True
)
OPERATIONS = (
    Operation("GET", on_object=True, allowed=_names("partNumber")),
    Operation("HEAD", on_object=True, allowed=_names("partNumber")),
    LIST,
    Operation("PUT", on_object=True, writes=True),
    Operation("PUT", on_object=True, required=_names("partNumber", "uploadId"), writes=True),
    Operation("POST", on_object=True, required=_names("uploads"), writes=True),
    Operation("POST", on_object=True, required=_names("uploadId"), writes=True),
    Operation("DELETE", on_object=True, required=_names("uploadId"), writes=True),
    Operation("DELETE", on_object=True, writes=True, deletes=True),
    DELETE_OBJECTS,
)
"""Subresources such as `acl` and `policy` are not included."""


class Signer:
    """Checks requests for a warehouse's storage, and signs them."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def sign(self, request: SignRequest, folder: Folder, *, writable: bool) -> Signed:
        """Returns a signed request within a table's folder.

        Raises `NotAllowed` and `InvalidInput` for requests that are not signed.
        """
        if request.provider not in (None, "s3"):
            raise InvalidInput("provider: must be s3")
        _check_size(request)
        parts = _split(request.uri)
        headers = _headers(request.headers)
        bucket, key = _addressed(parts, self._account.warehouse)
        if bucket != folder.bucket:
            raise NotAllowed("uri: is not in the bucket of the table")
        query = _query(parts.query)
        operation = _operation(request.method, key, query)
        if operation.writes and not writable:
            raise NotAllowed(f"{request.method}: the caller may only read the table here")
        if operation.deletes and not self._account.warehouse.delete_files:
            raise NotAllowed(f"{request.method}: clients may not delete files of this warehouse")
        _check_keys(operation, folder, key, query, headers)
        if operation is DELETE_OBJECTS:
            _check_deleted(folder, request.body, headers)
        _check_region(request.region, self._account.region)
        added = self._signature(request, headers)
        return Signed(request.uri, added, reusable=request.method in ("GET", "HEAD"))

    def _signature(self, request: SignRequest, headers: Mapping[str, str]) -> dict[str, list[str]]:
        """The headers that a client has to add."""
        from botocore.awsrequest import AWSRequest

        signed = {
            name: value
            for name, value in headers.items()
            if name == "content-md5" or (name.startswith("x-amz-") and name != "x-amz-date")
        }
        made = AWSRequest(method=request.method, url=request.uri, headers=signed)
        unknown = UNSIGNED if request.body is None else _digest(request.body)
        made.context[_CONTENT_HASH] = headers.get(_CONTENT_HASH, unknown)
        _auth()(self._account.credentials(), "s3", request.region).add_auth(made)
        return {name: [text] for name, text in made.headers.items() if name.lower() not in signed}


@cache
def _auth() -> Any:
    """The class of botocore that signs, for payloads that the server does not have."""
    from botocore.auth import S3SigV4Auth

    class Auth(S3SigV4Auth):  # type: ignore[misc]
        def payload(self, request: Any) -> str:
            return str(request.context[_CONTENT_HASH])

    return Auth


# -- parsing a request -----------------------------------------------------------------------------

_LONGEST_URI = 16 * 2**10
"""Characters of a URI. A key has at most 1024 bytes: 3072 characters when percent-encoded."""
_MOST_HEADERS, _LONGEST_HEADERS = 1_000, 64 * 2**10
"""The most values of headers, and the most characters of their names and values."""


def _check_size(request: SignRequest) -> None:
    """Raises `InvalidInput` if parsing a request could stop other threads for long."""
    if len(request.uri) > _LONGEST_URI:
        raise InvalidInput(f"uri: has more than {_LONGEST_URI} characters")
    number = characters = 0
    for name, values in request.headers.items():
        number += max(1, len(values))
        if number <= _MOST_HEADERS:
            characters += len(name) + sum(map(len, values))
        if number > _MOST_HEADERS or characters > _LONGEST_HEADERS:
            raise InvalidInput(
                f"headers: has more than {_MOST_HEADERS} values or {_LONGEST_HEADERS} characters"
            )


def _split(uri: str) -> SplitResult:
    if not uri.isascii() or not uri.isprintable() or " " in uri or "\\" in uri:
        raise InvalidInput("uri: has characters that must be percent-encoded")
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:
        raise InvalidInput("uri: is not a URI") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise InvalidInput("uri: must be https://HOST/... without a user")
    if "#" in uri or port == 0:
        raise InvalidInput("uri: must not have a fragment")
    return parts


def _headers(given: Mapping[str, list[str]]) -> dict[str, str]:
    """The headers by their names in lower case.

    Raises `NotAllowed` for one that S3 acts on and that is not known.
    """
    headers: dict[str, str] = {}
    for name, values in given.items():
        lower = name.lower().strip()
        if lower in headers or lower != name.lower() or not all(map(str.isprintable, values)):
            raise InvalidInput(f"headers: {name!r} occurs twice, or no header")
        if lower.startswith("x-amz-") and not _HEADERS.fullmatch(lower):
            raise NotAllowed(f"headers: {lower} is not signed")
        headers[lower] = ",".join(values)
    if not _HASHES.fullmatch(headers.get(_CONTENT_HASH, UNSIGNED)):
        raise InvalidInput(f"headers: {_CONTENT_HASH} is not a hash")
    return headers


def _addressed(parts: SplitResult, warehouse: Warehouse) -> tuple[str, str]:
    """The bucket and the key that a URI names.

    Raises `NotAllowed` unless the host is that of the warehouse.
    """
    host = (parts.hostname or "").lower()
    in_host = _bucket_in_host(parts, host, warehouse)
    path = parts.path.removeprefix("/")
    bucket, rest = (in_host, path) if in_host else _cut(path)
    if "/" in unquote(bucket) or unquote(bucket) != bucket:
        raise NotAllowed("uri: the bucket must not be percent-encoded")
    if re.search(r"%(?![0-9A-Fa-f]{2})", rest):
        raise InvalidInput("uri: a '%' is not followed by two hexadecimal digits")
    try:
        key = unquote(rest, errors="strict")
    except UnicodeDecodeError:
        raise InvalidInput("uri: is not UTF-8") from None
    return bucket, key


def _cut(path: str) -> tuple[str, str]:
    bucket, _, rest = path.partition("/")
    return bucket, rest


def _bucket_in_host(parts: SplitResult, host: str, warehouse: Warehouse) -> str:
    """The bucket that the host names, empty if the path names it."""
    endpoints = [
        settings["s3.endpoint"]
        for settings in (warehouse.storage, warehouse.client_config)
        if settings.get("s3.endpoint")
    ]
    for endpoint in endpoints:
        allowed = urlsplit(endpoint)
        if (parts.scheme, parts.port) == (allowed.scheme, allowed.port) and allowed.hostname:
            if host == allowed.hostname:
                return ""
            if host.endswith(f".{allowed.hostname}"):
                return host.removesuffix(f".{allowed.hostname}")
    match = _AWS_HOST.fullmatch(host) if not endpoints else None
    if match is None or parts.scheme != "https" or parts.port not in (None, 443):
        raise NotAllowed("uri: the host is not that of the warehouse")
    return match["bucket"] or ""


def _query(text: str) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for pair in text.split("&") if text else ():
        name, _, value = pair.partition("=")
        if name in parameters or "%" in name or "+" in pair or ";" in pair:
            raise InvalidInput("uri: a parameter of the query occurs twice, or has '+' or ';'")
        parameters[name] = unquote(value)
    return parameters


def _operation(method: str, key: str, query: Mapping[str, str]) -> Operation:
    for operation in OPERATIONS:
        if operation.takes(method, key, query):
            return operation
    names = ", ".join(sorted(query)) or "none"
    raise NotAllowed(
        f"{method}: is not signed for {'an object' if key else 'a bucket'} with the parameters:"
        f" {names}"
    )


# -- checking its names ----------------------------------------------------------------------------


def _check_keys(
    operation: Operation,
    folder: Folder,
    key: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
) -> None:
    if key and not folder.holds(key):
        raise NotAllowed("uri: is outside of the table's location")
    if key and operation.writes and is_metadata_file(key):
        raise NotAllowed("uri: the server alone writes and deletes metadata files")
    if operation is LIST and not folder.holds_prefix(query["prefix"]):
        raise NotAllowed("uri: the prefix is outside of the table's location")
    source = headers.get(_COPY)
    if source is not None:
        bucket, name = _cut(unquote(source).removeprefix("/"))
        if "?" in name or bucket != folder.bucket or not folder.holds(name):
            raise NotAllowed(f"{_COPY}: is outside of the table's location")


def _check_deleted(folder: Folder, body: str | None, headers: Mapping[str, str]) -> None:
    if not body:
        raise InvalidInput("body: is missing (it lists the objects to delete)")
    if headers.get(_CONTENT_HASH, _digest(body)) != _digest(body):
        # Otherwise the client could send another body.
        raise NotAllowed(f"{_CONTENT_HASH}: must be the hash of the body")
    for key in deleted_keys(body):
        if not folder.holds(key):
            raise NotAllowed("body: names an object outside of the table's location")
        if is_metadata_file(key):
            raise NotAllowed("body: the server alone deletes metadata files")


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _check_region(given: str, configured: str | None) -> None:
    if not re.fullmatch(r"[a-z0-9-]{1,32}", given) or (configured and given != configured):
        raise NotAllowed("region: is not that of the warehouse")


MOST_KEYS = 1000
"""The limit of S3."""
_MOST_CHARACTERS = 2 * 2**20
_MOST_TAGS = 8 * MOST_KEYS
_FED = 16 * 2**10
"""Characters of XML that are parsed at once. A tag with the text after it has no more."""
_DECLARATION = re.compile(r"\s*<\?xml[^>]*\?>")
_ENCODING = re.compile(r"encoding\s*=\s*[\"']utf-8[\"']", re.IGNORECASE)


def deleted_keys(body: str) -> Iterator[str]:
    """Yields the keys.

    Raises `InvalidInput` for a body of another form, `NotAllowed` for one that deletes versions.
    """
    if len(body) > _MOST_CHARACTERS:
        raise InvalidInput("body: is too large")
    declaration = _DECLARATION.match(body)
    other = declaration and "encoding" in declaration[0] and not _ENCODING.search(declaration[0])
    # Entities and encodings could make S3 read different keys than this program.
    if "<!" in body or other:
        raise InvalidInput("body: must be plain XML in UTF-8")
    if body.count("<") > _MOST_TAGS or max(map(len, body.split("<"))) > _FED:
        raise InvalidInput(f"body: must be a Delete of at most {MOST_KEYS} objects")
    root = _parsed(body)
    if _name(root) != "Delete" or len(root) > MOST_KEYS + 1:
        raise InvalidInput(f"body: must be a Delete of at most {MOST_KEYS} objects")
    for child in root:
        if _name(child) == "Object":
            yield _key(child)
        elif _name(child) != "Quiet":
            raise InvalidInput("body: holds more than objects")


def _parsed(body: str) -> ET.Element:
    """Returns the root of an XML text, parsed in parts between which other threads run."""
    parser = ET.XMLParser()  # noqa: S314 - without entities, of bounded size
    try:
        for start in range(0, len(body), _FED):
            parser.feed(body[start : start + _FED])
        root: ET.Element = parser.close()
    except ET.ParseError:
        raise InvalidInput("body: is not XML") from None
    return root


def _key(child: ET.Element) -> str:
    names = [_name(member) for member in child]
    if "VersionId" in names:
        raise NotAllowed("body: deletes versions of objects")
    if names != ["Key"] or not child[0].text or len(child[0]):
        raise InvalidInput("body: an object must have a key and nothing else")
    return child[0].text


def _name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]
