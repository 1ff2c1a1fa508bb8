"""The memory of an audit."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path


def test_one_document_is_in_memory_at_a_time(tmp_path: Path) -> None:
    """A small file can be a large document, and many files are read at the same time."""
    document = b'{"format-version": 2, "x": [' + b"0.5," * 1_500_000 + b"0.5]}"
    file = tmp_path / "00000.gz.metadata.json"
    file.write_bytes(gzip.compress(document, 1))
    program = f"""
import resource
from nessie_cli.audit.findings import AuditCounts
from nessie_cli.audit.local import findings
from nessie_cli.model import ContentKey, Entry, IcebergTable
table = IcebergTable(id="1", metadata_location="file://{file}")
entries = [Entry(ContentKey((str(n),)), table.type_name, "1", "", table) for n in range(8)]
resource.setrlimit(resource.RLIMIT_DATA, (450 << 20, 450 << 20))
print(len([f for f in findings(entries, AuditCounts()) if f.kind.name == "METADATA_UNREADABLE"]))
"""
    run = [sys.executable, "-c", program]
    assert subprocess.run(run, check=True, capture_output=True, text=True).stdout == "8\n"
