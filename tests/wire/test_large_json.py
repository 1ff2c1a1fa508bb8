"""Large JSON objects are encoded in steps, with the same result as by one call."""

import json
import time

import msgspec
import pytest

from nessie_cli.wire.large_json import decode, decode_members, encode

VALUES = [
    {},
    {"a": {}, "b": [], "é": "ü", "n": None, "t": True, "i": 2**63 - 1, "f": 0.1},
    {"list": [1, "x", [2], {"a": [3]}], "object": {"a": 1, 'quo"te': {"b": [[]]}, "é": "\n"}},
    {"many": [{"id": number} for number in range(3000)], "names": {str(n): n for n in range(3000)}},
]


@pytest.mark.parametrize("value", VALUES)
def test_an_object_is_encoded_as_by_one_call(value):
    assert encode(value) == msgspec.json.encode(value)
    assert decode(encode(value)) == value == json.loads(encode(value))


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("size", [1, 100, 3_000, 20_000])
def test_some_members_are_decoded_without_the_others(indent, size):
    items = [{"id": number, "a": [{"id": -1}]} for number in range(size)]
    value = {"id": 5, "s": items, "a": "x" * size, "m": {str(n): "id" for n in range(size)}, "b": 1}
    text = json.dumps(value, indent=indent).encode()
    assert decode_members(text, ["id", "a", "b", "c"]) == {"id": 5, "a": "x" * size, "b": 1}
    for damaged in (text[:-1], text + b"x", text.replace(b"-1", b"-x"), b""):
        with pytest.raises((ValueError, AssertionError)):
            assert decode_members(damaged, ["id"]) is not None


FORMS = [{"indent": 1}, {"indent": 8}, {}, {"separators": (" , ", " : ")}]


@pytest.mark.parametrize("form", FORMS)
def test_space_between_items_costs_little(form):
    """If each item was read by calls of its own, it would take ten times as long."""
    value = {"a": {f"name{number}": "v" for number in range(200_000)}}

    def seconds(**given):
        text = json.dumps(value, **given).encode()
        begin = time.process_time()
        assert decode(text) == value
        return time.process_time() - begin

    assert seconds(**form) < 5 * max(seconds(separators=(",", ":")), 0.1)
