"""The contract of dividing a state into parts of similar size."""

from __future__ import annotations

from itertools import pairwise

import pytest

from nessie_cli.errors import InvalidInput, NotFound
from nessie_cli.model import KeyRange
from tests.repository.vocabulary import NOBODY, NS, Catalog, key


class Divides:
    """The part of the contract for our own repositories, embedded or served."""

    @pytest.mark.parametrize("most", [1, 7, 100])
    def test_the_parts_of_a_state_are_complete(self, catalog: Catalog, most: int) -> None:
        catalog.write(
            "main",
            {
                "a": NS,
                "b": NS,
                **{f"{name}.t{number}": number for name in "ab" for number in range(20)},
            },
        )
        whole = [entry.key for entry in catalog.repository.entries("main")]
        cuts = catalog.repository.divisions("main", most)
        assert cuts is not None
        parts = [
            [k for k in whole if (low is None or k > low) and (high is None or k <= high)]
            for low, high in pairwise([None, *cuts, None])
        ]
        assert [k for part in parts for k in part] == whole
        assert all(0 < len(part) <= most for part in parts)

    def test_a_single_namespace_can_be_divided(self, catalog: Catalog) -> None:
        catalog.write(
            "main",
            {
                "a": NS,
                "b": NS,
                "c": NS,
                **{f"{name}.t{number}": number for name in "abc" for number in range(4)},
            },
        )
        assert [
            str(found) for found in catalog.repository.divisions("main", 2, prefix=key("b")) or ()
        ] == ["b.t0", "b.t2"]
        assert catalog.repository.divisions("main", 100, prefix=key("nowhere")) == []
        assert catalog.repository.divisions("main", 2**40) == []
        assert len(list(catalog.repository.entries("main", KeyRange(prefix=key("b"))))) == 5

    def test_an_empty_state_is_one_part(self, catalog: Catalog) -> None:
        assert catalog.repository.divisions("main", 1) == []

    def test_invalid_divisions_are_refused(self, catalog: Catalog) -> None:
        with pytest.raises(InvalidInput, match="a part holds one key or more, not 0"):
            catalog.repository.divisions("main", 0)
        with pytest.raises(NotFound):
            catalog.repository.divisions(f"@{NOBODY}", 1)
