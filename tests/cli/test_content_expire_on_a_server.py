"""`nessie content expire` with a server: the command itself reads and writes metadata files."""

from __future__ import annotations

from nessie_cli.repository.changes import PutSettings
from tests.command.in_process import InProcess
from tests.server.iceberg_rest.appends import append, ids
from tests.server.iceberg_rest.lake import Lake

EXPIRE = ("content", "expire", "db.t", "--older-than", "0s")


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
