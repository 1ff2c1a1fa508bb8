"""Writes the transcript of a demo run into a page of `docs/`.

A test compares the page with a new run. Hashes, snapshots and times differ from run to run.
`normalised` removes them, so the page is only rewritten if anything else has changed.
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
PAGE = ROOT / "docs" / "guides" / "demo.md"
BEGIN, END = (
    "<!-- the demo's transcript; written by `make docs` -->\n```console\n",
    "```\n<!-- end of the transcript -->\n",
)
ROWS, COLUMNS = 50, 120

SCRATCH = re.compile(r"/\S*/nessie-demo\.\w+")
_WHEN = re.compile(r"just\s+now|\d+\s+(?:second|minute)s?\s+ago")
_CHANGING = re.compile(r"\S*(?:…|[0-9a-f]{8}|\d{8})\S*")


def run() -> str:
    """Returns the output of a demo on a terminal without colours.

    Raises `RuntimeError` if the demo fails.
    """
    process, terminal = pty.fork()
    if process == 0:
        _become_the_demo()
    output = b""
    while chunk := _read(terminal):
        output += chunk
    _, status = os.waitpid(process, 0)
    text = SCRATCH.sub("/lake", output.decode().replace("\r\n", "\n")).lstrip("\n")
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
    except OSError:  # On Linux, the error means that the other side was closed.
        return b""


def normalised(transcript: str) -> list[str]:
    """Returns the words without text that differs from run to run.

    These are ids, cut texts, times, widths of columns and the ends of lines.
    """
    return _CHANGING.sub("<id>", _WHEN.sub("<when>", transcript)).split()


def in_page(page: str) -> str:
    """Returns the transcript in a page."""
    return page.partition(BEGIN)[2].partition(END)[0]


def main() -> None:
    """Updates the page."""
    page = PAGE.read_text(encoding="utf-8")
    transcript = run()
    if normalised(transcript) == normalised(in_page(page)):
        print(f"{PAGE.name} is up to date")
        return
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}{transcript}{END}{after}", encoding="utf-8")
    print(f"{PAGE.name}: transcript written")


if __name__ == "__main__":
    main()
