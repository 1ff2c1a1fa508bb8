"""Contents of a draft: reading many needs few bytes at once, and few are cached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from nessie_cli.kernel.forms import Id, encode_value, new_content_id, value_id_of
from nessie_cli.kernel.objects import FEW_VALUES, READ_TOGETHER, Objects
from nessie_cli.model import UDF

CONTENTS, SIZE = 10, READ_TOGETHER // 3


class Values:
    """Stored values, and the largest number of bytes that were read together."""

    def __init__(self) -> None:
        self.stored: dict[Id, bytes] = {}
        self.most = 0
        self.reads = 0

    def fetch(self, ids: Sequence[Id]) -> Mapping[Id, bytes]:
        return self._read([id_ for id_ in ids if id_ in self.stored])

    def fetch_some(self, ids: Sequence[Id], most_bytes: int) -> Mapping[Id, bytes]:
        first: list[Id] = []
        size = 0
        for id_ in ids:
            if id_ in self.stored and size < most_bytes:
                first.append(id_)
                size += len(self.stored[id_])
        return self._read(first)

    def _read(self, ids: Sequence[Id]) -> Mapping[Id, bytes]:
        self.reads += 1
        raw = {id_: self.stored[id_] for id_ in ids}
        self.most = max(self.most, sum(map(len, raw.values())))
        return raw


def test_contents_by_record_are_read_in_batches_of_some_bytes() -> None:
    values = Values()
    objects = Objects(values.fetch, fetch_some=values.fetch_some)
    content_id = new_content_id(bytes)
    contents = [UDF(dialect="spark", sql_text=f"{n}" * SIZE) for n in range(CONTENTS)]
    records = [objects.add_content(content, content_id) for content in contents]
    stored = records[::2]
    for record, content in zip(stored, contents[::2], strict=True):
        # The others are pending in the draft.
        del objects.pending[value_id_of(record)]
        values.stored[value_id_of(record)] = encode_value(content)
    read = objects.contents_by_record([*records, *records])
    texts = [content.sql_text for content in read.values() if isinstance(content, UDF)]
    assert texts == [content.sql_text for content in contents]
    assert values.most <= READ_TOGETHER + SIZE + 100
    assert values.reads == 2, "each value is read once"


@pytest.mark.parametrize(
    ("contents", "cached"), [(FEW_VALUES, FEW_VALUES), (FEW_VALUES + 1, 0), (100, 0)]
)
def test_the_contents_of_a_large_draft_are_not_cached(contents: int, cached: int) -> None:
    """A cached one among millions of objects keeps a megabyte of them from the system."""
    objects = Objects(Values().fetch)
    content_id = new_content_id(bytes)
    for number in range(contents):
        objects.add_content(UDF(dialect="spark", sql_text=f"{number}"), content_id)
    assert len(objects.added) == cached
