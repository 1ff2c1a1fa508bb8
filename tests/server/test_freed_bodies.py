"""No call holds the interpreter for long while a large body is decoded, refused and freed."""

import gc
from functools import partial

import pytest

from nessie_cli import connect
from nessie_cli.errors import InvalidInput
from nessie_cli.server.auth.gate import Catalog
from nessie_cli.server.http.streams import LogEntryCache
from nessie_cli.server.nessie.v2.writing import _decode_commit
from nessie_cli.server.pipeline.call import Call
from nessie_cli.server.runtime.memory import collect_rarely, give_back, set_aside
from nessie_cli.wire.large_json import MOST_VALUES
from tests.server.longest_call import ATTEMPTS, MOST_SECONDS, LongestCall

COMMIT = b'{"commitMeta":{"message":"m"},"operations":[%b]%b}'
DELETE = b'{"type":"DELETE","key":{"elements":["a"]}}'
PUT = (
    b'{"type":"PUT","key":{"elements":["a"]},"content":{"type":"ICEBERG_TABLE",'
    b'"metadataLocation":"s3://a","snapshotId":1,"schemaId":0,"specId":0,"sortOrderId":0},'
    b'"metadata":[%b]}'
)


def many(item, size):
    """Returns as many items of `size` values as a body may have, without its brackets."""
    return b",".join([item] * ((MOST_VALUES - 100) // size))


BODIES = {
    "objects as operations": lambda: COMMIT % (many(b'{"a":1000}', 2), b""),
    "an unknown member": lambda: COMMIT % (DELETE, b',"x":[[%b]]' % many(b"[1000]", 2)),
    "a large operation": lambda: COMMIT % (PUT % many(b'{"a":1000}', 2), b""),
    "a fault at the end": lambda: COMMIT % (DELETE, b',"x":[[%b]x]' % many(b"[1000]", 2)),
}


def handle(body):
    """Handles a body as the server does, and returns whether it is valid."""
    with connect("memory:") as repository:
        call = Call(Catalog(repository, "main", LogEntryCache()), {}, "", [])
        call.take(body)
        del body
        try:
            call.decoded(partial(_decode_commit, call))
        except InvalidInput:
            return False
        finally:
            call.free_body()
    return True


@pytest.fixture
def garbage():
    """Garbage is collected as in a server."""
    thresholds = gc.get_threshold()
    collect_rarely()
    set_aside()
    yield
    give_back()
    gc.set_threshold(*thresholds)


@pytest.mark.usefixtures("garbage")
@pytest.mark.parametrize("name", BODIES)
def test_no_call_is_long_while_a_body_is_decoded_and_freed(name):
    longest = []
    while len(longest) < ATTEMPTS and not (longest and min(longest) < MOST_SECONDS):
        body = BODIES[name]()
        with LongestCall() as call:
            valid = handle(body)
        longest.append(call.seconds)
        assert valid == (name == "an unknown member")
    assert min(longest) < MOST_SECONDS
