"""Input of writes that the embedded repository refuses or normalises."""

from __future__ import annotations

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.model import CommitMeta, Namespace, UnknownContent
from nessie_cli.repository.opening import connect
from tests.repository.vocabulary import Catalog, delete, put, table


def test_a_put_cannot_change_an_unknown_type() -> None:
    with connect("memory:") as repository:
        catalog = Catalog(repository)
        catalog.commit(
            "main",
            put("k", UnknownContent(foreign_type="PAIMON_TABLE", foreign_attributes={"a": 1})),
        )
        head, content_id = catalog.head(), catalog.id("main", "k")
        other = UnknownContent(
            id=content_id, foreign_type="HUDI_TABLE", foreign_attributes={"a": 1}
        )
        with pytest.raises(
            InvalidInput, match="Key 'k' already exists with a different type than the content"
        ):
            catalog.commit("main", put("k", other))
        with pytest.raises(InvalidInput, match="the types are different"):
            catalog.commit("main", delete("k"), put("moved", other))
        assert catalog.head() == head
        same = UnknownContent(
            id=content_id, foreign_type="PAIMON_TABLE", foreign_attributes={"a": 2}
        )
        catalog.commit("main", put("k", same))
        assert catalog.content("main", "k") == same


@pytest.mark.parametrize("hash_", ["", " ", "xyz", "abc", "0x12345678", "main"])
def test_an_expected_hash_must_be_hexadecimal(hash_: str) -> None:
    with connect("memory:") as repository:
        catalog = Catalog(repository)
        catalog.write("main", {"k": 1})
        catalog.branch("dev")
        changed = catalog.write("dev", {"k": 2})
        head = catalog.head()
        for write in (
            lambda: catalog.commit("main", put("n", table(1)), at=hash_),
            lambda: catalog.merge("dev", expected_hash=hash_),
            lambda: catalog.transplant([changed], expected_hash=hash_),
        ):
            with pytest.raises(InvalidInput, match="Hash must consist of the hex representation"):
                write()
        assert catalog.head() == head


def test_a_namespace_has_the_elements_of_a_key() -> None:
    with connect("memory:") as repository:
        catalog = Catalog(repository)
        for elements in (("a", ""), ("a\x01",), ("a" * 501,)):
            with pytest.raises(InvalidInput, match=r"NAMESPACE\.elements"):
                catalog.commit("main", put("n", Namespace(elements=elements)))
        catalog.commit("main", put("n", Namespace()))


def test_names_of_properties_are_stored_in_lower_case() -> None:
    with connect("memory:") as repository:
        repository.commit(
            "main",
            [put("k", table(1))],
            CommitMeta("m", properties={"A": ("1",), "a": ("2",), "B": ()}),
        )
        assert repository.commit_at("main").meta.properties == {"a": ("1", "2"), "b": ()}
