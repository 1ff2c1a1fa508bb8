"""The cache counts all of a commit that is large."""

from __future__ import annotations

import pytest
from msgspec import structs

from tests.golden.facts import COMMIT

TEXT = "x" * 100_000


@pytest.mark.parametrize(
    "fields",
    [
        {"message": TEXT},
        {"authors": (TEXT,)},
        {"signed_off_by": ("a", TEXT)},
        {"properties": ((TEXT, ()),)},
        {"properties": (("a", ("b", TEXT)),)},
        {"operations": TEXT.encode()},
    ],
)
def test_each_large_part_of_a_commit_is_counted(fields: dict[str, object]) -> None:
    assert structs.replace(COMMIT, **fields).weight() >= len(TEXT)
