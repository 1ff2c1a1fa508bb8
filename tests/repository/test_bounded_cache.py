"""The cache and its limits."""

from __future__ import annotations

from nessie_cli.repository.bounded_cache import BoundedCache


def test_the_value_that_was_used_longest_ago_is_dropped() -> None:
    cache = BoundedCache[str, bytes](30, len)
    for key in "abc":
        cache[key] = bytes(10)
    assert cache.get("a") is not None
    cache["d"] = bytes(10)
    assert [key for key in "abcd" if cache.get(key) is not None] == ["a", "c", "d"]
    cache["e"] = bytes(30)
    assert [key for key in "abcde" if cache.get(key) is not None] == ["e"]


def test_a_value_that_is_kept_again_counts_once() -> None:
    cache = BoundedCache[str, bytes](30, len)
    for _ in range(10):
        cache["a"] = bytes(10)
    cache["b"] = bytes(20)
    assert cache.get("a") is not None
    cache.drop("b")
    cache.drop("b")
    cache["c"] = bytes(20)
    assert cache.get("a") is not None


def test_a_large_value_is_not_cached() -> None:
    cache = BoundedCache[str, bytes](30, len, 20)
    cache["a"] = bytes(21)
    assert cache.get("a") is None
    cache["b"] = bytes(20)
    assert cache.get("b") is not None


def test_without_sizes_the_limit_is_a_number_of_values() -> None:
    cache = BoundedCache[str, bytes](2)
    for key in "abc":
        cache[key] = bytes(10)
    assert [key for key in "abc" if key in cache] == ["b", "c"]
    assert len(cache) == 2
