"""The cache of bytes and its limits."""

from __future__ import annotations

from nessie_cli.iceberg.warehouses.metadata_files import MOST_OF_ONE, ByteCache


def test_the_value_that_was_used_longest_ago_is_dropped() -> None:
    cache = ByteCache(30)
    for key in "abc":
        cache.keep(key, bytes(10))
    assert cache.find("a") is not None
    cache.keep("d", bytes(10))
    assert [key for key in "abcd" if cache.find(key) is not None] == ["a", "c", "d"]
    cache.keep("e", bytes(30))
    assert [key for key in "abcde" if cache.find(key) is not None] == ["e"]


def test_a_value_that_is_kept_again_counts_once() -> None:
    cache = ByteCache(30)
    for _ in range(10):
        cache.keep("a", bytes(10))
    cache.keep("b", bytes(20))
    assert cache.find("a") is not None
    cache.drop("b")
    cache.drop("b")
    cache.keep("c", bytes(20))
    assert cache.find("a") is not None


def test_a_large_value_is_not_cached() -> None:
    cache = ByteCache()
    cache.keep("a", bytes(MOST_OF_ONE + 1))
    assert cache.find("a") is None
