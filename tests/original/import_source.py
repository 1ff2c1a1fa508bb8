"""The original server as the source of an import.

`make test-original` runs it.
"""

from __future__ import annotations

import uuid

import pytest

from nessie_cli import connect
from nessie_cli.errors import NotFound
from nessie_cli.importing.opening import open_source
from nessie_cli.importing.source import SourceKind, SourceNamespace
from nessie_cli.model import NO_ANCESTOR, UDF, DeltaLakeTable, ReferenceType
from tests.original.server import Original
from tests.repository.vocabulary import Catalog, namespace, put, table, view


@pytest.mark.parametrize("api", ["v1", "v2"])
def test_a_branch_of_the_original_is_a_source(server: Original, api: str) -> None:
    branch = f"source-{uuid.uuid4()}"
    with connect(f"{server.url}/api/v2") as repository, connect("memory:") as target:
        repository.create_reference(ReferenceType.BRANCH, branch, NO_ANCESTOR)
        catalog = Catalog(repository)
        contents = {
            "db": namespace("db", owner="ann"),
            "db.t": table(1),
            "db.v": view(2),
            "db.f": UDF(sql_text="x", dialect="spark", version_id="1", signature_id="1"),
            "db.d": DeltaLakeTable(metadata_location_history=("a",)),
            **{f"db.t{number:03}": table(number) for number in range(10, 310)},
        }
        catalog.commit(branch, *(put(name, content) for name, content in contents.items()))
        first = catalog.head(branch)
        catalog.commit(branch, put("db.late", table(3)))

        def listed(revision: str, *namespaces: tuple[str, ...]):
            source = open_source(f"{server.url}/api/{api}", revision=revision, target=target)
            try:
                return source.listing(namespaces)
            finally:
                source.close()

        listing = listed(branch)
        assert listing.namespaces == [SourceNamespace(("db",), {"owner": "ann"})]
        assert not listing.problems
        assert [
            (entry.name[-1], entry.message.partition(":")[0]) for entry in listing.left_out
        ] == [
            ("d", "type delta-table"),
            ("f", "type udf"),
        ]
        assert len(listing.contents) == 303
        by_name = {content.name[-1]: content for content in listing.contents}
        assert by_name["v"].kind is SourceKind.VIEW
        for name in ("t", "v", "late", "t299"):
            content = catalog.content(branch, f"db.{name}")
            assert by_name[name].content == content
            assert by_name[name].metadata_location == content.metadata_location  # type: ignore[attr-defined]
        assert "late" not in {content.name[-1] for content in listed(first).contents}
        assert [problem.name for problem in listed(branch, ("nowhere",)).problems] == [("nowhere",)]
        with pytest.raises(NotFound):
            listed("nowhere")
