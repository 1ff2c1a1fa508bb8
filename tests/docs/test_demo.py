"""The guide about the demo shows what a fresh run of the demo prints."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from urllib.request import urlopen

ROOT = Path(__file__).parents[2]


def _transcript_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "demo_transcript", ROOT / "demo" / "transcript.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_guide_shows_what_the_demo_prints() -> None:
    transcript = _transcript_module()
    shown = transcript.in_page(transcript.PAGE.read_text(encoding="utf-8"))
    assert transcript.normalised(shown) == transcript.normalised(transcript.run()), (
        "`make docs` writes the new transcript"
    )


def test_in_a_pipe_the_demo_prints_what_a_terminal_shows() -> None:
    transcript = _transcript_module()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [ROOT / "demo" / "run"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    shown = transcript.in_page(transcript.PAGE.read_text(encoding="utf-8"))
    found = transcript.SCRATCH.sub("/lake", done.stdout.lstrip("\n"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert transcript.normalised(found) == transcript.normalised(shown)


def test_the_demo_of_the_web_interface_ends_with_ctrl_c(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with subprocess.Popen(
        [ROOT / "demo" / "ui"],
        env={**os.environ, "PATH": path, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        process_group=0,
    ) as demo:
        assert demo.stdout is not None
        output = ""
        while "serving " not in output:
            line = demo.stdout.readline()
            assert line, output
            output += line
        url = re.search(r"Open (\S+) in a browser", output)
        assert url is not None
        with urlopen(url[1]) as page:
            assert "nightly" in page.read().decode()
        os.killpg(demo.pid, signal.SIGINT)
        assert demo.wait(60) in (0, 130, -signal.SIGINT)
    assert list(tmp_path.iterdir()) == []
