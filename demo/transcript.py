"""Write the transcript of a demo run into README.md: `make docs`. A test compares README.md with a fresh run.

Hashes, snapshots and times differ from run to run; `normalised` takes them out, and README.md is only rewritten when something else has changed.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BEGIN, END = (
    "<!-- the demo's transcript; written by `make docs` -->\n```console\n",
    "```\n<!-- end of the transcript -->\n",
)
ROWS, COLUMNS = 50, 110

_SCRATCH = re.compile(r"/\S*/nessie-demo\.\w+")
_WHEN = re.compile(r"just now|\d+ (?:second|minute)s? ago")
_CHANGING = re.compile(r"\S*(?:…|[0-9a-f]{8}|\d{8})\S*")


def run() -> str:
    """What a demo prints on a terminal without colours; raises `RuntimeError` when it fails."""
    process, terminal = pty.fork()
    if process == 0:
        _become_the_demo()
    output = b""
    while chunk := _read(terminal):
        output += chunk
    _, status = os.waitpid(process, 0)
    text = _SCRATCH.sub("/lake", output.decode().replace("\r\n", "\n")).lstrip("\n")
    if status:
        raise RuntimeError(f"the demo failed:\n{text}")
    return text


def _become_the_demo() -> None:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("COLUMNS", "LINES", "FORCE_COLOR", "CLICOLOR_FORCE")
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    os.execve(  # noqa: S606
        ROOT / "demo" / "run", ["run"], {**kept, "PATH": path, "NO_COLOR": "1", "TERM": "xterm"}
    )  # noqa: RUF100, S606


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says so when the other side has been closed
        return b""


def normalised(transcript: str) -> list[str]:
    """The lines without what differs from run to run: ids, cut texts, times, widths of columns."""
    return [
        " ".join(_CHANGING.sub("<id>", _WHEN.sub("<when>", line)).split())
        for line in transcript.splitlines()
    ]


def in_readme(readme: str) -> str:
    """The transcript that stands in README.md."""
    return readme.partition(BEGIN)[2].partition(END)[0]


def main() -> None:
    """Bring README.md up to date."""
    readme = README.read_text(encoding="utf-8")
    found = run()
    if normalised(found) == normalised(in_readme(readme)):
        print("README.md is up to date")
        return
    before, _, rest = readme.partition(BEGIN)
    after = rest.partition(END)[2]
    README.write_text(f"{before}{BEGIN}{found}{END}{after}", encoding="utf-8")
    print("README.md: transcript written")


if __name__ == "__main__":
    main()
