"""No call on a large metadata file of a client is long: no other thread runs meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import suppress

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.metadata import parse_document
from nessie_cli.iceberg.warehouses.metadata_files import head_of, parsed
from tests.server.longest_call import ATTEMPTS, MOST_SECONDS, LongestCall

Read = Callable[[bytes, str], object]
START = b'{"format-version":2,"location":"x","u":['


def longest_call(read: Read, text: bytes) -> float:
    """Returns the longest call, in the shortest of some attempts."""
    longest: list[float] = []
    gc.disable()
    try:
        while len(longest) < ATTEMPTS and not (longest and min(longest) < MOST_SECONDS):
            with LongestCall() as call, suppress(InvalidInput):
                read(text, "x")
            longest.append(call.seconds)
    finally:
        gc.enable()
    return min(longest)


DAMAGED = {
    "cut off": (START + b"1," * (2 << 20), "truncated: the JSON ends in the middle of a value"),
    "in a text": (START + b'"' + b"a" * (24 << 20), "truncated: the JSON ends in the middle"),
    "not UTF-8": (START + b"1," * (2 << 20) + b'"\xff"]}', "it is not UTF-8 text"),
    "not a number": (START + b"1," * (2 << 20) + b"NaN]}\n", "invalid JSON"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_the_fault_of_a_large_file_is_found_by_short_calls(name: str) -> None:
    text, fault = DAMAGED[name]
    with pytest.raises(InvalidInput, match=fault):
        parse_document(text, "x")
    assert longest_call(parse_document, text) < MOST_SECONDS


LARGE = {
    "no table": (parse_document, b'{"format-version":2,"u":[' + b"[]," * (1 << 20) + b"1]}"),
    "no object": (parsed, b"[" + b"[]," * (1 << 20) + b"1]"),
    "head": (head_of, START + b"{}," * (11 << 20) + b"1]}"),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_file_is_read_and_refused_by_short_calls(name: str) -> None:
    read, text = LARGE[name]
    assert longest_call(read, text) < MOST_SECONDS
