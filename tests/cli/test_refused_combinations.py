"""A refused combination leaves no file, unless a commit may name it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nessie_cli.errors import NotAllowed, ReferenceConflict, WriteRefused
from nessie_cli.iceberg.combination.file_combiner import FileCombiner
from nessie_cli.iceberg.combination.merging import TableMerger
from nessie_cli.iceberg.files import Files
from nessie_cli.model import CombinationRules
from nessie_cli.repository.changes import MergeOptions, PutSettings
from nessie_cli.repository.opening import connect
from tests.cli.lake import Lake
from tests.command.in_process import InProcess
from tests.remote.listening import Answer, Request, forward, listening
from tests.server.serving import serving


@pytest.fixture
def both(lake: Lake) -> Lake:
    """A lake whose branches main and dev have both appended."""
    lake.append("main", 10)
    lake.append("dev", 20)
    return lake


@pytest.mark.parametrize(("error", "stay"), [(WriteRefused, False), (NotAllowed, True)])
def test_only_a_certain_refusal_removes_files(
    tmp_path: Path, both: Lake, error: type[NotAllowed], *, stay: bool
) -> None:
    """A proxy may answer instead of the server, and reading the result may be refused."""
    before = both.files()
    with connect(str(tmp_path / ".nessie" / "store.sqlite")) as repository:

        def merge(options: MergeOptions) -> None:
            if not options.behaviors:
                repository.merge("main", "dev", options)
            raise error("no")

        merger = TableMerger([FileCombiner(Files(), "a test", CombinationRules())])
        with pytest.raises(ReferenceConflict) as conflict:
            merger.merge(merge, MergeOptions())
    assert conflict.value.conflicts[0].collisions[0].reason == "no"
    assert (both.files() != before) is stay


def test_a_protected_branch_that_refuses_gets_no_files(
    nessie: InProcess, tmp_path: Path, both: Lake
) -> None:
    """The server has no warehouses, so the client combines."""
    before = both.files()
    with connect(str(tmp_path / ".nessie" / "store.sqlite")) as repository:
        repository.submit(PutSettings({"protect.main": "merge-only"}))
        with serving(repository) as url:
            ran = nessie("--store", f"{url}/api/v2", "--ref", "main", "merge", "dev")
    assert (ran.code, "is protected" in ran.err) == (3, True)
    assert both.files() == before


@pytest.mark.parametrize("is_proxy", [False, True])
def test_a_refusal_by_a_proxy_is_not_certain(
    nessie: InProcess, tmp_path: Path, both: Lake, *, is_proxy: bool
) -> None:
    """It may have passed the request on before."""
    before = both.files()
    body = b'{"status": 403, "reason": "Forbidden", "message": "no", "errorCode": "FORBIDDEN"}'
    with (
        connect(str(tmp_path / ".nessie" / "store.sqlite")) as repository,
        serving(repository) as server,
    ):

        def proxy(request: Request) -> Answer:
            if request.path.endswith("/history/merge") and b"resolvedContent" in request.body:
                return Answer(403, b"<html/>" if is_proxy else body)
            return forward(server, request, ())

        with listening(proxy) as url:
            ran = nessie("--store", f"{url}/api/v2", "--ref", "main", "merge", "dev")
    assert ran.code == 3
    assert (both.files() != before) is is_proxy
