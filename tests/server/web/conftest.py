from collections.abc import Iterator

import pytest

from nessie_cli import connect
from nessie_cli.repository.base import Repository
from tests.server.client import Client
from tests.server.serving import serving
from tests.server.web.browser import Browser


@pytest.fixture
def repository() -> Iterator[Repository]:
    """The repository of the server."""
    with connect("memory:") as opened:
        yield opened


@pytest.fixture
def client(repository: Repository) -> Iterator[Client]:
    """A connection to a server over an empty repository."""
    with serving(repository) as url:
        connected = Client(url)
        yield connected
        connected.close()


@pytest.fixture
def browser(client: Client) -> Browser:
    """A browser of that server."""
    return Browser(client)
