"""Listing and removal on S3: moto's server program on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from itertools import islice
from urllib.request import Request, urlopen

import pytest

from nessie_cli.gc.listing import Listed, Unlisted, files_below
from nessie_cli.gc.removal import RemovalCandidate, RemovalOutcome, RemovalScope, Remover
from tests.gc.s3 import SECRET, Store, s3

BASE = "s3://lake/db/t"


@pytest.fixture(scope="module")
def server() -> Iterator[Store]:
    with s3() as store:
        yield store


@pytest.fixture
def store(server: Store) -> Store:
    server.refused.clear()
    for name in ("metadata/00001-x.metadata.json", "data/a b.parquet", "data/p=1/c%20.parquet"):
        server.put(f"lake/db/t/{name}", b"12345")
    server.put("lake/db/t2/data/other", b"1")
    return server


def listed(store: Store, base: str = BASE) -> list[Listed]:
    found = list(files_below(base, store.properties))
    assert all(isinstance(one, Listed) for one in found)
    return sorted(one for one in found if isinstance(one, Listed))


def candidates(store: Store) -> list[RemovalCandidate]:
    return [RemovalCandidate(one.location, one.size, one.modified, BASE) for one in listed(store)]


def remove(store: Store, found: list[RemovalCandidate]) -> dict[str, tuple[str, str]]:
    results = Remover(RemovalScope([BASE]), store.properties).remove(found)
    return {
        one.location.removeprefix(f"{BASE}/"): (one.outcome.value, one.message) for one in results
    }


@pytest.mark.parametrize("base", [BASE, f"{BASE}/", "s3a://lake/db/t"])
def test_every_object_is_listed_in_the_form_of_its_base_and_no_neighbour(store, base):
    stem = base.rstrip("/")
    found = listed(store, base)
    assert [(one.location, one.size) for one in found] == [
        (f"{stem}/data/a b.parquet", 5),
        (f"{stem}/data/p=1/c%20.parquet", 5),
        (f"{stem}/metadata/00001-x.metadata.json", 5),
    ]
    assert all(abs(datetime.now(UTC) - one.modified) < timedelta(days=1) for one in found)


def test_a_missing_base_has_no_files_and_a_forbidden_bucket_is_reported(store):
    assert listed(store, "s3://lake/nothing") == []
    store.refused.add(("GET", "/lake"))
    (unlisted,) = files_below(BASE, store.properties)
    assert isinstance(unlisted, Unlisted)
    assert unlisted.location == BASE
    assert "ACCESS_DENIED" in unlisted.message
    assert SECRET not in unlisted.message


def test_a_name_with_an_empty_folder_is_reported_and_the_listing_continues(store):
    store.put("lake/apart/a/c.parquet", b"1")
    # pyarrow cannot write such a name.
    with urlopen(
        Request(f"{store.url}/lake/apart/a//b.parquet", b"1", method="PUT"), timeout=240
    ) as answer:
        assert answer.status == HTTPStatus.OK
    found = sorted(
        islice(files_below("s3://lake/apart", store.properties), 9), key=lambda one: one.location
    )
    assert [one.location for one in found] == ["s3://lake/apart/a//", "s3://lake/apart/a/c.parquet"]
    assert [type(one) for one in found] == [Unlisted, Listed]


def test_reviewed_files_are_removed_even_if_the_role_cannot_write(store):
    found = candidates(store)
    store.refused.add(("PUT", ""))
    assert {outcome for outcome, _ in remove(store, found).values()} == {"DELETED"}
    assert listed(store) == []
    store.refused.clear()
    assert {outcome for outcome, _ in remove(store, found).values()} == {"GONE"}
    assert len(listed(store, "s3://lake/db/t2")) == 1


def test_a_failed_removal_is_reported_and_the_rest_continues(store):
    found = candidates(store)
    store.refused.add(("DELETE", "/a b.parquet"))
    results = remove(store, found)
    assert [outcome for outcome, _ in results.values()] == ["FAILED", "DELETED", "DELETED"]
    assert "ACCESS_DENIED" in results["data/a b.parquet"][1]
    store.refused.clear()
    assert [outcome for outcome, _ in remove(store, found).values()] == ["DELETED", "GONE", "GONE"]


def test_a_modified_object_is_kept(store):
    found = candidates(store)
    store.put("lake/db/t/data/a b.parquet", b"123456")
    older = [
        one._replace(modified=one.modified - timedelta(minutes=1))
        if "c%20" in one.location
        else one
        for one in found
    ]
    assert [outcome for outcome, _ in remove(store, older).values()] == [
        "CHANGED",
        "CHANGED",
        "DELETED",
    ]


def test_files_outside_of_the_allowed_locations_are_kept(store):
    (other,) = listed(store, "s3://lake/db/t2")
    (result,) = Remover(RemovalScope([BASE]), store.properties).remove(
        [RemovalCandidate(other.location, other.size, other.modified, BASE)]
    )
    assert result.outcome is RemovalOutcome.OUTSIDE
    assert len(listed(store, "s3://lake/db/t2")) == 1
