"""Reads tables part by part as Spark does, but without its Java."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.datasource import Filter

from nessie_cli.spark.source import NessieDataSource

Rows = list[dict[str, Any]]
_PICKLES = CloudPickleSerializer()


def given(url: str, options: dict[str, str]) -> dict[str, str]:
    """Returns options as Spark passes them. `from_` is the option `from`."""
    return {"url": url, **{name.rstrip("_").lower(): value for name, value in options.items()}}


class Frame:
    """A frame. Its references are resolved when it is created."""

    def __init__(self, url: str, **options: str) -> None:
        source = NessieDataSource(given(url, options))
        self.schema = source.schema()
        self.source: NessieDataSource = _elsewhere(source)

    def read(self, filters: Iterable[Filter] = ()) -> tuple[Rows, list[Filter]]:
        """Returns the rows, and the filters that Spark evaluates."""
        reader = self.source.reader(self.schema)
        left = list(reader.pushFilters(list(filters)))
        self.parts = list(reader.partitions())
        elsewhere = _elsewhere(reader)
        return [
            row
            for part in self.parts
            for batch in elsewhere.read(_elsewhere(part))
            for row in batch.to_pylist(maps_as_pydicts="strict")
        ], left

    def rows(self) -> Rows:
        return self.read()[0]


def _elsewhere(thing: Any) -> Any:
    """Returns a pickled copy, as in another process."""
    return pickle.loads(_PICKLES.dumps(thing))


def rows(url: str, **options: str) -> Rows:
    return Frame(url, **options).rows()
