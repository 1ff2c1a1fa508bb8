"""What the entries of data files say about the keys of their rows.

Two files cannot have a row with the same key if they differ in a partition value that the key
determines, or if the bounds of a column of the key do not overlap.

https://iceberg.apache.org/spec/#partition-transforms
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pyiceberg.types import DoubleType, FloatType, IcebergType, UUIDType

from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.combination.bounds import value_range
from nessie_cli.iceberg.combination.states import Identity, TableFile

_UNORDERED = (FloatType, DoubleType, UUIDType)
"""Bounds leave NaN out, and writers do not agree on the order of UUIDs."""
_NULL = "NoneType None"

Values = tuple[str, str]
"""The type and the text of a partition value."""


class KeyEvidence:
    """Shows that data files cannot have a row with the same key.

    `types` are those of the columns of the key, by id, and `documents` the metadata of all states.
    A partition spec whose id means different things in them shows nothing.
    """

    def __init__(
        self, types: Mapping[int, IcebergType], documents: Sequence[Mapping[str, Any]]
    ) -> None:
        self._types = {
            id_: type_ for id_, type_ in types.items() if not isinstance(type_, _UNORDERED)
        }
        self._partitions = _partitions_of_key(set(types), documents)
        self._ranges: dict[tuple[Identity, int], tuple[Any, Any] | None] = {}

    def are_disjoint(self, first: TableFile, second: TableFile) -> bool:
        """Returns whether no row of a file can have the key of a row of the other file."""
        if first.spec_id == second.spec_id:
            here, there = (self.partition(file) for file in (first, second))
            if any(_differ(value, there.get(name)) for name, value in here.items()):
                return True
        for id_ in self._types:
            mine, other = (self._range(file, id_) for file in (first, second))
            if mine and other and (mine[1] < other[0] or other[1] < mine[0]):
                return True
        return False

    def partition(self, file: TableFile) -> dict[str, Values]:
        """Returns the values of the partition fields that the key determines, without nulls."""
        names = self._partitions.get(file.spec_id, ())
        return {
            name: _value(text) for name, text in file.partition if name in names and text != _NULL
        }

    def groups(self, files: Sequence[TableFile]) -> list[Sequence[TableFile]]:
        """Divides files into groups that cannot have rows with the same key.

        Cost: the files are sorted a few times.
        """
        whole: list[Sequence[TableFile]] = []
        left = [files] if files else []
        while left:
            group = left.pop()
            parts = next((each for each in self._divisions(group) if len(each) > 1), None)
            if parts is None:
                whole.append(group)
            else:
                left += parts
        return whole

    def _divisions(self, files: Sequence[TableFile]) -> Iterator[list[Sequence[TableFile]]]:
        """Yields divisions of files, each by one partition field or one column."""
        if len({file.spec_id for file in files}) == 1:
            for name in self._partitions.get(files[0].spec_id, ()):
                yield self._by_partition(files, name)
        for id_ in self._types:
            yield self._by_range(files, id_)

    def _by_partition(self, files: Sequence[TableFile], name: str) -> list[Sequence[TableFile]]:
        values = [self.partition(file).get(name) for file in files]
        # A null shows nothing, and values of different types can be equal.
        if len({value and value[0] for value in values}) > 1 or None in values:
            return [files]
        parts: dict[Values | None, list[TableFile]] = {}
        for value, file in zip(values, files, strict=True):
            parts.setdefault(value, []).append(file)
        return list(parts.values())

    def _by_range(self, files: Sequence[TableFile], id_: int) -> list[Sequence[TableFile]]:
        ranges = []
        for file in files:
            limits = self._range(file, id_)
            if limits is None:
                return [files]
            ranges.append((limits, file))
        ranges.sort(key=lambda each: each[0][0])
        parts: list[list[TableFile]] = []
        last: Any = None
        for (low, high), file in ranges:
            if parts and low <= last:
                parts[-1].append(file)
                last = max(last, high)
            else:
                parts.append([file])
                last = high
        return list(parts)

    def _range(self, file: TableFile, id_: int) -> tuple[Any, Any] | None:
        place = file.identity, id_
        if place not in self._ranges:
            limits = value_range(file, id_, self._types[id_])
            # Bounds in the wrong order are damage.
            self._ranges[place] = limits if limits and limits[0] <= limits[1] else None
        return self._ranges[place]


def _partitions_of_key(
    key: Collection[int], documents: Sequence[Mapping[str, Any]]
) -> dict[int, Sequence[str]]:
    """Returns the names of the partition fields that the columns of the key determine, by spec."""
    specs: dict[int, Document] = {}
    unknown = set[int]()
    for document in documents:
        for spec in document["partition-specs"]:
            first = specs.setdefault(spec["spec-id"], spec)
            if list(map(_form, spec["fields"])) != list(map(_form, first["fields"])):
                unknown.add(spec["spec-id"])
    return {
        id_: [field["name"] for field in spec["fields"] if _is_of_key(field, key)]
        for id_, spec in specs.items()
        if id_ not in unknown
    }


def _is_of_key(field: Document, key: Collection[int]) -> bool:
    """Returns whether equal keys have equal values of a partition field."""
    return field["transform"] != "void" and all(source in key for source in _sources(field))


def _form(field: Document) -> tuple[object, ...]:
    """Returns what a partition field means, whatever its id is."""
    return field["name"], field["transform"], tuple(_sources(field))


def _sources(field: Document) -> Sequence[object]:
    return field.get("source-ids") or [field.get("source-id")]


def _value(text: str) -> Values:
    type_, _, value = text.partition(" ")
    return type_, value


def _differ(here: Values, there: Values | None) -> bool:
    """Returns whether values are certainly different: a date can be stored as a number."""
    return there is not None and here[0] == there[0] and here[1] != there[1]


class KeyPartitions:
    """The partitions of some data files, as far as the key determines them."""

    def __init__(self, evidence: KeyEvidence, files: Sequence[TableFile]) -> None:
        self._evidence = evidence
        specs = {file.spec_id for file in files}
        self._spec = specs.pop() if len(specs) == 1 else None
        self._files = {tuple(evidence.partition(file).items()) for file in files}

    def may_contain(self, file: TableFile) -> bool:
        """Returns whether a data file can have the key of a row of these files."""
        if file.spec_id != self._spec:
            return True
        partition = self._evidence.partition(file)
        return not all(
            any(_differ(value, partition.get(name)) for name, value in each) for each in self._files
        )
