"""The store `memory:` fulfils the store contract, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nessie_cli.store.sqlite.store import SQLiteStore
from nessie_cli.store.sqlite.temporary import create_temporary
from tests.store.contract import StoreContract
from tests.store.samples import Clock


class TestMemoryStore(StoreContract):
    def make_store(self, clock: Clock) -> SQLiteStore:
        return create_temporary(clock)

    def drop_runs(self) -> None:
        """Nothing to drop: every such store is new."""

    def drop_sessions(self) -> None:
        """Nothing to drop: every such store is new."""


ENDS = {
    "closed": "store.close()",
    "not closed": "",
    "collected": "del store; import gc; gc.collect(); print(os.listdir(os.environ['TMPDIR']))",
    "an exception": "raise SystemExit",
    "a thread reads": "import threading; threading.Thread(target=store.settings).start()",
}


@pytest.mark.parametrize("end", ENDS)
def test_nothing_outlives_the_process(tmp_path: Path, end: str) -> None:
    program = f"""import os
from nessie_cli.store.opening import create_store
store = create_store("memory:")
print(len(os.listdir(os.environ["TMPDIR"])))
{ENDS[end]}
"""
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.stderr == ""
    assert process.stdout == "1\n" + ("[]\n" if end == "collected" else "")
    assert list(tmp_path.iterdir()) == []


FORKED = """import os, sys
from nessie_cli.store.opening import create_store
from tests.store.samples import create, write
store = create_store("memory:")
child = os.fork()
if not child:
    sys.exit()
os.waitpid(child, 0)
print(write(store, create("main")))
"""


def test_a_forked_child_leaves_the_store_of_its_parent(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", FORKED],
        env={"TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.stderr == ""
    assert process.stdout == "Done()\n"
    assert list(tmp_path.iterdir()) == []
