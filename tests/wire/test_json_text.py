"""The strict JSON parser: it refuses input that the standard library accepts, and names its
place."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nessie_cli.errors import InvalidInput
from nessie_cli.wire.json_text import describe, parse_json, walk

# No deadline, because the machine may be busy with the rest of the suite.
ROBUST = settings(print_blob=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])

REFUSED = {
    "": "the text is empty; JSON is expected",
    "\ufeff": "the text is empty; JSON is expected",
    "\udcff": "the text is not valid Unicode: character 1 is half a surrogate pair",
    b"\xff": "the text is not UTF-8: byte 0xff at offset 0",
    b'{"a": "\xc3\x28"}': "the text is not UTF-8: byte 0xc3 at offset 7",
    b"\xff\xfe{\x00}\x00": "the text is UTF-16; write it as UTF-8",
    '{"a": NaN}': "a: NaN is not a valid JSON number",
    "[1, -Infinity]": "[1]: -Infinity is not a valid JSON number",
    '{"a": [1e999]}': "a[0]: 1e999 is not a valid JSON number",
    '{"a": {"b": 1, "b": 1}}': 'a: the attribute "b" occurs twice',
    '[{"a": 1, "\\u0061": 2}]': '[0]: the attribute "a" occurs twice',
    '{"\\ud800": 1}': "is not valid Unicode text: half a surrogate pair",
    '["\\uDC00\\uD800"]': "[0]: is not valid Unicode text: half a surrogate pair",
    "[" * 100_000: "the JSON is nested too deeply",
    '{"a":' * 100_000: "the JSON is nested too deeply",
    f"[{'1' * 5000}]": "the JSON is not usable: a number has too many digits",
    "{'a': 1}": "line 1 column 2 is not JSON: expecting property name enclosed in double quotes",
    '{"a":\n  1\n  "b": 2}': "line 3 column 3 is not JSON: expecting ',' delimiter",
    '["a\tb"]': "line 1 column 4 is not JSON: invalid control character",
    '"a': "line 1 column 1 is not JSON: unterminated string starting",
    "[1,": "line 1 column 4 is not JSON: the text ends too early",
    "{}\n\n  {}": 'line 3: more text follows the end of the JSON value: "{}"',
    "/* c */ {}": "line 1 column 1 is not JSON: expecting value",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text[:24]))
def test_the_error_for_invalid_json_names_the_place(text):
    with pytest.raises(InvalidInput) as caught:
        parse_json(text, "f.json")
    assert caught.value.message == f"f.json: {REFUSED[text]}"


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
)


@pytest.mark.slow
@ROBUST
@given(VALUES, st.booleans())
def test_every_json_value_survives_writing_and_reading(value, ensure_ascii):
    text = json.dumps(value, ensure_ascii=ensure_ascii)
    assert parse_json(text) == parse_json(text.encode()) == parse_json(f"\ufeff {text}\n") == value


@ROBUST
@given(st.text() | st.binary() | VALUES.map(lambda value: json.dumps(value)[:-1]))
def test_any_text_is_a_value_or_invalid_input(text):
    try:
        parse_json(text)
    except InvalidInput as error:
        assert "\n" not in error.message  # noqa: PT017 - either way is right


@ROBUST
@given(VALUES)
def test_a_value_is_described_in_one_short_line(value):
    assert "\n" not in describe(value)
    assert len(describe(value)) <= 60


def test_every_value_within_a_value_is_visited_with_its_path():
    visited = list(walk({"a": [1, {"b": None}], "c": "x"}))
    assert ("a[1].b", None) in visited
    assert ("c", "x") in visited
    assert ("a[0]", 1) in visited
