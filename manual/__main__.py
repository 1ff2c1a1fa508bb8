"""`python -m manual` writes all generated files.

With `--check` it only lists those that are out of date, and exits with 1 if there are any.
"""

from __future__ import annotations

import sys

from manual.writing import outdated, write

if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        found = outdated()
        sys.stdout.writelines(f"{name}\n" for name in found)
        sys.exit(bool(found))
    sys.stdout.writelines(f"written: {name}\n" for name in write())
