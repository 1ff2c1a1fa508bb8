"""Dividing a map into parts: each key is in one part, no part is too large, few nodes are
read."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from nessie_cli.kernel.division import divide
from nessie_cli.kernel.edit import build
from nessie_cli.kernel.forms import Id
from tests.kernel.heap import Heap, record


def stored(keys: list[bytes]) -> tuple[Heap, Id]:
    heap = Heap()
    objects = heap.objects()
    root = build(objects, ((key, record(number)) for number, key in enumerate(keys)))
    heap.keep(objects)
    return heap, root


RANGES = [(b"", None), (b"n3", b"n3\x01"), (b"n2\x00t5", b"n7\x00t5"), (b"x", None)]


@pytest.mark.parametrize("most", [1, 2, 7, 100, 1000, 10**6])
@pytest.mark.parametrize("number", [0, 1, 50, 5000])
def test_parts_contain_every_key_and_none_is_too_large(number: int, most: int) -> None:
    chance = random.Random(number * most)
    keys = sorted(
        {b"n%d\x00t%d" % (chance.randint(0, 9), chance.randint(0, 10**6)) for _ in range(number)}
    )
    heap, root = stored(keys)
    for start, stop in RANGES:
        there = [key for key in keys if key >= start and (stop is None or key < stop)]
        cuts = divide(heap.objects(), root, most, start, stop)
        assert set(cuts) <= set(there)
        places = [0, *(there.index(cut) + 1 for cut in cuts), len(there)]
        sizes = [after - before for before, after in pairwise(places)]
        if there:
            assert max(sizes) <= most
            assert all(sizes) or cuts[-1] == there[-1]


@pytest.mark.parametrize("most", [500, 5_000])
def test_there_are_few_parts_and_few_nodes_are_read(most: int) -> None:
    keys = [
        b"warehouse\x00db%03d\x00table-%06d" % (number // 100, number) for number in range(100_000)
    ]
    heap, root = stored(keys)
    reader = heap.objects()
    parts = len(divide(reader, root, most)) + 1
    assert len(keys) / most <= parts <= 1.5 * len(keys) / most
    assert reader.node_reads < 100
