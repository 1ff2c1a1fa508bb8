"""Paths: the number of their readings is bounded, whatever they repeat."""

import pytest

from nessie_cli.server.iceberg.dialect import ROUTES
from nessie_cli.server.pipeline.table import NoRoute

MOST = 40
"""The most segments of a path."""


def test_a_reference_with_many_slashes_is_read():
    name = "/".join("a" * (MOST - 3))
    found = ROUTES.match("GET", f"/iceberg/v1/{name}/namespaces/b")
    assert found.segments == {"prefix": name, "namespace": "b"}
    with pytest.raises(NoRoute):
        ROUTES.match("GET", f"/iceberg/v1/{name}/a/namespaces/b")


@pytest.mark.parametrize("segment", ["v1", "", "a", "namespaces"])
def test_a_path_with_many_segments_is_refused(segment):
    path = "/iceberg/v1/main" + f"/{segment}" * (MOST + 1) + "/namespaces/b"
    with pytest.raises(NoRoute):
        ROUTES.match("GET", path)
