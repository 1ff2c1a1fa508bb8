"""The contract of searching keys by a part of their text."""

from __future__ import annotations

import pytest

from nessie_cli.errors import NotFound
from nessie_cli.model import ReferenceType
from tests.repository.vocabulary import NS, Catalog


class Searches:
    """The part of the contract for every repository."""

    @pytest.mark.parametrize("text", ["", "t1", "T1", "b.t", "ä", "nothing", "."])
    def test_keys_of_several_states_are_found(self, catalog: Catalog, text: str) -> None:
        state = {"a": NS, "B": NS}
        state |= {f"{name}.t{number}": number for name in "aB" for number in range(150)}
        catalog.write("main", {**state, "Ä": 1})
        head = catalog.repository.reference("main").hash
        catalog.repository.create_reference(ReferenceType.BRANCH, "dev", head)
        catalog.write("dev", {"a.t1": 7, "a.new_t1": 1})
        catalog.write("main", {"B.t1": 8})
        find = catalog.repository.key_finder(text)
        for revision in ("main", "dev", "main~1", "main"):
            expected = [
                entry
                for entry in catalog.repository.entries(revision)
                if text.lower() in entry.key.plain.lower()
            ]
            assert list(find(revision)) == expected

    def test_nothing_is_found_in_an_empty_state(self, catalog: Catalog) -> None:
        assert list(catalog.repository.key_finder("")("main")) == []

    def test_an_unknown_revision_is_refused(self, catalog: Catalog) -> None:
        with pytest.raises(NotFound):
            list(catalog.repository.key_finder("a")("nosuch"))
