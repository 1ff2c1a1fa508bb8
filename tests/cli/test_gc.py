"""`nessie gc`: what it refuses before a run is begun."""

import pytest


@pytest.mark.parametrize("options", [["--catalog", "nowhere"], ["--cutoff", "main"], ["--default-cutoff", "soon"], ["--snapshots", "some"]])
def test_no_run_is_begun_that_cannot_go_on(nessie, catalog, options) -> None:
    ran = nessie("gc", "mark", *options)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1), ran
    assert nessie("gc", "list") == (0, "", "")
