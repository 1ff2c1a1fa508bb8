"""The garbage collection on a terminal."""

from __future__ import annotations

from tests.command.process import fresh, recorded
from tests.json import heap


def test_paths_of_files_to_delete_are_never_cut(tmp_path, forker, show) -> None:
    nessie = fresh(tmp_path, forker)
    heap.planned(nessie.folder)
    recorded(nessie)
    listed = nessie.ok("gc", "show", "--candidates", "--json").json["candidates"]
    heading, *lines = show(nessie, "--no-pager", "gc", "show", "--candidates", width=80).lines
    assert heading.split() == ["BYTES", "MODIFIED", "LOCATION"]
    start = heading.index("LOCATION")
    shown = ""
    for line in lines:
        shown += ("\n" if line[:start].strip() else "") + line[start:].rstrip()
    assert shown.split() == [one["location"] for one in listed]
    assert len(lines) > len(listed), "the locations are longer than the rest of a line"
