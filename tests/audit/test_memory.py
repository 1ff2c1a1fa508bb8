"""The memory of an audit."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from nessie_cli.audit.findings import AuditCounts
from nessie_cli.audit.local import findings
from nessie_cli.model import ContentKey, Entry, IcebergTable
location, number = sys.argv[1], int(sys.argv[2])
table = IcebergTable(id="1", metadata_location=f"file://{location}")
entries = [Entry(ContentKey((str(n),)), table.type_name, "1", "", table) for n in range(number)]

def most():
    lines = open("/proc/self/status")
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

before = most()
kinds = [finding.kind.name for finding in findings(entries, AuditCounts())]
assert kinds == ["METADATA_UNREADABLE"] * number
print(most() - before)
"""


def most_memory(file: Path, number: int) -> int:
    """Returns how far memory grows, in KiB, by an audit of a number of tables with one file."""
    run = [sys.executable, "-c", PROGRAM, str(file), str(number)]
    return int(subprocess.run(run, check=True, capture_output=True, text=True).stdout)


def test_one_document_is_in_memory_at_a_time(tmp_path: Path) -> None:
    """A small file can be a large document, and many files are read at the same time."""
    document = b'{"format-version": 2, "x": [' + b"0.5," * 1_500_000 + b"0.5]}"
    file = tmp_path / "00000.gz.metadata.json"
    file.write_bytes(gzip.compress(document, 1))
    # Each thread keeps some memory that it has freed; eight documents take more than six times one.
    assert most_memory(file, 8) < 4 * most_memory(file, 1)
