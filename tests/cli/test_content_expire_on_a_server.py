"""`nessie content expire` with a server: the command itself reads and writes metadata files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nessie_cli.repository.changes import PutSettings
from tests.command.in_process import InProcess
from tests.server.iceberg_rest.appends import append, ids, two_appends
from tests.server.iceberg_rest.lake import Lake

EXPIRE = ("content", "expire", "db.t", "--older-than", "0s")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Lake]:
    with two_appends(tmp_path / "warehouse") as lake:
        yield lake


@pytest.fixture
def remote(nessie: InProcess, served: Lake) -> InProcess:
    """The command with this server as its store."""
    assert nessie("config", "unset", "--user", "merge.tables").code == 0
    assert nessie("init", "--store", served.url).code == 0
    return nessie


def test_an_expiry_is_merged_with_an_append_by_the_server(remote: InProcess, served: Lake) -> None:
    append(served.url, "main", 30)
    assert remote("branch", "-f", "dev", "main").code == 0
    append(served.url, "dev", 40)
    dry = remote(*EXPIRE, "--dry-run", "--json")
    assert dry.code == 0, dry.err
    files = served.files()
    ran = remote(*EXPIRE, "--json")
    assert ran.code == 0, ran.err
    (done,) = ran.json["tables"]
    assert done["kept"] == 1
    assert {**dry.json["tables"][0], "freedNow": None, "freedLater": None} == done
    assert dry.json["tables"][0]["freedNow"] == 0
    assert len(served.files() - files) == 1
    assert remote("merge", "dev").code == 0
    assert ids(served.url, "main") == [1, 2, 3, 10, 30, 40]


def test_a_branch_that_changes_only_by_merges_takes_an_expiry_by_a_merge(
    remote: InProcess, served: Lake
) -> None:
    assert remote("branch", "-D", "dev").code == 0
    served.repository.submit(PutSettings({"protect.main": "merge-only"}))
    files = served.files()
    refused = remote(*EXPIRE)
    assert refused.code == 6
    assert "merge-only" in refused.err
    assert served.files() == files
    assert remote("branch", "tidy").code == 0
    assert remote(*EXPIRE, "--ref", "tidy").code == 0
    assert remote("merge", "tidy").code == 0
    assert ids(served.url, "main") == [1, 2, 3, 10]
