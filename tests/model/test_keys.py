"""Content keys: text form, limits, forbidden characters, order."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey

ELEMENT = st.text(
    st.characters(min_codepoint=0x20, exclude_characters="\x7f", exclude_categories=["Cs"]),
    min_size=1,
    max_size=12,
)
AWKWARD = st.text(
    st.sampled_from('."" \\/%#?*{}[]ab\u001dé漢🧊\u00a0'.replace("\x1d", "")),
    min_size=1,
    max_size=6,
)
KEYS = st.lists(ELEMENT | AWKWARD, min_size=1, max_size=20).map(
    lambda elements: ContentKey(tuple(elements))
)


@given(KEYS)
@example(ContentKey(('"',)))
@example(ContentKey((".", "..", '""')))
@example(ContentKey(("a b", "\u3000")))
@example(ContentKey(("#", "*", "%2E", "a/b\\c")))
def test_the_text_form_is_parsed_to_the_same_key(key: ContentKey) -> None:
    assert ContentKey.parse(str(key)) == key


@given(st.lists(KEYS, unique=True))
def test_different_keys_have_different_texts(keys: list[ContentKey]) -> None:
    assert len({str(key) for key in keys}) == len(keys)


@given(st.text(max_size=30))
def test_any_text_is_a_key_or_invalid_input(text: str) -> None:
    message = ""
    try:
        key = ContentKey.parse(text)
    except InvalidInput as fault:
        message = fault.message
    else:
        assert ContentKey.parse(str(key)) == key
    assert message.isprintable() or not text.isprintable()
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("db", ("db",)),
        ("db.sales.orders", ("db", "sales", "orders")),
        ('db."order.lines"', ("db", "order.lines")),
        ('"a b".c', ("a b", "c")),
        ('"say ""hi"""', ('say "hi"',)),
        ("a b.c", ("a b", "c")),
        ("Ünï.漢字.🧊", ("Ünï", "漢字", "🧊")),
        ("a-b_c.d$e.f/g", ("a-b_c", "d$e", "f/g")),
    ],
)
def test_texts_are_parsed(text: str, elements: tuple[str, ...]) -> None:
    assert ContentKey.parse(text).elements == elements


@pytest.mark.parametrize(
    ("elements", "text"),
    [
        (("db", "orders"), "db.orders"),
        (("db", "order.lines"), 'db."order.lines"'),
        (("a b",), '"a b"'),
        (('a"b',), '"a""b"'),
        (("漢字",), "漢字"),
    ],
)
def test_keys_are_printed(elements: tuple[str, ...], text: str) -> None:
    assert str(ContentKey(elements)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "a.",
        ".a",
        "a..b",
        '"',
        '"a',
        'a"b',
        '"a"b',
        '""',
        'a."".b',
        '"a".',
        "a\x00b",
        "a\tb",
        "a\n",
        "a\x7f",
    ],
)
def test_malformed_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        ContentKey.parse(text)


def test_twenty_elements_are_the_limit() -> None:
    assert len(ContentKey(("e",) * 20).elements) == 20
    with pytest.raises(InvalidInput, match="max allowed number of elements: 20"):
        ContentKey(("e",) * 21)


@pytest.mark.parametrize("character", ["a", "é", "漢"])
def test_five_hundred_characters_are_the_limit(character: str) -> None:
    assert ContentKey((character * 250, character * 250))
    with pytest.raises(InvalidInput, match="Content key too long, max allowed length: 500"):
        ContentKey((character * 250, character * 251))


def test_characters_outside_of_the_basic_plane_count_twice() -> None:
    assert ContentKey(("🧊" * 250,))
    with pytest.raises(InvalidInput, match="Content key too long"):
        ContentKey(("🧊" * 250 + "a",))


def test_dots_between_elements_do_not_count() -> None:
    assert ContentKey(("a" * 25,) * 20)


@pytest.mark.parametrize("code", [*range(0x20), 0x7F])
def test_control_characters_are_refused(code: int) -> None:
    with pytest.raises(InvalidInput, match="must not contain"):
        ContentKey(("a", f"b{chr(code)}c"))


@pytest.mark.parametrize(
    "character", [*" ./\\%#?*{}[]\"'`$:;@~^|<>,", "\x80", "\u2028", "é", "漢", "🧊"]
)
def test_every_other_character_is_allowed(character: str) -> None:
    assert ContentKey((character, f"a{character}b")).elements[0] == character


def test_a_single_surrogate_is_refused() -> None:
    with pytest.raises(InvalidInput):
        ContentKey(("\ud800",))


def test_an_empty_element_is_refused() -> None:
    with pytest.raises(InvalidInput, match="must not contain an empty element"):
        ContentKey(("a", "", "b"))


@given(st.lists(KEYS, max_size=30))
def test_order_is_element_by_element(keys: list[ContentKey]) -> None:
    assert sorted(keys) == sorted(keys, key=lambda key: key.elements)


def test_a_prefix_sorts_before_its_extensions_and_these_before_longer_elements() -> None:
    keys = [("a",), ("a", "b"), ("a", "b", "c"), ("a", "bb"), ("a ", "b"), ("a.b",), ("ab",)]
    assert sorted(ContentKey(k) for k in reversed(keys)) == [ContentKey(k) for k in keys]


@given(KEYS)
def test_a_parent_contains_its_child(key: ContentKey) -> None:
    parent = key.parent
    if len(key.elements) == 1:
        assert parent is None
    else:
        assert parent is not None
        assert key.starts_with(parent)
        assert not parent.starts_with(key)


def test_prefixes_are_compared_by_elements() -> None:
    assert ContentKey(("a", "b")).starts_with(ContentKey(("a",)))
    assert ContentKey(("a",)).starts_with(ContentKey(("a",)))
    assert not ContentKey(("ab",)).starts_with(ContentKey(("a",)))


def test_the_plain_form_quotes_nothing() -> None:
    assert ContentKey(("a.b", "c d")).plain == "a.b.c d"


def test_equal_keys_are_equal_values() -> None:
    assert len({ContentKey(("a",)), ContentKey(("a",)), ContentKey(("b",))}) == 2
    with pytest.raises(AttributeError):
        ContentKey(("a",)).elements = ("b",)  # type: ignore[misc]
