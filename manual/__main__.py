"""`python -m manual` writes every generated file; with `--check` it only tells which ones are not up to date, and ends with 1."""

from __future__ import annotations

import sys

from manual.writing import outdated, write

if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        found = outdated()
        sys.stdout.writelines(f"{name}\n" for name in found)
        sys.exit(bool(found))
    sys.stdout.writelines(f"written: {name}\n" for name in write())
