"""Ctrl-C at any moment: no command is half-done, staged operations remain staged or are
committed, and the exit code reports the interrupt."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from nessie_cli import connect
from nessie_cli.store.opening import create_store
from nessie_cli.workspace.batch import BatchFile
from nessie_cli.workspace.folder import Workspace
from tests.command.process import Forker, Nessie, fresh

TIMES = 7
"""The least number of interrupts of each command in each way."""
TIMES_AT_MOST = 60
MANY = [
    {
        "type": "PUT",
        "key": {"elements": [f"space {number}"]},
        "content": {"type": "NAMESPACE", "elements": [f"space {number}"]},
    }
    for number in range(1500)
]


Words = tuple[str, ...]
CASES: dict[str, Words] = {
    "commit": ("commit", "-m", "mine"),
    "commit --batch": ("commit", "--batch", "many.json", "-m", "mine"),
    "content put -m": ("content", "put", "db.late", "--type", "namespace", "-m", "mine"),
    "merge": ("merge", "dev", "-m", "mine"),
    "content put": ("content", "put", "db.late", "--type", "namespace"),
    "init": ("init",),
}


@pytest.fixture(scope="module")
def bare() -> Iterator[Forker]:
    """Forks processes without any loaded modules, so that imports are interrupted as well."""
    with Forker(["nessie_cli.cli.main"]) as forker:
        yield forker


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Nessie:
    """A workspace with a staged operation and a branch to merge; copied for each interrupt."""
    nessie = fresh(tmp_path_factory.mktemp("template"), None)
    nessie.ok("init")
    nessie.ok("content", "put", "db", "--type", "namespace", "-m", "first")
    nessie.ok("branch", "dev")
    nessie.table("db.theirs", 2, "-m", "theirs", "--ref", "dev")
    nessie.table("db.orders", 1)
    (nessie.folder / "many.json").write_text(json.dumps(MANY))
    return nessie


Try = Callable[..., tuple[int, str, float]]


@pytest.fixture(params=["with its imports", "with all imported"])
def attempt(request: pytest.FixtureRequest, bare: Forker, forker: Forker, template: Nessie) -> Try:
    """Runs a command in a folder, optionally interrupted after some seconds; returns exit code,
    output and duration."""
    imports = bare if request.param == "with its imports" else forker

    def run(
        folder: Path, args: Words, after: float | None, start: Forker = imports
    ) -> tuple[int, str, float]:
        output = folder / "output"
        output.write_text("")
        begun = time.perf_counter()
        with output.open("r+b", buffering=0) as file:
            process = start.start(args, folder, template.environment, [file.fileno()] * 3)
        if after is not None:
            time.sleep(after)
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGINT)
        code = process.wait()
        return code, output.read_text(), time.perf_counter() - begun

    return run


def state(folder: Path) -> tuple[list[str], int]:
    """Returns the messages on main and the number of staged operations; checks the store."""
    with connect(str(folder / ".nessie/store.sqlite")) as repository:
        assert list(repository.check()) == []
        messages = [entry.meta.message for entry in repository.log("main")]
    batch = BatchFile(Workspace(folder)).read()
    return messages, len(batch.staged) if batch else 0


@pytest.mark.parametrize("name", CASES)
def test_an_interrupted_command_can_be_repeated(name, attempt, forker, template, tmp_path):
    args = CASES[name]
    seed = Random().randrange(2**32)
    print("seed", seed)
    random = Random(seed)

    def copy(number) -> Path:
        folder = tmp_path / str(number)
        if name == "init":
            folder.mkdir()
        else:
            shutil.copytree(template.folder, folder)
        if name == "content put -m":
            # It is refused while other keys are staged.
            Workspace(folder).batch_path.unlink()
        return folder

    whole = copy("whole")
    code, _, longest = attempt(whole, args, None)
    assert code == 0
    longest = min(longest, attempt(copy("again"), args, None)[2])
    wanted = state(whole)

    codes: list[int] = []
    # A command may end before it is interrupted, if the load of the machine has changed. Then the
    # next one is interrupted much earlier.
    while len(codes) < TIMES or 130 not in codes:
        assert len(codes) < TIMES_AT_MOST
        number = len(codes)
        folder = copy(number)
        before = state(folder) if name != "init" else None
        code, said, _ = attempt(
            folder, args, random.uniform(0, longest / 2 ** max(number - TIMES + 1, 0))
        )
        codes.append(code)

        assert code in (0, 130), said
        assert "Traceback" not in said
        assert "KeyboardInterrupt" not in said
        assert "Exception ignored" not in said
        if name != "init":
            # The commit may exist although the batch file was not removed. Every command notices
            # that, and makes no second commit.
            assert attempt(folder, ("status",), None, forker)[0] == 0
            # With -m there are two steps; between them, the operation is staged beside the existing
            # ones.
            assert state(folder) in (
                before,
                wanted,
                (before[0], before[1] + ("-m" in args and "put" in args)),
            )
            assert state(folder) == wanted or code == 130
        if name == "init" or state(folder) != wanted:
            repeated, said, _ = attempt(folder, args, None, forker)
            assert repeated == 0, said
        assert state(folder) == wanted
        assert sorted(path.name for path in (folder / ".nessie").glob("*.tmp")) == []
    print(name, codes)


def test_an_interrupted_init_is_completed_by_the_next_one(template, tmp_path):
    nessie = fresh(tmp_path, template.forker)
    (nessie.folder / ".nessie").mkdir()
    create_store(str(nessie.folder / ".nessie/store.sqlite")).close()

    refused = nessie("log")

    assert refused.code == 4
    assert "its creation was interrupted" in refused.err
    assert "nessie init" in refused.err
    nessie.ok("init", "--default-branch", "trunk")
    assert nessie.ok("status").out.startswith("on branch trunk at ")


WHERE_A_CLASS_IS_MADE = """
import sys
from nessie_cli.cli.main import run

def interrupt(frame, event, _):
    if event == "call" and frame.f_code.co_name == "__set_name__":
        sys.setprofile(None)
        raise KeyboardInterrupt

sys.setprofile(interrupt)
code = run(["status"])
assert sys.getprofile() is None, "was interrupted"
sys.exit(code)
"""


def test_an_interrupt_that_python_converts_to_another_error_is_recognised(
    template,
):
    done = subprocess.run(
        [sys.executable, "-c", WHERE_A_CLASS_IS_MADE],
        check=False,
        cwd=template.folder,
        env=template.environment,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
