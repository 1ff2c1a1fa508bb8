"""Reference names: well-formed names, and names that may not be created."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nessie_cli.errors import InvalidInput
from nessie_cli.model import (
    MAX_NAME_LENGTH,
    MAX_REVISION_LENGTH,
    MAX_STEPS,
    check_new_reference_name,
    check_reference_name,
    check_revision_size,
)

GOOD = [
    "a",
    "main",
    "Main",
    "x-",
    "x_",
    "a//b",
    "a/b/c",
    "v1.0",
    "a.b",
    "a-._/b",
    "abcdefgh",
    "feature/JIRA-12",
    "z9",
    "a" * MAX_NAME_LENGTH,
]
MALFORMED = [
    "",
    "1a",
    "-a",
    "_a",
    "/a",
    ".a",
    "a.",
    "a/",
    "a..b",
    "..",
    "a b",
    "a\n",
    "a@b",
    "a~1",
    "a^",
    "a*",
    "ä",
    "a\u200b",
    "a\\b",
    "a%2Fb",
    "a:b",
]
FORBIDDEN = [
    "HEAD",
    "head",
    "Head",
    "DETACHED",
    "detached",
    "deadbeef",
    "DEADBEEF",
    "a" * 8,
    "a" * 64,
    "abcdef0123456789",
    "beef" * 16,
]
HARMLESS = [
    "abcdefg",
    "bad",
    "beef",
    "a" * 7,
    "a" * 65,
    "headless",
    "HEAD2",
    "xdeadbeef",
    "deadbeeg",
    "detached-1",
]


@pytest.mark.parametrize("name", GOOD)
def test_well_formed_names_are_accepted(name: str) -> None:
    assert check_reference_name(name) == name
    if not re.fullmatch("a{8,64}", name):
        assert check_new_reference_name(name) == name


@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("check", [check_reference_name, check_new_reference_name])
def test_malformed_names_are_refused(name: str, check: object) -> None:
    with pytest.raises(InvalidInput, match="Reference name must start with a letter"):
        check(name)  # type: ignore[operator]


@pytest.mark.parametrize("name", FORBIDDEN)
def test_names_like_hashes_or_keywords_cannot_be_created(name: str) -> None:
    assert check_reference_name(name) == name
    with pytest.raises(
        InvalidInput,
        match=r"Reference name mut not be HEAD, DETACHED or a potential commit ID representation\..* - but was",
    ):
        check_new_reference_name(name)


@pytest.mark.parametrize("name", HARMLESS)
def test_names_that_only_resemble_hashes_or_keywords_can_be_created(name: str) -> None:
    assert check_new_reference_name(name) == name


@given(st.text(st.sampled_from("aZ09./_-@ ~"), max_size=6))
def test_names_follow_the_rule_of_the_specification(name: str) -> None:
    lawful = (
        name != ""
        and name[0] in "aZ"
        and all(c in "aZ09./_-" for c in name)
        and ".." not in name
        and name[-1] not in "./"
    )
    try:
        check_reference_name(name)
    except InvalidInput:
        assert not lawful
    else:
        assert lawful


@pytest.mark.parametrize("length", [MAX_NAME_LENGTH + 1, 1_000_000])
@pytest.mark.parametrize("check", [check_reference_name, check_new_reference_name])
def test_a_name_that_is_too_long_is_refused_in_a_short_message(length: int, check: object) -> None:
    with pytest.raises(InvalidInput, match=f"has {length} characters.*{MAX_NAME_LENGTH}") as fault:
        check("a-" * (length // 2) + "a" * (length % 2))  # type: ignore[operator]
    assert len(fault.value.message) < 200


def test_the_size_of_a_revision_is_limited() -> None:
    check_revision_size("a" * MAX_REVISION_LENGTH)
    check_revision_size("a" + "~1" * MAX_STEPS)
    with pytest.raises(InvalidInput, match=f"has {MAX_REVISION_LENGTH + 1} characters"):
        check_revision_size("a" * (MAX_REVISION_LENGTH + 1))
    for step in "~^*":
        with pytest.raises(InvalidInput, match=f"has {MAX_STEPS + 1} relative parts"):
            check_revision_size("a" + step * (MAX_STEPS + 1))
