"""Many requests for metrics cost about as much as one."""

import socket
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from nessie_cli import create
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from nessie_cli.server.runtime.metrics import Metrics
from tests.server.client import Client
from tests.server.serving import serving
from tests.server.waits import PATIENCE

PIPELINED = b"GET /q/metrics HTTP/1.1\r\nhost: localhost\r\n\r\n" * 100


class Counted(Metrics):
    """Metrics of a long-running server, which count how often their text is made."""

    def __init__(self):
        super().__init__()
        self.texts = 0
        for route in range(12):
            for status in range(200, 216):
                self.observe("GET", f"/api/v2/{route}", status, 0.1)

    def text(self):
        self.texts += 1
        return super().text()


@pytest.fixture
def metrics():
    return Counted()


@pytest.fixture
def url(tmp_path, metrics):
    with (
        create(str(tmp_path / "store.sqlite")) as repository,
        serving(app=application(repository, Parts(metrics=metrics))) as found,
    ):
        yield found


def read(url, number):
    """Sends many requests at once, and returns how many answers have arrived."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), PATIENCE) as connection:
        connection.sendall(PIPELINED)
        received = b""
        while received.count(b"HTTP/1.1 200") < number and (data := connection.recv(1 << 20)):
            received += data
    return received.count(b"HTTP/1.1 200")


def test_requests_that_wait_share_a_text(url, metrics):
    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(lambda _: read(url, 2), range(16)))
    assert metrics.texts < 8


def test_a_request_gets_a_text_that_is_newer_than_itself(url):
    client = Client(url)
    for number in range(1, 4):
        assert client.get("/api/v2/config").status == 200
        line = 'nessie_http_requests_total{method="GET",route="/api/v2/config",status="200"}'
        assert f"{line} {number}.0" in client.get("/q/metrics").raw.decode()
    client.close()
