"""`python -m documents` writes the outputs and the pictures of `docs/`.

`--check` only lists the files that are out of date. Names of pages limit the run to these pages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from documents import console, pictures
from documents.session import ROOT


def _wanted(names: list[str]) -> Iterator[tuple[Path, str]]:
    for page in console.pages():
        text = page.read_text(encoding="utf-8")
        if console.runs(text) and (not names or page.name in names):
            yield page, console.run(text).text
    if not names:
        yield from pictures.every()


def main(arguments: list[str]) -> int:
    """Write or check the pages that `arguments` name, or all pages and pictures."""
    check = "--check" in arguments
    stale = 0
    for path, text in _wanted([name for name in arguments if name != "--check"]):
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        if not check:
            path.write_text(text, encoding="utf-8")
        print(f"{'out of date' if check else 'written'}: {path.relative_to(ROOT)}")
    return int(check and stale > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
