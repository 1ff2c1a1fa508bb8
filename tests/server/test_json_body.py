"""Large bodies are read in steps, with the same result as small ones."""

import json
from random import Random

import msgspec
import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.server.http.failures import HttpFault
from nessie_cli.server.http.messages import read_json
from nessie_cli.wire.contents import MOST_ITEMS
from nessie_cli.wire.decode import MOST_VALUES_OF_OPERATION, decode_operations
from nessie_cli.wire.large_json import LONGEST, MOST_VALUES, READ_AT_ONCE, free

SPACE = b" " * (READ_AT_ONCE + 1)
"""Makes a body large without changing its value."""
TEXTS = ["", "a", 'quo"te', "back\\slash", 'x,"y', "é", "\U0001f600", "]}", ',{"', "x" * 3000]


def random_value(chance, depth):
    kind = chance.randrange(8 if depth else 5)
    if kind < 5:
        return [None, True, 12.5, chance.randrange(10**12), chance.choice(TEXTS)][kind]
    size = chance.choice([0, 1, 3, 40])
    items = [random_value(chance, depth - 1) for _ in range(size)]
    if kind < 7:
        return items
    return {f"{chance.choice(TEXTS)[:9]}{number}": item for number, item in enumerate(items)}


def written(value, form):
    return json.dumps(value, **form).encode()


FORMS = [
    {"separators": (",", ":")},
    {"ensure_ascii": False},
    {"indent": 1},
]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("form", range(len(FORMS)))
def test_a_large_body_is_read_like_a_small_one(seed, form):
    chance = Random(seed)
    value = [random_value(chance, 3) for _ in range(20)]
    while len(text := written(value, FORMS[form])) <= READ_AT_ONCE:
        value = [value, value]
    assert read_json(text) == value
    assert read_json(b'{"a": %b, "b": 1}' % text) == {"a": value, "b": 1}


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-8-sig"])
def test_a_large_body_in_another_encoding_is_read(encoding):
    value = [["ä", "\U0001f600", index] for index in range(50_000)]
    assert read_json(json.dumps(value, ensure_ascii=False).encode(encoding)) == value


def test_the_last_of_equal_names_counts():
    names = b",".join(b'"%d":%d' % (number % 7, number) for number in range(50_000))
    assert read_json(b"{%b}" % names) == msgspec.json.decode(b"{%b}" % names)


def test_a_large_body_of_space_is_empty():
    assert read_json(SPACE) is None
    assert read_json(SPACE + b"null") is None


VALID = [b"1", b'"a"', b"[]", b"{}", b"[ ]", b"{ }", b"[1]", b'{"a":[{}]}', b"true", b"-1.5e3"]
FAULTS = [
    b"[1,]", b"[,1]", b"[1 2]", b"[1", b"[1,", b"]", b"{", b'{"a"', b'{"a":', b'{"a":1', b'{"a":1,',
    b'{"a":1,}', b'{"a" 1}', b"{1:2}", b"{,}", b"NaN", b"[Infinity]", b"1e999", b"01", b"1 1", b"tru",
    b'"a', b'"\x01"', b'"\xff"', b'["\\ud800"]', b"'a'", b"[1]]", b"{}{}", b"\xc0", b"1" * 5000,
    b"9" * LONGEST, b'"' + b"a" * LONGEST + b'"',
]  # fmt: skip


@pytest.mark.parametrize("text", VALID)
def test_a_value_among_spaces_is_read(text):
    for space in (SPACE, b"\t\n\r " * (READ_AT_ONCE // 3)):
        assert read_json(space + text + space) == msgspec.json.decode(text)
        assert read_json(b"[" + space + text + space + b"]") == [msgspec.json.decode(text)]


@pytest.mark.parametrize("number", range(len(FAULTS)))
def test_a_fault_in_a_large_body_is_refused(number):
    fault = FAULTS[number]
    items = b"0," * READ_AT_ONCE
    for text in (SPACE + fault, items[:-1] + fault, b"[%b%b]" % (items, fault), fault + SPACE):
        with pytest.raises(InvalidInput, match="body: is not JSON: "):
            read_json(text)


@pytest.mark.parametrize("nested", [b"[", b'{"a":', b'[{"a":'])
@pytest.mark.parametrize("size", [2_000, 2_000_000])
def test_a_body_that_is_nested_too_deeply_is_refused(nested, size):
    with pytest.raises(InvalidInput, match="too deeply"):
        read_json(nested * size)
    with pytest.raises(InvalidInput, match="too deeply"):
        read_json(SPACE + nested * size)


@pytest.mark.parametrize("item", [b"0", b"{}", b"[]", b'{"a":0}', b'[",,,,"]'])
def test_a_body_with_too_many_values_is_refused(item):
    text = b"[" + b",".join([item] * (MOST_VALUES + 1)) + b"]"
    with pytest.raises(HttpFault, match="4,000,000 values") as refused:
        read_json(text)
    assert refused.value.status == 413


def test_a_commit_of_200_000_operations_is_within_the_limits():
    operation = {
        "type": "PUT",
        "key": {"elements": ["sales", "2026", "orders"]},
        "content": {
            "type": "ICEBERG_TABLE",
            "id": None,
            "metadataLocation": "s3://lake/sales/2026/orders/metadata/00000-1b6f7ae0.metadata.json",
            "snapshotId": 1,
            "schemaId": 0,
            "specId": 0,
            "sortOrderId": 0,
        },
    }
    body = {"commitMeta": {"message": "m"}, "operations": [operation] * 200_000}
    assert read_json(msgspec.json.encode(body)) == body


def test_freed_values_leave_shared_ones_unchanged():
    shared = {"a": [1, {"b": "c"}]}
    value = [{"x": [shared], "y": (shared, 1.5)}] * 3
    values = [value, None, "text"]
    free(values)
    assert values == []
    assert shared == {"a": [1, {"b": "c"}]}
    assert value == [{"x": [shared], "y": (shared, 1.5)}] * 3


def namespace(properties):
    content = {"type": "NAMESPACE", "elements": ["a"], "properties": properties}
    return {"type": "PUT", "key": {"elements": ["a"]}, "content": content}


def test_the_values_of_an_operation_are_limited():
    def decoded(operation, **meta):
        operations = [{"type": "DELETE", "key": {"elements": ["b"]}}, operation]
        return decode_operations({"commitMeta": {"message": "m", **meta}, "operations": operations})

    largest = namespace({f"p{number}": "" for number in range(MOST_ITEMS)})
    assert len(decoded(largest)[1]) == 2
    half = MOST_VALUES_OF_OPERATION // 2 + 1
    for fault in (
        {**largest, "x": [0] * 2 * half},
        {**largest, "x": {str(number): [0] for number in range(half)}},
        [[0] * half, [0] * half],
    ):
        with pytest.raises(InvalidInput, match=r"operations\[1\]: has more than 250,000 values"):
            decoded(fault)
    with pytest.raises(InvalidInput, match="commitMeta: has more than 250,000 values"):
        decoded(largest, authors=["a"] * (2 * half))
