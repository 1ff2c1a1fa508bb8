"""Namespaces in PyIceberg's catalog: contents with properties, nested to any depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
)

from nessie_cli.iceberg.reference import PyIcebergState
from nessie_cli.model import CommitMeta, ContentKey, Entry, Namespace, Put
from nessie_cli.repository.base import Repository
from tests.iceberg.lake import ROWS, Lake


def test_a_namespace_is_a_content_with_properties(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("sales", {"comment": "what we sell", "level": 3})
    found = lake.repository.content(lake.branch, ContentKey(("sales",)))
    assert isinstance(found, Namespace)
    assert found.elements == ("sales",)
    assert catalog.load_namespace_properties("sales") == {"comment": "what we sell", "level": "3"}
    assert catalog.namespace_exists("sales")
    assert not catalog.namespace_exists("sale_")
    catalog.create_namespace("empty")
    assert catalog.load_namespace_properties("empty") == {}


def test_missing_parent_namespaces_are_created_in_the_same_commit(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("a.b.c")
    assert lake.messages() == ["create namespace a.b.c"]
    assert [catalog.namespace_exists(name) for name in ("a", "a.b", "a.b.c", "a.b.c.d")] == [
        True,
        True,
        True,
        False,
    ]
    catalog.create_namespace("a.b.d")
    assert len(lake.log()[0].operations or ()) == 1


def test_namespaces_are_listed_level_by_level(lake: Lake) -> None:
    catalog = lake.catalog()
    for name in ("db.ns1.ns2", "db.ns2", "db2.ns1", "db%.x", "db_.ns1", "db.ns1X.ns3"):
        catalog.create_namespace(name)
    assert sorted(catalog.list_namespaces()) == [("db",), ("db%",), ("db2",), ("db_",)]
    assert sorted(catalog.list_namespaces("db")) == [("db", "ns1"), ("db", "ns1X"), ("db", "ns2")]
    assert catalog.list_namespaces("db.ns1") == [("db", "ns1", "ns2")]
    assert catalog.list_namespaces(("db", "ns1", "ns2")) == []


def test_tables_are_listed_in_their_own_namespace_only(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("a.b")
    for name in ("root", "a.one", "a.b.two", "a.b.three"):
        catalog.create_table(name, ROWS.schema)
    assert catalog.list_tables(()) == [("root",)]
    assert catalog.list_tables("a") == [("a", "one")]
    assert sorted(catalog.list_tables("a.b")) == [("a", "b", "three"), ("a", "b", "two")]


def test_names_with_dots_spaces_and_all_scripts(lake: Lake) -> None:
    catalog = lake.catalog()
    for namespace in (("a.b",), ("a.b", "c d"), ("données",), ("表", "名前 'x'")):
        catalog.create_namespace(namespace)
        assert catalog.namespace_exists(namespace)
        table = (*namespace, 'orders "2026".v1')
        catalog.create_table(table, ROWS.schema).append(ROWS)
        assert catalog.list_tables(namespace) == [table]
        assert catalog.load_table(table).scan().to_arrow().num_rows == 3
    assert not catalog.namespace_exists("a")
    assert ("a.b", "c d") in catalog.list_namespaces(("a.b",))


def test_a_listing_skips_nested_entries(embedded: Lake) -> None:
    puts = [
        Put(ContentKey(("big",)), Namespace(elements=("big",))),
        Put(ContentKey(("small",)), Namespace(elements=("small",))),
    ]
    for space in ("one", "two"):
        puts.append(Put(ContentKey(("big", space)), Namespace(elements=("big", space))))
        puts += [
            Put(
                ContentKey(("big", space, f"n{number:04}")),
                Namespace(elements=("big", space, f"n{number:04}")),
            )
            for number in range(300)
        ]
    embedded.repository.commit(embedded.branch, puts, CommitMeta("many"))
    catalog = embedded.catalog()
    assert catalog.list_namespaces() == [("big",), ("small",)]
    assert catalog.list_namespaces("big") == [("big", "one"), ("big", "two")]
    assert len(catalog.list_namespaces("big.two")) == 300

    counting = Counting(embedded.repository)
    branch = embedded.repository.reference(embedded.branch)
    state = PyIcebergState(counting, branch)  # type: ignore[arg-type]
    assert [entry.key.plain for entry in state.inside(None)] == ["big", "small"]
    assert counting.entries_read < 200


class Counting:
    """A repository that counts the entries read."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self.entries_read = 0

    def entries(self, *given: Any) -> Iterator[Entry]:
        for entry in self._repository.entries(*given):
            self.entries_read += 1
            yield entry


def test_a_namespace_that_already_exists(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("sales", {"a": "1"})
    with pytest.raises(NamespaceAlreadyExistsError, match="sales"):
        catalog.create_namespace("sales")
    catalog.create_namespace_if_not_exists("sales", {"b": "2"})
    assert catalog.load_namespace_properties("sales") == {"a": "1"}


def test_a_table_with_the_name_of_a_namespace_or_of_its_parent(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_table("orders", ROWS.schema)
    with pytest.raises(NamespaceAlreadyExistsError, match="iceberg-table"):
        catalog.create_namespace("orders")
    with pytest.raises(NoSuchNamespaceError, match="orders is not a namespace"):
        catalog.create_namespace("orders.below")
    with pytest.raises(NoSuchNamespaceError, match="orders"):
        catalog.create_table("orders.below", ROWS.schema)
    assert not catalog.namespace_exists("orders")


@pytest.mark.parametrize(
    "call",
    [
        lambda catalog: catalog.load_namespace_properties("nowhere"),
        lambda catalog: catalog.update_namespace_properties("nowhere", updates={"a": "1"}),
        lambda catalog: catalog.drop_namespace("nowhere"),
        lambda catalog: catalog.list_tables("nowhere"),
        lambda catalog: catalog.list_views("nowhere"),
        lambda catalog: catalog.list_namespaces("nowhere"),
    ],
)
def test_a_missing_namespace(embedded: Lake, call: Callable[[Any], object]) -> None:
    with pytest.raises(NoSuchNamespaceError, match="nowhere"):
        call(embedded.catalog())
    assert embedded.log() == []


@pytest.mark.parametrize("identifier", ["", (), ("", ""), " ", "a..b"])
def test_invalid_identifiers_of_namespaces(embedded: Lake, identifier: Any) -> None:
    with pytest.raises(NoSuchNamespaceError):
        embedded.catalog().create_namespace(identifier)


def test_properties_are_changed_and_the_others_kept(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("sales", {"a": "1", "b": "2", "c": "3"})
    before = lake.repository.content(lake.branch, ContentKey(("sales",)))
    summary = catalog.update_namespace_properties("sales", {"b", "nothing"}, {"c": "4", "d": "5"})
    assert (set(summary.removed), set(summary.updated), set(summary.missing)) == (
        {"b"},
        {"c", "d"},
        {"nothing"},
    )
    assert catalog.load_namespace_properties("sales") == {"a": "1", "c": "4", "d": "5"}
    assert lake.messages()[0] == "change namespace sales: b, c, d"
    assert lake.repository.content(lake.branch, ContentKey(("sales",))).id == before.id
    head = lake.head()
    catalog.update_namespace_properties("sales", {"nothing"}, {"a": "1"})
    assert lake.head() == head


def test_invalid_properties(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("sales", {"a": "1"})
    with pytest.raises(ValueError, match="overlap"):
        catalog.update_namespace_properties("sales", {"a"}, {"a": "2"})
    with pytest.raises(ValueError, match="None type is not a supported value in properties: b"):
        catalog.update_namespace_properties("sales", updates={"b": None})
    with pytest.raises(ValueError, match="None type is not a supported value in properties: key"):
        catalog.create_namespace("other", {"key": None})
    assert catalog.load_namespace_properties("sales") == {"a": "1"}


def test_only_an_empty_namespace_is_dropped(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("a.b")
    catalog.create_table("a.b.orders", ROWS.schema)
    for name in ("a", "a.b"):
        with pytest.raises(NamespaceNotEmptyError, match=f"Namespace {name} is not empty"):
            catalog.drop_namespace(name)
    catalog.drop_table("a.b.orders")
    catalog.drop_namespace("a.b")
    catalog.drop_namespace("a")
    assert catalog.list_namespaces() == []
    assert lake.messages()[0] == "drop namespace a"
