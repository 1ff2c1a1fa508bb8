"""`python -m manual` writes every generated file; with `--check` it only tells which ones are not up to date, and ends with 1."""

from __future__ import annotations

import sys

from manual.writing import outdated, write

if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        found = outdated()
        print(*found, sep="\n")
        sys.exit(bool(found))
    for name in write():
        print(f"written: {name}")
