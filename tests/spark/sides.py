"""Copies of one Iceberg table that Spark and Iceberg's Java library change, each on its own.

A row has a token that no other row version has: so that it is known where each row comes from.
"""

from __future__ import annotations

import itertools
import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nessie_cli.iceberg.builder.values import Document, by_id
from nessie_cli.iceberg.combination.combination import Combination, combine
from nessie_cli.iceberg.combination.writing import write_table
from tests.spark.sessions import SMALL_TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODES = ("delete", "update", "merge")
ID, PARTITION, TOKEN = 1, 2, 3
"""Field ids of columns."""
Row = tuple[tuple[int, Any], ...]
"""The values of a row by field id, without nulls."""


class Sides:
    """A catalog in the memory of Spark's Java, and the folder of its tables."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.folder = folder
        self.session = spark.newSession()
        catalog = "spark.sql.catalog.lake"
        for name, value in {
            catalog: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}.catalog-impl": "org.apache.iceberg.inmemory.InMemoryCatalog",
            f"{catalog}.warehouse": str(folder),
            f"{catalog}.cache-enabled": "false",
            **SMALL_TABLES,
            "spark.sql.sources.partitionOverwriteMode": "dynamic",
        }.items():
            self.session.conf.set(name, value)
        self.sql("USE lake")
        self.jvm: Any = self.session._jvm
        self.iceberg = self.jvm.org.apache.iceberg
        self.catalog = self.iceberg.spark.Spark3Util.loadIcebergCatalog(
            self.session._jsparkSession, "lake"
        )
        self._keep_files_on_disk()
        self.sql("CREATE NAMESPACE db")
        self._numbers = itertools.count(1)
        self._rows: dict[str, Counter[Row]] = {}

    def _keep_files_on_disk(self) -> None:
        """Makes the catalog keep files where other readers can open them.

        It keeps them in memory, too, and has no option for that.
        """
        io = self.catalog.getClass().getDeclaredField("io")
        io.setAccessible(True)
        settings = self.session._jsparkSession.sessionState().newHadoopConf()
        io.set(self.catalog, self.iceberg.hadoop.HadoopFileIO(settings))

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.session.sql(statement).collect()]

    # -- tables ----------------------------------------------------------------------------------

    def create(self, version: int, *, partitioned: bool = True) -> Table:
        """Returns an empty table."""
        name = f"t{next(self._numbers)}"
        properties = {
            "format-version": str(version),
            # Deletions of rows are files of their own, unless an operation says otherwise.
            **{f"write.{mode}.mode": "merge-on-read" for mode in MODES if version > 1},
            **{f"write.{mode}.isolation-level": "snapshot" for mode in MODES},
        }
        given = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        self.sql(
            f"CREATE TABLE db.{name} (id bigint, p int, token string, v string)"
            f" {'PARTITIONED BY (p)' if partitioned else ''} TBLPROPERTIES ({given})"
        )
        return Table(self, name)

    def register(self, location: str) -> Table:
        """Returns a new table that starts with a metadata file."""
        name = f"t{next(self._numbers)}"
        self.catalog.registerTable(self.identifier(name), location)
        return Table(self, name)

    def identifier(self, name: str) -> Any:
        return self.iceberg.catalog.TableIdentifier.parse(f"db.{name}")

    # -- combining -------------------------------------------------------------------------------

    def combine(self, base: str, ours: str, theirs: str) -> Combination:
        return combine(*map(document, (base, ours, theirs)), read=self._read)

    def written(self, combination: Combination, ours: str) -> str:
        """Writes a combination. Returns the location of its metadata file."""
        before, vectors = self._files("parquet"), self._files("puffin")
        made = write_table(
            combination,
            self._write,
            location=ours,
            now=time.time_ns() // 1_000_000,
            summary={"nessie.merge": "x"},
        )
        self._write(made.location, json.dumps(made.document).encode())
        assert self._files("parquet") == before
        assert len(self._files("puffin") - vectors) == bool(combination.vectors)
        return made.location

    def _files(self, extension: str) -> set[Path]:
        return set(self.folder.rglob(f"*.{extension}"))

    @staticmethod
    def _read(location: str) -> bytes:
        return path_of(location).read_bytes()

    @staticmethod
    def _write(location: str, data: bytes) -> None:
        with path_of(location).open("xb") as file:
            file.write(data)

    # -- rows ------------------------------------------------------------------------------------

    def rows(self, *locations: str) -> list[Counter[Row]]:
        """Returns the rows of each metadata file, as Spark reads them. Reads each once."""
        from pyspark.sql import DataFrame
        from pyspark.sql import functions as f

        new = [location for location in dict.fromkeys(locations) if location not in self._rows]
        frames = []
        for number, location in enumerate(new):
            table = self.session.table(f"lake.db.{self.register(location).name}")
            columns = f.to_json(f.struct(*table.columns))
            frames.append(table.select(f.lit(number).alias("number"), columns.alias("row")))
        for start in range(0, len(frames), 40):
            names = [columns_of(location) for location in new]
            union = reduce(DataFrame.union, frames[start : start + 40])
            for location in new[start : start + 40]:
                self._rows[location] = Counter()
            for number, text in union.collect():
                values = json.loads(text)
                row = tuple(sorted((names[number][name], v) for name, v in values.items()))
                self._rows[new[number]][row] += 1
        return [self._rows[location] for location in locations]

    def lineage(self, *locations: str) -> list[dict[str, tuple[int, int]]]:
        """Returns the row id and the number of the last update of each token, by metadata file."""
        from pyspark.sql import DataFrame
        from pyspark.sql import functions as f

        frames = [
            self.session.table(f"lake.db.{self.register(location).name}").select(
                f.lit(number), "token", "_row_id", "_last_updated_sequence_number"
            )
            for number, location in enumerate(locations)
        ]
        lines: list[dict[str, tuple[int, int]]] = [{} for _ in locations]
        for number, token, row_id, updated in reduce(DataFrame.union, frames).collect():
            lines[number][token] = (row_id, updated)
        return lines


class Table(NamedTuple):
    """A table in the catalog."""

    sides: Sides
    name: str

    @property
    def java(self) -> Any:
        """The table as an object of Iceberg's Java library."""
        return self.sides.catalog.loadTable(self.sides.identifier(self.name))

    @property
    def location(self) -> str:
        """Its metadata file."""
        return str(self.java.operations().current().metadataFileLocation())

    def sql(self, statement: str) -> None:
        """Runs a statement in which `{}` stands for the name of the table."""
        self.sides.sql(statement.format(f"lake.db.{self.name}"))

    def with_properties(self, change: Callable[[], object], **properties: str) -> None:
        """Makes a change under other properties. `_` stands for a dot in their names."""
        given = {name.replace("_", "."): value for name, value in properties.items()}
        before = dict(self.java.properties())
        self._set(given)
        change()
        self._set({name: before.get(name) for name in given})

    def _set(self, properties: dict[str, str | None]) -> None:
        update = self.java.updateProperties()
        for name, value in properties.items():
            update = update.remove(name) if value is None else update.set(name, value)
        update.commit()

    def delete_equal(self, id_: int, partition: int, token: str = "") -> None:
        """Adds an equality delete of an id and, with a token, a row that replaces it."""
        iceberg, table = self.sides.iceberg, self.java
        schema, spec = table.schema(), table.spec()
        key_schema = schema.select(_list(self.sides.jvm, "id"))
        values = {ID: id_, PARTITION: partition, TOKEN: token}
        row, key_row = (
            iceberg.SingleValueParser.fromJson(
                form.asStruct(), json.dumps({id_: values[id_] for id_ in ids})
            )
            for form, ids in ((schema, values), (key_schema, [ID]))
        )
        key = iceberg.PartitionKey(spec, schema)
        key.partition(row)
        fields = self.sides.session.sparkContext._gateway.new_array(self.sides.jvm.int, 1)
        fields[0] = ID
        factory = iceberg.data.GenericAppenderFactory(schema, spec, fields, key_schema, None)
        deletes = factory.newEqDeleteWriter(self._output(table), iceberg.FileFormat.PARQUET, key)
        deletes.write(key_row)
        deletes.close()
        change = table.newRowDelta().addDeletes(deletes.toDeleteFile())
        if token:
            data = factory.newDataWriter(self._output(table), iceberg.FileFormat.PARQUET, key)
            data.write(row)
            data.close()
            change = change.addRows(data.toDataFile())
        change.commit()

    def _output(self, table: Any) -> Any:
        file = table.io().newOutputFile(f"{table.location()}/data/{uuid.uuid4()}.parquet")
        return self.sides.iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(file)


def _list(jvm: Any, *values: str) -> Any:
    made = jvm.java.util.ArrayList()
    for value in values:
        made.add(value)
    return made


def path_of(location: str) -> Path:
    return Path(location.removeprefix("file://").removeprefix("file:"))


def document(location: str) -> Document:
    read: Document = json.loads(path_of(location).read_bytes())
    return read


def columns_of(location: str) -> dict[str, int]:
    """Returns the field ids of the columns of a table by their names."""
    metadata = document(location)
    schema = by_id(metadata["schemas"], "schema-id")[metadata["current-schema-id"]]
    return {field["name"]: field["id"] for field in schema["fields"]}


# -- the model -----------------------------------------------------------------------------------


def expected_rows(
    base: Counter[Row], ours: Counter[Row], theirs: Counter[Row], fields: Collection[int]
) -> Counter[Row]:
    """Returns base and the changes of both sides, with the given columns.

    A row version that replaces another one has its id. Fails if both sides changed one row, unless
    both deleted it.
    """
    contents = {dict(row)[TOKEN]: row for side in (base, theirs, ours) for row in side}
    b, o, t = (
        Counter(dict(row)[TOKEN] for row in side.elements()) for side in (base, ours, theirs)
    )
    deleted_twice = {dict(contents[token])[ID] for token in (b - o) & (b - t)}
    changed = {dict(contents[token])[ID] for token in (o - b) + (t - b)}
    assert not deleted_twice & changed, "both sides changed these rows"
    return Counter(
        tuple((field, value) for field, value in contents[token] if field in fields)
        for token in ((o - (b - t)) + ((t - b) - (o - b))).elements()
    )
