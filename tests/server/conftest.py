from collections.abc import Iterator

import pytest

from nessie_cli import connect
from tests.server.client import Client
from tests.server.serving import serving


@pytest.fixture
def client() -> Iterator[Client]:
    """A connection to a server over a new repository in memory."""
    with connect("memory:") as repository, serving(repository) as url:
        found = Client(url)
        yield found
        found.close()
