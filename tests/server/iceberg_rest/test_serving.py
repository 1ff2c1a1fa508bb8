"""`nessie serve --warehouse` in its own process, and in several."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

from nessie_cli import create
from tests.server.client import Client
from tests.server.iceberg_rest.lake import IcebergClient, error_of
from tests.server.iceberg_rest.test_races import append_with_retries
from tests.server.processes import SERVE, started


@pytest.fixture
def store(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/catalog.sqlite"
    create(url).close()
    return url


def test_several_processes_commit_without_losses(tmp_path: Path, store: str) -> None:
    writers, each = 4, 5
    places = ["--warehouse", f"lake={tmp_path}/lake"]
    with started("--store", store, "--workers", "2", *places) as (_, url):
        first = IcebergClient(Client(url))
        first.namespace("db")
        first.create("db", "shared")

        def write(writer: int) -> list[int]:
            client = IcebergClient(Client(url))
            key = str(uuid4())
            statuses = [client.namespace("db", f"n{writer}").status]
            statuses += [
                client.create("db", f"own{writer}").status,
                client.set_properties("db", f"own{writer}", idempotency_key=key).status,
                client.set_properties("db", f"own{writer}", idempotency_key=key).status,
            ]
            for number in range(each):
                append_with_retries(client, "shared", 100 * (writer + 1) + number)
            client.client.close()
            return statuses

        with ThreadPoolExecutor(writers) as threads:
            assert list(threads.map(write, range(writers))) == [[200] * 4] * writers
        metadata = first.load("db", "shared").body["metadata"]
        assert len(metadata["snapshots"]) == writers * each
        files = [path for path in (tmp_path / "lake").rglob("*") if path.is_file()]
        assert len(files) == 1 + writers * each + 2 * writers
        first.client.close()


def test_warehouses_are_read_from_a_file(tmp_path: Path, store: str) -> None:
    file = tmp_path / "warehouses.toml"
    file.write_text(
        f"""
        [warehouse.lake]
        location = "{tmp_path}/lake"
        allowed-locations = ["{tmp_path}/landing"]
        choose-locations = false

        [warehouse.other]
        location = "{tmp_path}/other"
        """
    )
    with started("--store", store, "--warehouses", str(file)) as (_, url):
        client = IcebergClient(Client(url))
        client.namespace("db")
        chosen = client.create("db", "t", location=f"file://{tmp_path}/landing/t")
        assert error_of(chosen) == (403, "ForbiddenException")
        made = client.create("db", "t").body["metadata"]["location"]
        assert made.startswith(f"file://{tmp_path}/lake/db/t_")
        config = client.client.get("/iceberg/v1/config?warehouse=other").body
        assert config["defaults"]["prefix"] == "main%7Cother"
        client.client.close()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--allow-location", "/x"], "--allow-location needs --warehouse"),
        (["--warehouse", "a=/x", "--warehouse", "a=/y"], "two warehouses 'a'"),
        (["--warehouse", "ftp://x/y"], "ftp is not a scheme of a warehouse"),
        (["--warehouses", "none.toml"], "none.toml cannot be read"),
        (["--warehouses", "none.toml", "--warehouse", "/x"], "names all warehouses"),
    ],
)
def test_invalid_options_are_refused(store: str, options: list[str], problem: str) -> None:
    done = subprocess.run(
        [*SERVE, "--port", "0", "--store", store, *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert problem in done.stderr


def test_a_file_with_secrets_is_refused_if_others_can_read_it(tmp_path: Path, store: str) -> None:
    file = tmp_path / "warehouses.toml"
    file.write_text(
        """
        [warehouse.lake]
        location = "s3://lake/tables"
        storage = { "s3.secret-access-key" = "hidden" }
        """
    )
    file.chmod(0o644)
    command = [*SERVE, "--port", "0", "--store", store, "--warehouses", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "others may read" in done.stderr
    assert "hidden" not in done.stderr
